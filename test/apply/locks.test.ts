import { describe, expect, test } from 'vitest'
import { nameLock } from '../../src/db/locks.ts'
import { held } from '../runs/stand.ts'
import { name, rows, sql, until } from '../support/kit.ts'
import { bench, flow } from './engine.ts'

/** Documents that write the same names run one after the other. */

const there = await bench()

const hold = (lock: string) => held(there, (tx) => rows(tx, sql`SELECT pg_advisory_xact_lock(${lock}::bigint)::text`))

/** How many locks of names those sessions have that wait for another. */
async function whileWaiting(): Promise<number> {
  const found = () =>
    rows<{ granted: boolean }>(
      there.db,
      sql`SELECT granted FROM pg_locks WHERE locktype = 'advisory'
        AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    )
  const locks = await until('the apply to wait', async () => ((await found()).length > 0 ? found() : null))
  return locks.filter(({ granted }) => granted).length
}

describe('names are locked', () => {
  // Two documents do not wait for each other then.
  test.each(['first', 'last'])('in one order, whatever the order of the entries: the %s goes first', async (first) => {
    const slugs = Array.from({ length: 6 }, (_, index) => `${name}-${index}`)
    const release = await hold(
      slugs
        .map((slug) => nameLock('flows', [slug]))
        .sort()
        .at(-1) ?? '',
    )
    const order = first === 'first' ? slugs : slugs.toReversed()
    const applying = there.apply(order.map((slug) => flow(slug)))
    expect(await whileWaiting()).toBe(slugs.length - 1)
    await release()
    await applying
  })

  test('under the name before, too', async () => {
    await there.apply([flow(`${name}-old`)])
    const release = await hold(nameLock('flows', [`${name}-old`]))
    const applying = there.apply([{ ...flow(name), was: `${name}-old` }])
    await whileWaiting()
    await release()
    expect((await applying).logs.join()).toContain(`flow "${name}"`)
  })
})
