import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import pg from 'pg'
import { from } from 'pg-copy-streams'
import type { Table } from './table.ts'

/** Rows in the text format of COPY (https://www.postgresql.org/docs/current/sql-copy.html). */

const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' }
const escaped = (text: string): string =>
  /[\\\t\n\r]/.test(text) ? text.replaceAll(/[\\\t\n\r]/g, (character) => escapes[character] ?? character) : text

const element = (item: unknown): string => `"${String(item).replaceAll(/["\\]/g, '\\$&')}"`

/** One value. An array is an array of text, any other object JSON. */
export function cell(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return escaped(value)
    case 'number':
      return String(value)
    case 'boolean':
      return value ? 't' : 'f'
    case 'undefined':
      return '\\N'
    case 'object':
      if (value === null) return '\\N'
      if (value instanceof Date) return value.toISOString()
      if (Buffer.isBuffer(value)) return `\\\\x${value.toString('hex')}`
      return escaped(Array.isArray(value) ? `{${value.map(element).join(',')}}` : JSON.stringify(value))
    default:
      throw new Error(`no column holds a ${typeof value}`)
  }
}

/** Characters. */
const chunkLength = 65_536

/** Writes a table. @param progress gets the number of items sent so far @returns the number of rows written */
export async function copyTable(
  client: pg.Client,
  table: Table,
  progress: (items: number) => void = () => {},
): Promise<number> {
  const { name, columns, items, rows } = table
  function* chunks(): Generator<string> {
    let chunk = ''
    for (let item = 0; item < items; item += 1) {
      for (const row of rows(item)) chunk += `${columns.map((column) => cell(row[column])).join('\t')}\n`
      if (chunk.length < chunkLength) continue
      yield chunk
      progress(item + 1)
      chunk = ''
    }
    yield chunk
  }
  const quoted = columns.map((column) => pg.escapeIdentifier(column)).join(', ')
  const copying = client.query(from(`COPY ${pg.escapeIdentifier(name)} (${quoted}) FROM STDIN`))
  await pipeline(Readable.from(chunks()), copying)
  progress(items)
  return copying.rowCount
}
