import type { Statement } from '../db/raw.ts'
import type { KeyType, Model, Values } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { keyType, linksOf, quoted, type StoredRow } from './statements.ts'

/**
 * The SQL that writes several rows of a model, as `statements.ts` writes one. Rows are sent as one JSON list; PostgreSQL
 * gives its members the types of the table's columns.
 */

type Key = string | number

/** A row to insert, with its reference rows by column. Its columns name the key. */
export type Inserted = { readonly row: StoredRow; readonly references: readonly Values[] }

/** A row to change: its columns and links, and the fields whose reference rows are replaced. */
export type Updated = {
  readonly pk: Key
  readonly row: StoredRow
  readonly referring: readonly string[]
  readonly references: readonly Values[]
}

/** @param rows all with the same columns */
export function insertMany(model: Model, registry: Registry, rows: readonly Inserted[]): Statement[] {
  const columns = namesOf(rows).map(quoted).join(', ')
  const list = rows.map(({ row }) => inJson(row))
  const withKey = rows.map(({ row, references }) => ({ own: row.columns.get('pk')?.value as Key, row, references }))
  return [
    {
      text: `INSERT INTO ${quoted(model.table)} (${columns}) SELECT ${columns} FROM ${rowsOf(model)}`,
      values: [JSON.stringify(list)],
    },
    ...linksOf(model).flatMap(([{ name, reference }, { table, own, other }]) => {
      const linked = withKey.flatMap(({ own, row }) => (row.links.get(name) ?? []).map((other) => ({ own, other })))
      const source = `jsonb_to_recordset($1::jsonb) AS v(own ${model.key}, other ${keyType(registry, { name, reference })})`
      const text = `INSERT INTO ${quoted(table)} (${quoted(own)}, ${quoted(other)}) SELECT own, other FROM ${source}`
      return linked.length === 0 ? [] : [{ text, values: [JSON.stringify(linked)] }]
    }),
    ...insertReferences(model, withKey),
  ]
}

/** @param rows all with the same columns, links and referring fields */
export function updateMany(model: Model, registry: Registry, rows: readonly Updated[]): Statement[] {
  const statements: Statement[] = []
  const columns = namesOf(rows)
  const set = columns.map((column) => `${quoted(column)} = v.${quoted(column)}`).join(', ')
  const list = JSON.stringify(rows.map(({ pk, row }) => ({ ...inJson(row), pk })))
  const text = `UPDATE ${quoted(model.table)} t SET ${set} FROM ${rowsOf(model)} WHERE t.pk = v.pk`
  if (columns.length > 0) statements.push({ text, values: [list] })
  for (const [{ name, reference }, { table, own, other }] of linksOf(model)) {
    if (rows.every(({ row }) => row.links.get(name) === undefined)) continue
    const others = `own ${model.key}, others ${keyType(registry, { name, reference })}[]`
    const source = `jsonb_to_recordset($1::jsonb) AS v(${others})`
    const values = [JSON.stringify(rows.map(({ pk, row }) => ({ own: pk, others: row.links.get(name) ?? [] })))]
    const [table_, own_, other_] = [table, own, other].map(quoted)
    statements.push(
      {
        text: `DELETE FROM ${table_} l USING ${source} WHERE l.${own_} = v.own AND NOT l.${other_} = ANY(v.others)`,
        values,
      },
      {
        text: `INSERT INTO ${table_} (${own_}, ${other_}) SELECT v.own, k FROM ${source}, unnest(v.others) k
          WHERE NOT EXISTS (SELECT FROM ${table_} l WHERE l.${own_} = v.own AND l.${other_} = k)`,
        values,
      },
    )
  }
  const [{ referring = [] } = {}] = rows
  if (model.referenceRows === undefined || referring.length === 0) return statements
  const { table, own } = model.referenceRows
  const keys = rows.map(({ pk }) => pk)
  return [
    ...statements,
    {
      text: `DELETE FROM ${quoted(table)} WHERE ${quoted(own)} = ANY($1::${model.key}[]) AND field = ANY($2::text[])`,
      values: [keys, referring],
    },
    ...insertReferences(
      model,
      rows.map(({ pk, references }) => ({ own: pk, references })),
    ),
  ]
}

export const removeMany = ({ table, key }: Model, keys: readonly Key[]): Statement => ({
  text: `DELETE FROM ${quoted(table)} WHERE pk = ANY($1::${key}[])`,
  values: [keys],
})

function insertReferences(
  { referenceRows, key }: Model,
  rows: readonly { readonly own: Key; readonly references: readonly Values[] }[],
): Statement[] {
  const list = rows.flatMap(({ own, references }) => references.map((each) => ({ ...each, own })))
  if (referenceRows === undefined || list.length === 0) return []
  const { table, own, columns } = referenceRows
  const types: [string, KeyType][] = Object.values(columns).map(({ name, key }) => [name, key])
  const names = ['field', 'position', ...types.map(([name]) => quoted(name))].join(', ')
  const declared = types.map(([name, type]) => `${quoted(name)} ${type}`).join(', ')
  return [
    {
      text: `INSERT INTO ${quoted(table)} (${quoted(own)}, ${names}) SELECT own, ${names}
        FROM jsonb_to_recordset($1::jsonb) AS v(own ${key}, field text, position integer, ${declared})`,
      values: [JSON.stringify(list)],
    },
  ]
}

const rowsOf = ({ table }: Model): string => `jsonb_populate_recordset(NULL::${quoted(table)}, $1::jsonb) v`

const namesOf = ([first]: readonly { readonly row: StoredRow }[]): string[] => [...(first?.row.columns.keys() ?? [])]

/** The columns of a row as members of a JSON object. */
const inJson = ({ columns }: StoredRow): Record<string, unknown> =>
  Object.fromEntries([...columns].map(([column, { value }]) => [column, asMember(value)]))

/** Bytes as PostgreSQL writes them. */
const asMember = (value: unknown): unknown =>
  value instanceof Uint8Array ? `\\x${Buffer.from(value).toString('hex')}` : (value ?? null)
