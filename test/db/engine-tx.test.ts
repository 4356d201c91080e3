import type pg from 'pg'
import { beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { CommitUnknown, connect, type Db, transaction } from '../../src/db/client.ts'
import { type EngineTransaction, prismaTransaction, reader, withEngine } from '../../src/db/engine-tx.ts'
import { failureCode } from '../../src/db/errors.ts'
import { pipelinedTransaction } from '../../src/db/pipeline.ts'
import type { Statement } from '../../src/db/raw.ts'
import { execute, freshDatabase, proxyTo, rows, sql, until } from '../support/kit.ts'

/** Both implementations of the engine's transactions keep the same promises. */

const { url, db, pool } = await freshDatabase({ max: 3 })
await pool.query(`
    CREATE TABLE notes (pk int PRIMARY KEY);
    CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(20); RETURN NULL; END';
    CREATE TABLE slow (pk int);
    CREATE CONSTRAINT TRIGGER linger AFTER INSERT ON slow DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION linger()`)
beforeEach(() => execute(db, sql`TRUNCATE notes`))

const note = (pk: number): Statement => ({ text: 'INSERT INTO notes VALUES ($1::int)', values: [pk] })
const all: Statement = { text: 'SELECT pk FROM notes ORDER BY pk', values: [] }
const row = z.object({ pk: z.int() })
const kept = async () => (await rows<{ pk: number }>(db, sql`SELECT pk FROM notes ORDER BY pk`)).map(({ pk }) => pk)
const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => expect.fail('it did not fail'),
    (error: unknown) => error,
  )

type Open = (from: { db: Db; pool: pg.Pool }) => EngineTransaction

describe.each<[string, Open]>([
  ["Prisma's", (from) => prismaTransaction(from.db)],
  ['a pipelined', (from) => pipelinedTransaction(from.pool)],
])('%s transaction of the engine', (_, open) => {
  const begin: EngineTransaction = (work) => open({ db, pool })(work)

  test('commits what was sent, in order, and returns the result of its work', async () => {
    const answer = await begin(async (tx) => {
      tx.send(note(2))
      tx.send({ text: 'UPDATE notes SET pk = pk + 10', values: [] })
      tx.send(note(1))
      return tx.query(row, all)
    })
    expect(answer).toEqual([{ pk: 1 }, { pk: 12 }])
    expect(await kept()).toEqual([1, 12])
  })

  test('waits for what was sent last', async () => {
    await begin(async (tx) => tx.send({ text: 'INSERT INTO notes SELECT 7 FROM pg_sleep(0.1)', values: [] }))
    expect(await kept()).toEqual([7])
  })

  test('is rolled back by an error of its work, which the caller gets', async () => {
    const reason = new Error('refused by a rule')
    const work = begin(async (tx) => {
      tx.send(note(1))
      throw reason
    })
    expect(await failureOf(work)).toBe(reason)
    expect(await kept()).toEqual([])
  })

  test('is rolled back by a query that fails', async () => {
    const work = begin(async (tx) => {
      tx.send(note(1))
      await tx.query(row, { text: 'SELECT 1 / 0 AS pk', values: [] })
    })
    expect(failureCode(await failureOf(work))).toBe('22012')
    expect(await kept()).toEqual([])
  })

  test('fails when a query answers other columns than declared', async () => {
    const work = begin((tx) => tx.query(row, { text: 'SELECT 1 AS key', values: [] }))
    expect(await failureOf(work)).toMatchObject({ message: expect.stringContaining('other columns than declared') })
  })

  describe('attempts what it can do without', () => {
    const setting = z.object({ timeout: z.string(), threshold: z.string().nullable() })
    const settings: Statement = {
      text: `SELECT current_setting('statement_timeout') AS timeout, nullif(current_setting('gatewright.tried', true), '') AS threshold`,
      values: [],
    }
    const limits = (withinMs: number) => ({
      withinMs,
      settings: { text: `SELECT set_config('gatewright.tried', 'yes', true)`, values: [] },
    })

    test('under settings and a time-out of its own', async () => {
      const [before, within, after] = await begin(async (tx) => [
        await tx.query(setting, settings),
        await tx.attempt(setting, settings, limits(1_234)),
        await tx.query(setting, settings),
      ])
      expect(within).toEqual([{ timeout: '1234ms', threshold: 'yes' }])
      expect(after).toEqual(before)
    })

    test('and goes on when it takes too long', async () => {
      const tried = await begin(async (tx) => {
        tx.send(note(1))
        const found = await tx.attempt(row, { text: 'SELECT 1 AS pk FROM pg_sleep(20)', values: [] }, limits(20))
        tx.send(note(2))
        return found
      })
      expect(tried).toBeNull()
      expect(await kept()).toEqual([1, 2])
    })

    test('and is rolled back by another failure of it', async () => {
      const work = begin(async (tx) => {
        tx.send(note(1))
        await tx.attempt(row, { text: 'SELECT 1 / 0 AS pk', values: [] }, limits(1_000))
      })
      expect(failureCode(await failureOf(work))).toBe('22012')
      expect(await kept()).toEqual([])
    })
  })

  describe('is rolled back by a failure of what was sent, and the caller gets its explained error', () => {
    const explained = new Error('a value that must be unique is taken')
    const causes: unknown[] = []
    const explain = (error: unknown) => {
      causes.push(error)
      return explained
    }
    beforeEach(() => void causes.splice(0))

    test('when nothing follows', async () => {
      const work = begin(async (tx) => {
        tx.send(note(1))
        tx.send(note(1), explain)
      })
      expect(await failureOf(work)).toBe(explained)
      expect(await kept()).toEqual([])
    })

    test('also when a later query fails because of it', async () => {
      let later: unknown
      const work = begin(async (tx) => {
        tx.send(note(1))
        tx.send(note(1), explain)
        await tx.query(row, all).catch((error: unknown) => {
          later = error
          throw error
        })
      })
      expect(await failureOf(work)).toBe(explained)
      expect([failureCode(later), causes.map(failureCode)]).toEqual(['25P02', ['23505']])
      expect(await kept()).toEqual([])
    })

    test('also when others that were sent fail because of it', async () => {
      const work = begin(async (tx) => {
        tx.send(note(1))
        tx.send(note(1), explain)
        tx.send(note(2), (error) => error)
        tx.send(note(3), (error) => error)
      })
      expect(await failureOf(work)).toBe(explained)
      expect(await kept()).toEqual([])
    })

    test('or the failure itself when it is not explained', async () => {
      const work = begin(async (tx) => {
        tx.send(note(1))
        tx.send(note(1))
      })
      expect(failureCode(await failureOf(work))).toBe('23505')
      expect(await kept()).toEqual([])
    })
  })

  test('is not committed when the failure of a query was ignored', async () => {
    const work = begin(async (tx) => {
      tx.send(note(1))
      await tx.query(row, { text: 'SELECT 1 / 0 AS pk', values: [] }).catch(() => {})
    })
    expect(await failureOf(work)).toMatchObject({ message: 'the transaction ended in ROLLBACK' })
    expect(await kept()).toEqual([])
  })

  test('gives its connection back, outside of a transaction, however it ended', async () => {
    const ways = [
      begin(async (tx) => tx.send(note(1))),
      begin(async () => Promise.reject(new Error('refused'))),
      begin(async (tx) => tx.send({ text: 'SELECT 1 / 0', values: [] })),
    ]
    expect((await Promise.allSettled(ways)).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected'])
    expect(pool.idleCount).toBe(pool.totalCount)
    const open = sql`SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'`
    expect(await rows(db, open)).toEqual([])
  })

  describe('whose connection is lost', () => {
    test('before the commit certainly did not happen', async () => {
      const work = begin(async (tx) => {
        const [found] = await tx.query(row, { text: 'SELECT pg_backend_pid() AS pk', values: [] })
        tx.send(note(1))
        await execute(db, sql`SELECT pg_terminate_backend(${found?.pk}::int)`)
        await tx.query(row, all)
      })
      expect(await failureOf(work)).toMatchObject({ name: 'Problem', code: 'unavailable' })
      expect(await kept()).toEqual([])
    })

    test('while committing has an unknown outcome, and here nothing is in the database', async () => {
      const work = failureOf(begin(async (tx) => tx.send({ text: 'INSERT INTO slow VALUES (1)', values: [] })))
      const terminate = sql`SELECT pg_terminate_backend(pid) AS ended FROM pg_stat_activity WHERE datname = current_database() AND query = 'COMMIT' AND state = 'active'`
      await until('the COMMIT to be under way', async () => (await rows(db, terminate)).length === 1)
      expect(await work).toBeInstanceOf(CommitUnknown)
      expect(await rows(db, sql`SELECT pk FROM slow`)).toEqual([])
    })

    test('while committing has an unknown outcome, and here all is in the database', async () => {
      const proxy = await proxyTo(url)
      const far = connect(proxy.url, { applicationName: 'gatewright-test', max: 2 })
      const work = open(far)(async (tx) => {
        tx.send(note(1))
        await tx.query(row, all)
        proxy.loseAnswerTo('COMMIT')
      })
      expect(await failureOf(work)).toBeInstanceOf(CommitUnknown)
      expect(await kept()).toEqual([1])
      await far.db.$disconnect()
    })
  })
})

test('the engine works in a transaction of the caller', async () => {
  const explained = new Error('a value that must be unique is taken')
  const work = transaction(db, async (tx) => {
    await execute(tx, sql`INSERT INTO notes VALUES (1)`)
    await withEngine(tx, async (engine) => engine.send(note(1), () => explained))
  })
  expect(await failureOf(work)).toBe(explained)
  expect(await kept()).toEqual([])
})

test('a reader without a transaction attempts, and gives up while it waits for a connection', async () => {
  const limits = { withinMs: 200, settings: { text: 'SELECT 1', values: [] } }
  const one: Statement = { text: 'SELECT 1 AS pk', values: [] }
  expect(await reader(db).attempt(row, one, { ...limits, withinMs: 5_000 })).toEqual([{ pk: 1 }])
  expect(await reader(db).attempt(row, { ...one, text: 'SELECT 1 AS pk FROM pg_sleep(20)' }, limits)).toBeNull()
  const taken = await Promise.all(Array.from({ length: 3 }, () => pool.connect()))
  expect(await reader(db).attempt(row, one, limits)).toBeNull()
  for (const client of taken) client.release()
})
