import pg from 'pg'
import { expect, test } from 'vitest'
import { copyTable } from '../../tools/seed/copy.ts'
import { atEnd, freshDatabase } from '../support/kit.ts'

/** Each of these would end a cell, a row or the copy, or change its meaning, if it were not escaped. */
const awkward = ['', '\t', '\n', '\r\n', '\\', '\\N', '\\.', "'", '"', '{a,b}', 'Zoë 🦆', '\\x00', 'a\\']

test('every value is read as it was written', async () => {
  const { url } = await freshDatabase()
  const client = new pg.Client(url)
  await client.connect()
  atEnd(() => client.end())
  await client.query(
    'CREATE TEMP TABLE kept (number integer, word text, words text[], json jsonb, bytes bytea, flag boolean, at timestamptz)',
  )
  const rows = awkward.map((word, number) => ({
    number,
    word,
    words: [word, 'b'],
    json: { [word]: [word] },
    bytes: Buffer.from(word),
    flag: number % 2 === 0,
    at: number === 0 ? null : new Date(number),
  }))
  const columns = ['number', 'word', 'words', 'json', 'bytes', 'flag', 'at']
  const seen: number[] = []
  const table = { name: 'kept', columns, items: rows.length, rows: (item: number) => rows.slice(item, item + 1) }
  expect(await copyTable(client, table, (items) => seen.push(items))).toBe(rows.length)
  expect(seen).toEqual([rows.length])
  expect((await client.query('SELECT * FROM kept ORDER BY number')).rows).toEqual(rows)
})

test('many rows are sent in several chunks, and the connection still works after an error', async () => {
  const { url } = await freshDatabase()
  const client = new pg.Client(url)
  await client.connect()
  atEnd(() => client.end())
  await client.query('CREATE TEMP TABLE kept (number integer PRIMARY KEY)')
  const many = { name: 'kept', columns: ['number'], items: 50_000, rows: (number: number) => [{ number }] }
  const seen: number[] = []
  expect(await copyTable(client, many, (items) => seen.push(items))).toBe(50_000)
  expect(seen.length).toBeGreaterThan(2)
  await expect(copyTable(client, many)).rejects.toMatchObject({ code: '23505' })
  expect((await client.query('SELECT count(*)::integer AS count FROM kept')).rows).toEqual([{ count: 50_000 }])
})
