import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import pg from 'pg'
import { from } from 'pg-copy-streams'
import type { Table } from './table.ts'

/** Rows as COPY's text format wants them (https://www.postgresql.org/docs/current/sql-copy.html). */

const escapes: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' }
const escaped = (text: string): string =>
  /[\\\t\n\r]/.test(text) ? text.replaceAll(/[\\\t\n\r]/g, (sign) => escapes[sign] ?? sign) : text

const element = (item: unknown): string => `"${String(item).replaceAll(/["\\]/g, '\\$&')}"`

/** One value: a list is an array of texts, another object is JSON. */
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

/** Characters that are sent at a time. */
const chunkLength = 65_536

/**
 * Writes a table.
 *
 * @param progress told how many of the pieces have been sent
 * @returns how many rows were written
 */
export async function copyTable(
  client: pg.Client,
  table: Table,
  progress: (pieces: number) => void = () => {},
): Promise<number> {
  const { name, columns, pieces, rows } = table
  function* lines(): Generator<string> {
    let chunk = ''
    for (let piece = 0; piece < pieces; piece += 1) {
      for (const row of rows(piece)) chunk += `${columns.map((column) => cell(row[column])).join('\t')}\n`
      if (chunk.length < chunkLength) continue
      yield chunk
      progress(piece + 1)
      chunk = ''
    }
    yield chunk
  }
  const quoted = columns.map((column) => pg.escapeIdentifier(column)).join(', ')
  const copying = client.query(from(`COPY ${pg.escapeIdentifier(name)} (${quoted}) FROM STDIN`))
  await pipeline(Readable.from(lines()), copying)
  progress(pieces)
  return copying.rowCount
}
