import pg from 'pg'
import { expect, test } from 'vitest'
import { copyTable } from '../../src/seed/copy.ts'
import { atEnd } from '../support/at-end.ts'
import { freshDatabase } from '../support/database.ts'

/** What would end a cell, a row or the copy, were it not escaped. */
const awkward = ['', '\t', '\n', '\r\n', '\\', '\\N', '\\.', "'", '"', '{a,b}', 'Zoë 🦆', '\\x00', 'a\\']

test('every value comes back as it went in', async () => {
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
  const table = { name: 'kept', columns, pieces: rows.length, rows: (piece: number) => rows.slice(piece, piece + 1) }
  expect(await copyTable(client, table, (pieces) => seen.push(pieces))).toBe(rows.length)
  expect(seen).toEqual([rows.length])
  expect((await client.query('SELECT * FROM kept ORDER BY number')).rows).toEqual(rows)
})

test('more than a chunk is sent in several, and the connection serves on after a refusal', async () => {
  const { url } = await freshDatabase()
  const client = new pg.Client(url)
  await client.connect()
  atEnd(() => client.end())
  await client.query('CREATE TEMP TABLE kept (number integer PRIMARY KEY)')
  const many = { name: 'kept', columns: ['number'], pieces: 50_000, rows: (number: number) => [{ number }] }
  const seen: number[] = []
  expect(await copyTable(client, many, (pieces) => seen.push(pieces))).toBe(50_000)
  expect(seen.length).toBeGreaterThan(2)
  await expect(copyTable(client, many)).rejects.toMatchObject({ code: '23505' })
  expect((await client.query('SELECT count(*)::integer AS count FROM kept')).rows).toEqual([{ count: 50_000 }])
})
