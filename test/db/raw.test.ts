import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { execute, query, statementName, unprepared } from '../../src/db/raw.ts'
import { freshDatabase } from '../support/database.ts'

const { db } = await freshDatabase()

const row = z.object({ name: z.string(), count: z.int() })
const ask = (text: string) => query(db, row, { text, values: [] })

describe('a raw statement', () => {
  test('answers rows of the declared columns', async () => {
    expect(await ask(`SELECT 'a' AS name, 1 AS count UNION ALL SELECT 'b', 2`)).toEqual([
      { name: 'a', count: 1 },
      { name: 'b', count: 2 },
    ])
    expect(await ask(`SELECT 'a' AS name, 1 AS count WHERE false`)).toEqual([])
  })

  test.each([
    ['a renamed column', `SELECT 'a' AS title, 1 AS count`, 'name'],
    ['a column that is missing', `SELECT 'a' AS name`, 'count'],
    ['a column of another type', `SELECT 'a' AS name, 'one' AS count`, 'count'],
    ['a bigint where a number is declared', `SELECT 'a' AS name, 1::bigint AS count`, 'count'],
    ['a null where there may be none', `SELECT NULL AS name, 1 AS count`, 'name'],
  ])('fails for %s', async (_, text, column) => {
    const asked = ask(text)
    await expect(asked).rejects.toThrow('answers other columns than declared')
    await expect(asked).rejects.toThrow(column)
  })

  test('takes its values as parameters, and reports how many rows it wrote', async () => {
    const text = `INSERT INTO roles (pk, name, permissions)
      SELECT gen_random_uuid(), name, '{}' FROM unnest($1::text[]) name`
    expect(await execute(db, { text, values: [['one', "it's"]] })).toBe(2)
    expect(await db.role.count({ where: { name: "it's" } })).toBe(1)
  })
})

describe('the name under which a statement is prepared', () => {
  const text = 'SELECT pk FROM users WHERE pk = $1'

  test('is one for one text, and fits where PostgreSQL keeps it', () => {
    const name = statementName(text)
    expect(name).not.toBe('')
    expect(Buffer.byteLength(name)).toBeLessThan(64)
    expect(statementName(text)).toBe(name)
    expect(statementName(`${text} `)).not.toBe(name)
  })

  test('stays the same after many others', () => {
    const before = statementName(text)
    const others = Array.from({ length: 5_000 }, (_, index) => statementName(`SELECT ${index}`))
    expect(new Set(others).size).toBe(5_000)
    expect(statementName(text)).toBe(before)
  })

  test('is empty for a marked statement, and for a list of keys: each length would be another statement', () => {
    expect(statementName(unprepared({ text, values: [] }).text)).toBe('')
    expect(statementName('SELECT "pk" FROM "users" WHERE "pk" IN ($1,$2)')).toBe('')
    expect(statementName('SELECT "pk" FROM "users" WHERE "pk" IN ($1,$2,$3,$4) OFFSET $5')).toBe('')
    expect(statementName('SELECT "pk" FROM "users" WHERE "pk" IN ($1)')).not.toBe('')
  })
})
