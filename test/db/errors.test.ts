import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { connect, type Db } from '../../src/db/client.ts'
import { brokenConstraint, databaseProblem, failureCode, isConnectionLost, isTransient } from '../../src/db/errors.ts'
import { Problem } from '../../src/errors.ts'
import { execute, freshDatabase, raw, rows, sql } from '../support/kit.ts'

const coded = (code: string) => Object.assign(new Error('a text that no one may match on'), { code })

test.each<[string, string, { lost: boolean; transient: boolean }]>([
  ['08006', 'connection failure', { lost: true, transient: true }],
  ['57P01', 'admin shutdown', { lost: true, transient: true }],
  ['57P02', 'crash shutdown', { lost: true, transient: true }],
  ['57P03', 'cannot connect now', { lost: true, transient: true }],
  ['57P05', 'idle session timeout', { lost: true, transient: true }],
  ['53300', 'too many connections', { lost: true, transient: true }],
  ['25P03', 'idle in transaction timeout', { lost: true, transient: true }],
  ['25P04', 'transaction timeout', { lost: true, transient: true }],
  ['ECONNREFUSED', 'no one listens', { lost: true, transient: true }],
  ['ECONNRESET', 'reset', { lost: true, transient: true }],
  ['EPIPE', 'written to a closed socket', { lost: true, transient: true }],
  ['ETIMEDOUT', 'no route that answers', { lost: true, transient: true }],
  ['40001', 'serialization failure', { lost: false, transient: true }],
  ['40P01', 'deadlock', { lost: false, transient: true }],
  ['55P03', 'lock not available', { lost: false, transient: true }],
  ['57014', 'statement timeout', { lost: false, transient: true }],
  ['25006', 'read-only transaction', { lost: false, transient: true }],
  ['53100', 'disk full', { lost: false, transient: true }],
  ['58030', 'input or output error', { lost: false, transient: true }],
  ['23505', 'unique violation', { lost: false, transient: false }],
  ['22P02', 'invalid text', { lost: false, transient: false }],
  ['42P01', 'no such table', { lost: false, transient: false }],
  ['28P01', 'wrong password', { lost: false, transient: false }],
  ['3D000', 'no such database', { lost: false, transient: false }],
])('an error by its code: %s: %s', (code, _, { lost, transient }) => {
  expect({ lost: isConnectionLost(coded(code)), transient: isTransient(coded(code)) }).toEqual({ lost, transient })
  // The same when it is wrapped.
  expect(isTransient(new Error('while applying', { cause: coded(code) }))).toBe(transient)
})

test('a connection that is lost under Prisma is an outage', async () => {
  const { db } = await freshDatabase()
  const error = await execute(db, sql`SELECT pg_terminate_backend(pg_backend_pid())`).catch(
    (failure: unknown) => failure,
  )
  expect(failureCode(error)).toBe('57P01')
  expect(isTransient(error)).toBe(true)
})

describe('a file that is missing', () => {
  test('is not a lost connection, though sockets have the same code', async () => {
    const error = await readFile('/there/is/no/such/file').catch((failure: unknown) => failure)
    expect(error).toMatchObject({ code: 'ENOENT' })
    expect([failureCode(error), isConnectionLost(error), isTransient(error)]).toEqual([undefined, false, false])
    expect(databaseProblem(error)).toBe(error)
    const wrapped = new Error('while reading', { cause: error })
    expect(isConnectionLost(wrapped)).toBe(false)
  })

  test('of a program is not one either', async () => {
    const error = await once(spawn('/there/is/no/such/program'), 'spawn').catch((failure: unknown) => failure)
    expect(error).toMatchObject({ code: 'ENOENT' })
    expect(isConnectionLost(error)).toBe(false)
  })

  test("is a lost connection where it is the server's socket", async () => {
    const { db } = connect('postgresql://postgres@localhost/x?host=/there/is/no/such/folder', {
      applicationName: 'gatewright-test',
      max: 1,
    })
    const error = await rows(db, sql`SELECT 1`).catch((failure: unknown) => failure)
    expect(isConnectionLost(error)).toBe(true)
    expect(databaseProblem(error)).toMatchObject({ code: 'unavailable' })
    await db.$disconnect()
  })
})

test.each([undefined, null, 'ECONNRESET', { code: 'ECONNRESET' }, new Error('plain')])(
  'what is no coded error is no outage: %s',
  (thing) => {
    expect(failureCode(thing)).toBeUndefined()
    expect(isTransient(thing)).toBe(false)
  },
)

describe('for the caller', () => {
  test('an outage is 503 with a reason to try again, and keeps its cause', () => {
    const cause = coded('57P01')
    expect(databaseProblem(cause)).toMatchObject({ name: 'Problem', code: 'unavailable', retryAfterS: 1, cause })
  })

  test.each([coded('23505'), new Problem('not_found', 'Gone.'), new TypeError('a bug')])(
    'anything else stays what it is: %s',
    (error) => {
      expect(databaseProblem(error)).toBe(error)
    },
  )
})

describe('a constraint that PostgreSQL refuses', () => {
  let db: Db
  let pool: pg.Pool
  beforeAll(async () => {
    ;({ db, pool } = await freshDatabase())
    await pool.query(`
      CREATE TABLE shelves (pk int CONSTRAINT shelves_pkey PRIMARY KEY, size int CONSTRAINT shelves_size CHECK (size > 0));
      CREATE TABLE books (pk int, shelf int CONSTRAINT books_shelf REFERENCES shelves ON DELETE RESTRICT);
      INSERT INTO shelves VALUES (1, 1);
      INSERT INTO books VALUES (1, 1)`)
  })

  test.each<[string, ReturnType<typeof brokenConstraint>]>([
    ['INSERT INTO shelves VALUES (1, 1)', { kind: 'unique', constraint: 'shelves_pkey' }],
    ['INSERT INTO shelves VALUES (2, 0)', { kind: 'check', constraint: 'shelves_size' }],
    ['INSERT INTO books VALUES (2, 9)', { kind: 'reference', constraint: 'books_shelf' }],
    ['DELETE FROM shelves', { kind: 'reference', constraint: 'books_shelf' }],
    ['SELECT 1 / 0', undefined],
  ])('is known by its kind, and by its name where that is passed on: %s', async (text, expected) => {
    const direct = await pool.query(text).catch((failure: unknown) => failure)
    expect(brokenConstraint(direct)).toEqual(expected)
    const error = await execute(db, sql`${raw(text)}`).catch((failure: unknown) => failure)
    expect(error).toBeInstanceOf(Error)
    // Prisma does not pass on the name of a check.
    expect(brokenConstraint(error)).toEqual(
      expected?.kind === 'check' ? { ...expected, constraint: undefined } : expected,
    )
  })

  test('is known by its name when Prisma wrote', async () => {
    const role = (pk: string) => db.role.create({ data: { pk, name: 'admins' } })
    await role('018f0000-0000-7000-8000-000000000001')
    const taken = await role('018f0000-0000-7000-8000-000000000002').catch((failure: unknown) => failure)
    expect(brokenConstraint(taken)).toEqual({ kind: 'unique', constraint: 'roles_name_key' })
    expect(isTransient(taken)).toBe(false)
  })

  test('is no outage', async () => {
    const error = await rows(db, sql`INSERT INTO shelves VALUES (1, 1)`).catch((failure: unknown) => failure)
    expect(isTransient(error)).toBe(false)
  })
})
