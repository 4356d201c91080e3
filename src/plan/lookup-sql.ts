import { z } from 'zod'
import type { EngineReader } from '../db/engine-tx.ts'
import { type Statement, unprepared } from '../db/raw.ts'
import type { Model, Only, ReferenceTarget } from '../models/define.ts'
import { columnOf, quoted } from './statements.ts'

/** Statements that read the rows that a document looks up, and those that it probably means. */

const key = z.union([z.string(), z.int()])
const foundRow = z.looseObject({ pk: key })

/** A row with the requested columns. */
export type FoundRow = z.output<typeof foundRow>

/**
 * Columns and their values, as texts. All of them together find a row. `folded`: they are compared like names.
 *
 * `!Find [service_flows.flow, {slug: login}]` needs one of these, a name needs one for each column that names a row.
 */
export type By = { readonly columns: readonly string[]; readonly values: readonly string[]; readonly folded?: true }

export type TableLookups = {
  readonly table: string
  readonly model: Model
  readonly columns: readonly string[]
  readonly by: readonly By[]
}

/** The most rows that one look-up reads. More than one is an error. */
const maxRows = 10

/** Reads all look-ups by one statement. @returns the rows by table; a row may be there twice */
export async function readRows(
  reader: EngineReader,
  asked: readonly TableLookups[],
): Promise<ReadonlyMap<string, readonly FoundRow[]>> {
  const values: unknown[] = []
  const parts = asked.flatMap(({ table, model, columns, by }) =>
    [...Map.groupBy(by, ({ columns, folded }) => JSON.stringify([columns, folded])).values()].map((group) => {
      const [{ columns: named, folded } = { columns: [] }] = group
      const select = `SELECT ${columns.map((column) => `t.${quoted(column)}`).join(', ')} FROM ${quoted(table)} t`
      const places = named.map((_, index) => `$${values.push(group.map((each) => each.values[index]))}::text[]`)
      // Each look-up uses an index, like those of `snapshot-sql.ts`.
      const where = named.map((column, index) => comparison(model, column, `n.v${index}`, folded))
      const given = `unnest(${places.join(', ')}) n(${named.map((_, index) => `v${index}`).join(', ')})`
      return `SELECT '${table}' AS found_in, to_jsonb(r) AS row
        FROM ${given}, LATERAL (${select} WHERE ${where.join(' AND ')} LIMIT ${maxRows}) r`
    }),
  )
  if (parts.length === 0) return new Map()
  const rows = await reader.query(z.object({ found_in: z.string(), row: foundRow }), {
    text: parts.join(' UNION ALL '),
    values,
  })
  const found = Map.groupBy(rows, (each) => each.found_in)
  return new Map([...found].map(([table, of]) => [table, of.map(({ row }) => row)]))
}

/** Values come as texts: one of the wrong type finds no row, and does not fail the transaction. */
function comparison(model: Model, column: string, value: string, folded: true | undefined): string {
  const name = `t.${quoted(column)}`
  if (folded) return `compared_name(${name}) = compared_name(${value})`
  if (column !== 'pk') return `${name}::text = ${value}`
  return model.key === 'integer'
    ? `${name} = CASE WHEN ${value} ~ '^[0-9]{1,9}$' THEN ${value}::integer END`
    : `${name} = CASE WHEN pg_input_is_valid(${value}, 'uuid') AND ${value} = lower(${value}) THEN ${value}::uuid END`
}

/** A column whose value names a row. `folded`: no two rows have the same, compared like names. */
export type NameColumn = { readonly column: string; readonly field: string; readonly folded: boolean }

/** The columns of a target's names: all models of a target have the same. */
export function nameColumns({ models: [model] }: ReferenceTarget): readonly NameColumn[] {
  return (model?.names ?? []).map((field) => ({
    field,
    column: model === undefined ? field : columnOf(model, field),
    folded: model?.fields.get(field)?.folded === true,
  }))
}

/** A name without a row. */
export type Unknown = { readonly name: string; readonly target: ReferenceTarget; readonly only: Only | undefined }

const similarRow = z.object({ name: z.string(), fits: z.string().nullable(), similarity: z.number() })

/** A name that is similar. `fits` is the row's value of the column by which the reference is restricted. */
export type Similar = z.output<typeof similarRow>

const maxSimilar = 10

/** A table with more rows has similar names for everything: fewer of them are compared. */
const manyRows = 10_000

/** Sets the least similarity of a name, by pg_trgm. The last ANALYZE gives the approximate number of rows. */
const thresholdFor = (table: string): Statement => ({
  text: `SELECT set_config('pg_trgm.similarity_threshold', CASE WHEN reltuples > $2 THEN '0.6' ELSE '0.3' END, true)
    FROM pg_class WHERE oid = $1::text::regclass`,
  values: [quoted(table), manyRows],
})

/**
 * @param withinMs the time that PostgreSQL may take
 * @returns names that are similar to an unknown one, of rows that the reference takes, the most similar first; null when
 *   that takes too long
 */
export async function readSimilar(
  reader: EngineReader,
  { name, target, only }: Unknown,
  withinMs: number,
): Promise<readonly Similar[] | null> {
  const parts = nameColumns(target).map(({ column }) => {
    const folded = `lower(t.${quoted(column)})`
    const fits = only === undefined ? 'NULL' : `t.${quoted(only.column)}::text`
    const taken = only?.values.map((value) => `'${value}'`).join(', ')
    const isTaken = taken === undefined ? '' : ` AND ${fits} IN (${taken})`
    return `(SELECT t.${quoted(column)} AS name, ${fits} AS fits,
      similarity(${folded}, lower($1::text))::float8 AS similarity FROM ${quoted(target.table)} t
      WHERE ${folded} % lower($1::text)${isTaken} ORDER BY 3 DESC, 1 LIMIT ${maxSimilar})`
  })
  if (parts.length === 0) return []
  const statement = unprepared({ text: parts.join(' UNION ALL '), values: [name] })
  return reader.attempt(similarRow, statement, { withinMs, settings: thresholdFor(target.table) })
}
