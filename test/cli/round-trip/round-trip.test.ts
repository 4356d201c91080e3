import { expect, test } from 'vitest'
import { kinds } from '../../support/examples.ts'
import { openRoundTrip } from './round-trip.ts'

/** A few random configurations; `npm run random` has many. */

const on = await openRoundTrip()

test('what an installation starts with comes back as the same text', async () => {
  const { text, rows } = await on.roundTrip(null)
  expect(Object.keys(rows).length).toBeGreaterThan(25)
  expect(text).not.toMatch(/6f7e0000|\bpk\b/)
})

test('so does any configuration, with its secrets', async () => {
  await on.random(2)
  expect(await on.source.db.provider.groupBy({ by: ['kind'] })).toHaveLength(kinds.length)
})
