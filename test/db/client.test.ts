import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { CommitUnknown, connect, type Db, openFirst, type Tx, transaction } from '../../src/db/client.ts'
import { databaseProblem, failureCode, isTransient } from '../../src/db/errors.ts'
import { bePatient, patience, quickMs } from '../../src/db/in-time.ts'
import { pipelinedTransaction } from '../../src/db/pipeline.ts'
import { query, unprepared } from '../../src/db/raw.ts'
import { execute, freshDatabase, proxyTo, rows, sql, until } from '../support/kit.ts'
import { startPostgres } from '../support/postgres.ts'

const { url, db, pool } = await freshDatabase({ max: 3 })
await pool.query('CREATE TABLE notes (pk int PRIMARY KEY)')

const insert = (tx: Tx, pk: number) => rows(tx, sql`INSERT INTO notes VALUES (${pk})`)
const exists = async (pk: number) => (await rows(db, sql`SELECT 1 FROM notes WHERE pk = ${pk}`)).length === 1
const pidOf = async (tx: Tx) => (await rows<{ pid: number }>(tx, sql`SELECT pg_backend_pid() AS pid`))[0]?.pid
const answers = async (from: Db) => (await rows<{ one: number }>(from, sql`SELECT 1 AS one`))[0]?.one === 1
const oneRow = z.object({ one: z.int() })
const asProblem = (error: unknown) => Promise.reject(databaseProblem(error))
const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  )

/** All connections are in the pool, and outside of a transaction. */
async function expectPoolAtRest() {
  expect(pool.idleCount).toBe(pool.totalCount)
  const open = sql`SELECT count(*) AS count FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'`
  expect(await rows(db, open)).toEqual([{ count: 0 }])
}

test('the first connection may take longer than an answer', async () => {
  const usual = patience()
  bePatient(quickMs)
  onTestFinished(() => bePatient(usual))
  const proxy = await proxyTo(url)
  const { db: slow } = connect(proxy.url, { applicationName: 'gatewright-test', max: 1 })
  onTestFinished(() => slow.$disconnect())
  proxy.freeze(true)
  const opening = openFirst(slow)
  const late = delay(quickMs + 300).then(() => proxy.freeze(false))
  await Promise.all([opening, late])
  expect(await answers(slow)).toBe(true)
})

describe('a transaction', () => {
  test('that ends is committed, and returns the result of its work', async () => {
    const work = async (tx: Tx) => {
      await insert(tx, 1)
      return 'done'
    }
    expect(await transaction(db, work)).toBe('done')
    expect(await exists(1)).toBe(true)
    await expectPoolAtRest()
  })

  test('that throws leaves nothing, and throws the same', async () => {
    const reason = new Error('refused by a rule')
    const work = transaction(db, async (tx) => {
      await insert(tx, 2)
      throw reason
    })
    await expect(work).rejects.toBe(reason)
    expect(await exists(2)).toBe(false)
    await expectPoolAtRest()
  })

  test('whose failed statement was ignored is not reported as committed', async () => {
    const work = transaction(db, async (tx) => {
      await insert(tx, 3)
      await failureOf(rows(tx, sql`SELECT 1 / 0`))
    })
    await expect(work).rejects.toThrow('the transaction ended in ROLLBACK')
    expect(await exists(3)).toBe(false)
    await expectPoolAtRest()
  })

  test('is not seen by others before it commits', async () => {
    await transaction(db, async (tx) => {
      await insert(tx, 4)
      expect(await exists(4)).toBe(false)
    })
    expect(await exists(4)).toBe(true)
  })
})

describe('a transaction has time limits', () => {
  const short = { timeouts: { lockMs: 100, statementMs: 300 } }

  test('for a lock, and that is transient', async () => {
    const error = await transaction(db, async (holder) => {
      await insert(holder, 10)
      return await failureOf(transaction(db, (tx) => insert(tx, 10), short))
    })
    expect(failureCode(error)).toBe('55P03')
    expect(isTransient(error)).toBe(true)
    await expectPoolAtRest()
  })

  test('for a statement, and that is transient', async () => {
    const error = await failureOf(transaction(db, (tx) => execute(tx, sql`SELECT pg_sleep(20)`), short))
    expect(failureCode(error)).toBe('57014')
    expect(isTransient(error)).toBe(true)
    await expectPoolAtRest()
  })

  test('for its work: the server ends it, and rolls back', async () => {
    const error = await failureOf(
      transaction(db, async (tx) => {
        await execute(tx, sql`SET LOCAL idle_in_transaction_session_timeout = 300`)
        const pid = await pidOf(tx)
        await insert(tx, 11)
        const gone = () =>
          rows(db, sql`SELECT pid FROM pg_stat_activity WHERE pid = ${pid}`).then((rows) => rows.length === 0)
        await until('the server to end the idle transaction', gone)
        await insert(tx, 12)
      }),
    )
    expect(error).toMatchObject({ code: 'unavailable' })
    expect(await exists(11)).toBe(false)
    await expectPoolAtRest()
  })

  test('and the next one on the same connection has limits of its own', async () => {
    const single = connect(url, { applicationName: 'gatewright-test', max: 1 })
    await transaction(single.db, pidOf, short)
    expect(await rows(single.db, sql`SHOW lock_timeout`)).toEqual([{ lock_timeout: '3s' }])
    expect(await rows(single.db, sql`SHOW statement_timeout`)).toEqual([{ statement_timeout: '8s' }])
    await single.db.$disconnect()
  })
})

test('a statement is prepared once for each connection, unless it has many shapes', async () => {
  const prepared = await transaction(db, async (tx) => {
    for (const pk of [1, 2, 3]) await rows(tx, sql`SELECT ${pk}::integer AS prepared_for_all`)
    await query(tx, z.object({ prepared_for_none: z.int() }), unprepared({ text: none, values: [1] }))
    await tx.user.findMany({ where: { pk: { in: [1, 2, 3] } }, select: { username: true } })
    return rows<{ statement: string; runs: number }>(
      tx,
      sql`
      SELECT statement, generic_plans + custom_plans AS runs FROM pg_prepared_statements
      WHERE (statement LIKE '%prepared\\_for\\_%' OR statement LIKE '%"username"%') AND statement NOT LIKE '%LIKE%'`,
    )
  })
  expect(prepared).toEqual([{ statement: 'SELECT $1::integer AS prepared_for_all', runs: 3 }])
})

const none = 'SELECT $1::integer AS prepared_for_none'

describe('a connection that is lost', () => {
  test('in the middle of a transaction is transient, and another try succeeds', async () => {
    const error = await failureOf(
      transaction(db, async (tx) => {
        await insert(tx, 20)
        await rows(db, sql`SELECT pg_terminate_backend(${await pidOf(tx)}::integer) AS ended`)
        await insert(tx, 21)
      }),
    )
    expect(error).toMatchObject({ code: 'unavailable' })
    expect(isTransient(error)).toBe(true)
    expect(await exists(20)).toBe(false)
    await transaction(db, (tx) => insert(tx, 20))
    await expectPoolAtRest()
  })

  test('while all are idle causes no error', async () => {
    await Promise.all([answers(db), answers(db), answers(db)])
    const others = sql`SELECT pg_terminate_backend(pid) AS ended FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`
    const killer = connect(url, { applicationName: 'gatewright-killer', max: 1 })
    await until('the server to have ended them', async () => (await rows(killer.db, others)).length === 0)
    await until('the pool to see that its connections are gone', () => pool.totalCount === 0)
    expect(await answers(db)).toBe(true)
    await killer.db.$disconnect()
  })

  test('before the commit was done is an unknown outcome, and here nothing is in the database', async () => {
    await pool.query(`
      CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(20); RETURN NULL; END';
      CREATE TABLE slow (pk int);
      CREATE CONSTRAINT TRIGGER linger AFTER INSERT ON slow DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION linger()`)
    const work = failureOf(transaction(db, (tx) => rows(tx, sql`INSERT INTO slow VALUES (${1})`)))
    const terminate = sql`SELECT pg_terminate_backend(pid) AS ended FROM pg_stat_activity WHERE datname = current_database() AND query = 'COMMIT' AND state = 'active'`
    await until('the COMMIT to be under way', async () => (await rows(db, terminate)).length === 1)
    expect(await work).toBeInstanceOf(CommitUnknown)
    expect(await rows(db, sql`SELECT pk FROM slow`)).toEqual([])
    await expectPoolAtRest()
  })

  test('after the commit was done is an unknown outcome, and here all is in the database', async () => {
    const proxy = await proxyTo(url)
    const far = connect(proxy.url, { applicationName: 'gatewright-test', max: 2 })
    const work = transaction(far.db, async (tx) => {
      await insert(tx, 30)
      proxy.loseAnswerTo('COMMIT')
    })
    await expect(work).rejects.toBeInstanceOf(CommitUnknown)
    expect(await exists(30)).toBe(true)
    expect(await answers(far.db)).toBe(true)
    await far.db.$disconnect()
  })
})

describe('when the database is away', () => {
  let server: Awaited<ReturnType<typeof startPostgres>>
  let away: Db
  let awayPool: pg.Pool
  beforeAll(async () => {
    server = await startPostgres({ durable: false })
    ;({ db: away, pool: awayPool } = connect(server.url(), { applicationName: 'gatewright-test', max: 2 }))
    await answers(away)
    await server.stop('immediate')
  })
  afterAll(async () => {
    await away.$disconnect()
    await server.remove()
  })

  test.each<[string, () => Promise<unknown>]>([
    ['a transaction', () => transaction(away, pidOf)],
    ['a read through a model', () => away.role.count().catch(asProblem)],
    ['raw SQL', () => rows(away, sql`SELECT 1 AS one`).catch(asProblem)],
    [
      'the engine',
      () => pipelinedTransaction(awayPool)((tx) => tx.query(oneRow, { text: 'SELECT 1 AS one', values: [] })),
    ],
  ])('%s says so', async (_, ask) => {
    await expect(ask()).rejects.toMatchObject({ code: 'unavailable', retryAfterS: 1 })
  })

  test('it serves again as soon as the database is back', async () => {
    await server.start()
    expect(await answers(away)).toBe(true)
  })
})

test('a pool of which all connections are taken refuses, and serves afterwards', async () => {
  const single = connect(url, { applicationName: 'gatewright-test', max: 1 })
  await transaction(single.db, async () => {
    await expect(transaction(single.db, pidOf)).rejects.toMatchObject({ code: 'unavailable' })
  })
  expect(await transaction(single.db, pidOf)).toBeTypeOf('number')
  await single.db.$disconnect()
})
