import type { Queryable } from '../db/client.ts'
import { statement } from '../db/sql.ts'
import { JsonText, LateJson } from './json-text.ts'
import type { Row, View } from './view.ts'

/** The rows of a view that have one of these keys, in no order. */
export const rowsByKey = (
  q: Queryable,
  { table, alias, columns, joins }: Pick<View, 'table' | 'alias' | 'columns' | 'joins'>,
  keys: readonly (string | number)[],
): Promise<Row[]> =>
  q.query<Row>(statement(`SELECT ${columns} FROM ${table} ${alias} ${joins} WHERE ${alias}.pk = ANY($1)`, [keys]))

/** The same, in the order of the keys. */
export async function rowsInOrder(
  q: Queryable,
  view: Pick<View, 'table' | 'alias' | 'columns' | 'joins'>,
  keys: readonly (string | number)[],
): Promise<Row[]> {
  const rows = keys.length === 0 ? new Map<unknown, Row>() : byKey(await rowsByKey(q, view, keys))
  return keys.map((key) => rows.get(key)).filter((row) => row !== undefined)
}

/** Rows by their key. */
export const byKey = (rows: readonly Row[]): ReadonlyMap<unknown, Row> => new Map(rows.map((row) => [row.pk, row]))

/** All values of a list column over all rows, each once. */
export const distinctKeys = (rows: readonly Row[], column: string): (string | number)[] => [
  ...new Set(rows.flatMap((row) => (row[column] ?? []) as (string | number)[])),
]

/** All values of a column, each once. */
export const distinctValues = (rows: readonly Row[], column: string): (string | number)[] => [
  ...new Set(rows.map((row) => row[column] as string | number)),
]

/** Whether there is something of the row that is yet to be read. */
export const isLate = (row: Row): boolean => Object.values(row).some((member) => member instanceof LateJson)

/** Reads one row that is there, completed, and all of it: it is answered when the transaction is over. */
export async function readOne(q: Queryable, view: View, key: string | number): Promise<Row> {
  const [one] = await view.complete(q, await rowsByKey(q, view, [key]), true)
  if (one === undefined) throw new Error(`${view.table} has no row ${key}`)
  const members: [string, unknown][] = []
  for (const [name, member] of Object.entries(one))
    members.push([name, member instanceof LateJson ? new JsonText(await Array.fromAsync(member.pieces)) : member])
  return Object.fromEntries(members)
}

/** Cuts rows into parts that weigh at most `most` together; a row that weighs more is a part by itself. */
export function cutByWeight(rows: readonly Row[], most: number, weigh: (row: Row) => number): Row[][] {
  const parts: Row[][] = []
  let sum = Number.POSITIVE_INFINITY
  for (const row of rows) {
    sum += weigh(row)
    if (sum <= most) parts.at(-1)?.push(row)
    else {
      parts.push([row])
      sum = weigh(row)
    }
  }
  return parts
}
