import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type Connected, connect, transaction } from '../../src/db/client.ts'
import { failureCode } from '../../src/db/errors.ts'
import { pipelinedTransaction } from '../../src/db/pipeline.ts'
import { atEnd, execute, freshDatabase, rows, sql, until, within } from '../support/kit.ts'

/** The driver's client for a pooler, here without one: what it sends is the same. test/e2e/pgbouncer.test.ts has PgBouncer. */

const { url } = await freshDatabase()
await within(url, (client) =>
  client.query('CREATE TABLE notes (pk int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, text text)'),
)

const held = sql`SELECT current_setting('lock_timeout') AS lock, current_setting('statement_timeout') AS statement,
  current_setting('idle_in_transaction_session_timeout') AS idle, current_setting('jit') AS jit,
  current_setting('plan_cache_mode') AS plans, current_setting('transaction_isolation') AS isolation,
  (SELECT reset_val FROM pg_settings WHERE name = 'lock_timeout') AS session`
const ours = { lock: '700ms', statement: '8s', idle: '10s', jit: 'off', plans: 'force_generic_plan' }
const committed = { ...ours, isolation: 'read committed', session: '0' }
const heldRow = z.record(z.string(), z.string())
const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  )

describe.each([true, false])('a pooler that keeps names: %s', (keepsNames) => {
  let there: Connected
  beforeAll(() => {
    there = connect(url, { applicationName: 'gatewright-test', max: 1, lockMs: 700, pooler: { keepsNames } })
    atEnd(() => there.db.$disconnect())
  })

  test('the settings hold for a single statement, and in transactions of both kinds', async () => {
    const { db, pool } = there
    expect(await rows(db, held)).toEqual([committed])
    expect(await transaction(db, (tx) => rows(tx, held))).toEqual([committed])
    const serial = { isolationLevel: 'RepeatableRead' } as const
    expect(await transaction(db, (tx) => rows(tx, held), serial)).toMatchObject([{ isolation: 'repeatable read' }])
    const piped = pipelinedTransaction(pool)((tx) => tx.query(heldRow, { text: held.sql, values: [] }))
    expect(await piped).toEqual([committed])
  })

  test('those of a transaction of its own hold in it alone', async () => {
    const short = { timeouts: { lockMs: 100, statementMs: 300 }, plans: 'auto' } as const
    const [inside] = await transaction(there.db, (tx) => rows(tx, held), short)
    expect(inside).toMatchObject({ lock: '100ms', statement: '300ms', plans: 'auto', jit: 'off' })
    expect(await rows(there.db, held)).toEqual([committed])
  })

  test('a single statement that fails says why, and so does one whose commit fails', async () => {
    const { db } = there
    await execute(db, sql`INSERT INTO notes VALUES (${keepsNames ? 1 : 2}, 'kept')`)
    expect(failureCode(await failureOf(rows(db, sql`SELECT 1 / 0`)))).toBe('22012')
    const twice = execute(db, sql`INSERT INTO notes VALUES (${keepsNames ? 1 : 2}, 'once more')`)
    expect(failureCode(await failureOf(twice))).toBe('23505')
    expect(await rows(db, sql`SELECT text FROM notes WHERE pk = ${keepsNames ? 1 : 2}`)).toEqual([{ text: 'kept' }])
  })

  test('a transaction that fails is rolled back, and the next one works', async () => {
    const { db, pool } = there
    const work = transaction(db, async (tx) => {
      await execute(tx, sql`INSERT INTO notes VALUES (3)`)
      throw new Error('refused')
    })
    await expect(work).rejects.toThrow('refused')
    const insert = { text: 'INSERT INTO notes VALUES ($1)', values: [keepsNames ? 4 : 5] }
    const behind = { text: 'INSERT INTO notes VALUES ($1)', values: [keepsNames ? 6 : 7] }
    await pipelinedTransaction(pool)(async (tx) => tx.send(insert), behind)
    const count = async () => Number((await rows<{ count: number }>(db, there4to7(keepsNames)))[0]?.count)
    await until('what is sent behind the commit', async () => (await count()) === 2)
    expect(await rows(db, sql`SELECT FROM notes WHERE pk = 3`)).toEqual([])
  })

  test('statements are prepared only where they are kept', async () => {
    await rows(there.db, sql`SELECT ${1}::integer AS asked`)
    const prepared = await rows(there.db, sql`SELECT 1 AS found FROM pg_prepared_statements LIMIT 1`)
    expect(prepared).toHaveLength(keepsNames ? 1 : 0)
  })
})

const there4to7 = (isNamed: boolean) =>
  sql`SELECT count(*) AS count FROM notes WHERE pk = ANY(${isNamed ? [4, 6] : [5, 7]}::int[])`
