import { expect, test } from 'vitest'
import { kinds, onCi } from '../../support/kit.ts'
import { openRoundTrip } from './round-trip.ts'

/** Many random configurations: `npm run random`. */

test('any configuration comes back as the same text', { timeout: 1_200_000 }, async () => {
  const on = await openRoundTrip()
  await on.random(onCi ? 12 : 30)
  expect(await on.source.db.provider.groupBy({ by: ['kind'] })).toHaveLength(kinds.length)
})
