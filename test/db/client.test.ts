import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CommitUnknown, connect, type Db, now, type Tx, transaction } from '../../src/db/client.ts'
import { databaseProblem, isTransient } from '../../src/db/failures.ts'
import { sql, unprepared } from '../../src/db/sql.ts'
import { freshDatabase } from '../support/database.ts'
import { startPostgres } from '../support/postgres.ts'
import { proxyTo } from '../support/proxy.ts'
import { until } from '../support/until.ts'

let url: string
let db: Db
beforeAll(async () => {
  ;({ url, db } = await freshDatabase({ max: 3 }))
  await db.pool.query('CREATE TABLE notes (pk int PRIMARY KEY)')
})

const insert = (tx: Tx, pk: number) => tx.query(sql`INSERT INTO notes VALUES (${pk})`)
const exists = async (pk: number) => (await db.query(sql`SELECT 1 FROM notes WHERE pk = ${pk}`)).length === 1
const pidOf = async (tx: Tx) => (await tx.query<{ pid: number }>(sql`SELECT pg_backend_pid() AS pid`))[0]?.pid
const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  )

/** No connection is out, and each one in the pool is outside of a transaction. */
async function expectPoolAtRest() {
  expect(db.pool.idleCount).toBe(db.pool.totalCount)
  const open = sql`SELECT count(*) AS count FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'`
  expect(await db.query(open)).toEqual([{ count: 0 }])
}

describe('a transaction', () => {
  test('that ends is committed, and gives what its work gave', async () => {
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

  test('whose failed statement was overlooked does not pass for committed', async () => {
    const work = transaction(db, async (tx) => {
      await insert(tx, 3)
      await failureOf(tx.query(unprepared('SELECT 1 / 0', [])))
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

describe('a transaction waits no longer than it may', () => {
  const short = { lockMs: 100, statementMs: 300, idleMs: 300 }

  test('for a lock, and that is worth another try', async () => {
    const error = await transaction(db, async (holder) => {
      await insert(holder, 10)
      return await failureOf(transaction(db, (tx) => insert(tx, 10), short))
    })
    expect(error).toMatchObject({ code: '55P03' })
    expect(isTransient(error)).toBe(true)
    await expectPoolAtRest()
  })

  test('for a statement, and that is not', async () => {
    const error = await failureOf(transaction(db, (tx) => tx.query(sql`SELECT pg_sleep(20)`), short))
    expect(error).toMatchObject({ code: '57014' })
    expect(isTransient(error)).toBe(false)
    await expectPoolAtRest()
  })

  test('for its own work: the server ends it, and nothing is left of it', async () => {
    const error = await failureOf(
      transaction(
        db,
        async (tx) => {
          const pid = await pidOf(tx)
          await insert(tx, 11)
          const gone = () =>
            db.query(sql`SELECT pid FROM pg_stat_activity WHERE pid = ${pid}`).then((rows) => rows.length === 0)
          await until(gone, { what: 'the server to end the idle transaction' })
          await insert(tx, 12)
        },
        short,
      ),
    )
    expect(error).toMatchObject({ code: 'unavailable' })
    expect(await exists(11)).toBe(false)
    await expectPoolAtRest()
  })

  test('and the next one on the same connection has limits of its own', async () => {
    const single = connect(url, { applicationName: 'gatewright-test', max: 1 })
    await transaction(single, (tx) => pidOf(tx), short)
    expect((await single.pool.query('SHOW lock_timeout')).rows).toEqual([{ lock_timeout: '3s' }])
    expect((await single.pool.query('SHOW statement_timeout')).rows).toEqual([{ statement_timeout: '8s' }])
    await single.close()
  })
})

test('a statement is prepared once for each connection, unless it is not to be', async () => {
  const prepared = await transaction(db, async (tx) => {
    for (const pk of [1, 2, 3]) await tx.query(sql`SELECT ${pk}::integer AS prepared_for_all`)
    await tx.query(unprepared('SELECT $1::integer AS prepared_for_none', [1]))
    return tx.query<{ statement: string; runs: number }>(sql`
      SELECT statement, generic_plans + custom_plans AS runs FROM pg_prepared_statements WHERE statement LIKE '%prepared\\_for\\_%' AND statement NOT LIKE '%LIKE%'`)
  })
  expect(prepared).toEqual([{ statement: 'SELECT $1::integer AS prepared_for_all', runs: 3 }])
})

test('an error tells where the statement was asked for', async () => {
  const asked = () => db.query(unprepared('SELECT 1 / 0', []))
  await expect(asked()).rejects.toMatchObject({ stack: expect.stringContaining('client.test.ts') })
})

describe('a connection that is lost', () => {
  test('in the middle of a transaction is worth another try, which succeeds', async () => {
    const error = await failureOf(
      transaction(db, async (tx) => {
        await insert(tx, 20)
        await db.query(sql`SELECT pg_terminate_backend(${await pidOf(tx)})`)
        await insert(tx, 21)
      }),
    )
    expect(error).toMatchObject({ code: 'unavailable' })
    expect(isTransient(error)).toBe(true)
    expect(await exists(20)).toBe(false)
    await transaction(db, (tx) => insert(tx, 20))
    await expectPoolAtRest()
  })

  test('while all are idle is not noticed', async () => {
    await Promise.all([now(db), now(db), now(db)])
    const others = sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`
    const killer = connect(url, { applicationName: 'gatewright-killer', max: 1 })
    await killer.query(others)
    // Those of the pool and those that statements share: each was told before it was gone.
    await until(async () => (await killer.query(others)).length === 0, { what: 'the server to have ended them' })
    await until(() => db.pool.totalCount === 0, { what: 'the pool to see that its connections are gone' })
    expect(await now(db)).toBeInstanceOf(Date)
    await killer.close()
  })

  test('before the commit was done is an unknown outcome, and here nothing is in the database', async () => {
    await db.pool.query(`
      CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(20); RETURN NULL; END';
      CREATE TABLE slow (pk int);
      CREATE CONSTRAINT TRIGGER linger AFTER INSERT ON slow DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION linger()`)
    const work = failureOf(transaction(db, (tx) => tx.query(sql`INSERT INTO slow VALUES (${1})`)))
    const terminate = sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query = 'COMMIT' AND state = 'active'`
    await until(async () => (await db.query(terminate)).length === 1, { what: 'the COMMIT to be under way' })
    expect(await work).toBeInstanceOf(CommitUnknown)
    expect(await db.query(sql`SELECT pk FROM slow`)).toEqual([])
    await expectPoolAtRest()
  })

  test('after the commit was done is an unknown outcome, and here all is in the database', async () => {
    const proxy = await proxyTo(url)
    const far = connect(proxy.url, { applicationName: 'gatewright-test', max: 2 })
    const work = transaction(far, async (tx) => {
      await insert(tx, 30)
      proxy.loseAnswerTo('COMMIT')
    })
    await expect(work).rejects.toBeInstanceOf(CommitUnknown)
    expect(await exists(30)).toBe(true)
    expect(await now(far)).toBeInstanceOf(Date)
    await far.close()
  })
})

describe('when the database is away', () => {
  let server: Awaited<ReturnType<typeof startPostgres>>
  let away: Db
  beforeAll(async () => {
    server = await startPostgres({ durable: false })
    away = connect(server.url(), { applicationName: 'gatewright-test', max: 2 })
    await now(away)
    await server.stop('immediate')
  })
  afterAll(async () => {
    await away.close()
    await server.remove()
  })

  test.each<[string, () => Promise<unknown>]>([
    ['a query', () => now(away)],
    ['a transaction', () => transaction(away, (tx) => pidOf(tx))],
    ['Prisma', () => away.prisma.role.count().catch((error: unknown) => Promise.reject(databaseProblem(error)))],
    [
      'SQL by way of Prisma',
      () => away.prisma.$queryRaw`SELECT 1`.catch((error: unknown) => Promise.reject(databaseProblem(error))),
    ],
  ])('%s says so within a second', async (_, ask) => {
    const start = performance.now()
    await expect(ask()).rejects.toMatchObject({ code: 'unavailable', retryAfterS: 1 })
    expect(performance.now() - start).toBeLessThan(1_000)
  })

  test('it serves again as soon as the database is back', async () => {
    await server.start()
    expect(await now(away)).toBeInstanceOf(Date)
  })
})

test('a pool of which all connections are out refuses within a second, and serves afterwards', async () => {
  const single = connect(url, { applicationName: 'gatewright-test', max: 1 })
  await transaction(single, async () => {
    const start = performance.now()
    await expect(transaction(single, pidOf)).rejects.toMatchObject({ code: 'unavailable' })
    expect(performance.now() - start).toBeLessThan(1_200)
    // What stands for itself does not need one of them.
    expect(await now(single)).toBeInstanceOf(Date)
  })
  expect(await transaction(single, pidOf)).toBeTypeOf('number')
  await single.close()
})
