import { beforeAll, expect, test } from 'vitest'
import type { Db } from '../../src/db/client.ts'
import { sql, statement, unprepared } from '../../src/db/sql.ts'
import { freshDatabase } from '../support/database.ts'

let db: Db
beforeAll(async () => {
  ;({ db } = await freshDatabase({ max: 1 }))
})

test('values become parameters, in order', () => {
  expect(sql`SELECT ${1}, ${'two'} WHERE ${null}::text IS NULL`).toMatchObject({
    text: 'SELECT $1, $2 WHERE $3::text IS NULL',
    values: [1, 'two', null],
  })
})

test('equal texts share a name, others do not, and PostgreSQL takes the whole of it', () => {
  const name = (username: string) => sql`SELECT pk FROM users WHERE username = ${username}`.name
  expect(name('ada')).toBe(name('grace'))
  expect(name('ada')).not.toBe(sql`SELECT pk FROM users WHERE name = ${'ada'}`.name)
  expect(name('ada')?.length).toBeLessThan(64)
})

test.each(["'; DROP TABLE users; --", '$1', '%_\\', 'ünïcödé 🗝️', ''])(
  'a value is never text of the statement: %j',
  async (value) => {
    expect(await db.query(sql`SELECT ${value}::text AS value`)).toEqual([{ value }])
  },
)

test('a statement is planned once for each connection', async () => {
  const text = 'SELECT $1::int + 1 AS next'
  for (const value of [1, 2, 3]) await db.query(statement(text, [value]))
  await db.query(unprepared('SELECT $1::int + 2 AS next', [1]))
  const plans = sql`SELECT count(*) AS count FROM pg_prepared_statements WHERE statement LIKE 'SELECT $1::int%'`
  expect(await db.query(plans)).toEqual([{ count: 1 }])
})

test('a count is a number', async () => {
  expect(await db.query(sql`SELECT count(*) AS count FROM users`)).toEqual([{ count: 0 }])
})
