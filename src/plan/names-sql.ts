import { z } from 'zod'
import type { EngineReader } from '../db/engine-tx.ts'
import { unprepared } from '../db/raw.ts'
import type { Only, ReferenceTarget } from '../models/define.ts'
import { columnOf, quoted } from './statements.ts'

/** Reads the rows that a document names, and those that it probably means. */

const key = z.union([z.string(), z.int()])
const namedRow = z.looseObject({ pk: key })

/** A row with the columns that `trackedColumns` lists. */
export type NamedRow = z.output<typeof namedRow>

const namedRows = z.object({ found: z.record(z.string(), z.array(namedRow)) })

/** Of rows with one name; more than one is an error. */
const maxRows = 10

/** A column whose value names a row. Folded: no two rows have it in different cases of its letters. */
export type NameColumn = { readonly column: string; readonly field: string; readonly folded: boolean }

/** Where a target's names are stored: all models of a target have the same. */
export function nameColumns({ models: [model] }: ReferenceTarget): readonly NameColumn[] {
  return (model?.names ?? []).map((field) => ({
    field,
    column: model === undefined ? field : columnOf(model, field),
    folded: model?.fields.get(field)?.folded === true,
  }))
}

/** The columns that find a row, and those by which references are restricted. */
export function trackedColumns(target: ReferenceTarget, restricted: Iterable<string>): readonly string[] {
  const found = target.models.flatMap((model) => [
    ...model.identifiers.flat().map((name) => columnOf(model, name)),
    ...Object.keys(model.discriminator),
  ])
  return [...new Set(['pk', ...nameColumns(target).map(({ column }) => column), ...found, ...restricted])]
}

/** The names that a document uses of the rows of one table. */
export type Asked = {
  readonly target: ReferenceTarget
  readonly columns: readonly string[]
  readonly names: ReadonlySet<string>
}

/** One statement for all names of a document. @returns the rows by table; a row may be there twice */
export async function readNamed(
  reader: EngineReader,
  asked: readonly Asked[],
): Promise<Readonly<Record<string, readonly NamedRow[]>>> {
  const parts = asked.map(({ target, columns }, index) => {
    const select = `SELECT ${columns.map((column) => `t.${quoted(column)}`).join(', ')} FROM ${quoted(target.table)} t`
    // Each look-up is by an index, as in `snapshot-sql.ts`.
    const found = nameColumns(target).flatMap(({ column, folded }) => {
      const name = `t.${quoted(column)}`
      return [`${name} = n`, ...(folded ? [`lower(${name}) = lower(n)`] : [])]
    })
    const rows = found.map((where) => `(${select} WHERE ${where} LIMIT ${maxRows})`).join(' UNION ALL ')
    return `'${target.table}', ARRAY(SELECT to_jsonb(r) FROM unnest($${index + 1}::text[]) n, LATERAL (${rows}) r)`
  })
  const [answer] = await reader.query(namedRows, {
    text: `SELECT jsonb_build_object(${parts.join(', ')}) AS found`,
    values: asked.map(({ names }) => [...names]),
  })
  return answer?.found ?? {}
}

/** A name without a row. */
export type Unknown = { readonly name: string; readonly target: ReferenceTarget; readonly only: Only | undefined }

const similarRow = z.object({
  index: z.int(),
  name: z.string(),
  fits: z.string().nullable(),
  similarity: z.number(),
})

/** A name that is similar. `fits` is the row's value of the column by which the reference is restricted. */
export type Similar = Omit<z.output<typeof similarRow>, 'index'>

/** For each name. */
const maxSimilar = 10

/** @returns for each unknown name, similar names of rows that the reference takes, the most similar first */
export async function readSimilar(
  reader: EngineReader,
  unknown: readonly Unknown[],
): Promise<readonly (readonly Similar[])[]> {
  const values: string[] = []
  const parts = unknown.flatMap(({ name, target, only }, index) => {
    const place = `$${values.push(name)}::text`
    return nameColumns(target).map(({ column }) => {
      const folded = `lower(t.${quoted(column)})`
      const fits = only === undefined ? 'NULL' : `t.${quoted(only.column)}::text`
      const taken = only?.values.map((value) => `'${value}'`).join(', ')
      const isTaken = taken === undefined ? '' : ` AND ${fits} IN (${taken})`
      return `(SELECT ${index} AS index, t.${quoted(column)} AS name, ${fits} AS fits,
        similarity(${folded}, lower(${place}))::float8 AS similarity FROM ${quoted(target.table)} t
        WHERE ${folded} % lower(${place})${isTaken} ORDER BY 4 DESC, 2 LIMIT ${maxSimilar})`
    })
  })
  if (parts.length === 0) return []
  const rows = await reader.query(similarRow, unprepared({ text: parts.join(' UNION ALL '), values }))
  return unknown.map((_, index) => rows.filter((row) => row.index === index))
}
