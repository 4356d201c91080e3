import { type Statement, unprepared } from '../db/raw.ts'
import type { Field, Link, Model, Values } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'

/**
 * The SQL of a model, built from its declaration. A text depends on the declaration alone, so PostgreSQL prepares it once
 * per connection. Identifiers come from model files; values are always parameters.
 */

export type Row = { pk: string | number; [column: string]: unknown }

export const quoted = (column: string) => `"${column}"`

/** The next number of a table's sequence, in SQL. Prisma names a sequence after its table. */
export const nextKey = (table: string) => `nextval('${quoted(`${table}_pk_seq`)}')`

/** The column that names a row of the model in messages. */
export function labelColumn(model: Model): string {
  const [[first] = []] = model.identifiers
  return first === undefined ? 'pk' : columnOf(model, first)
}

export function columnOf(model: Model, name: string): string {
  if (name === 'pk') return 'pk'
  const storage = model.fields.get(name)?.storage
  if (storage?.in === 'column' || storage?.in === 'sealed') return storage.column
  throw new Error(`${model.name}: ${name} has no column of its own`)
}

/** Caches a result per model: it depends on the declaration alone. */
function onceFor<Result>(work: (model: Model) => Result): (model: Model) => Result {
  const known = new WeakMap<Model, Result>()
  return (model) => known.getOrInsertComputed(model, work)
}

export const linksOf = onceFor((model): readonly [Field, Link][] =>
  [...model.fields.values()].flatMap((field) =>
    field.storage.in === 'link' ? [[field, field.storage] as [Field, Link]] : [],
  ),
)

export const exclusiveLinks = onceFor((model) => linksOf(model).filter(([, link]) => link.exclusive === true))

/** All columns that the model reads. */
export function columnsOf(model: Model): string[] {
  const own = [...model.fields.values()].flatMap(({ storage }) =>
    storage.in === 'column' || storage.in === 'sealed' ? [storage.column] : [],
  )
  return [
    'pk',
    ...new Set([
      ...own,
      ...Object.keys(model.discriminator),
      ...(model.storedInJson ? ['settings', 'secrets'] : []),
      ...(model.uuid ? ['uuid'] : []),
    ]),
  ]
}

/** A stored value as a parameter: JSON as text, all others unchanged. */
const bound = (json: boolean, value: unknown): unknown =>
  json && value !== null && value !== undefined ? JSON.stringify(value) : (value ?? null)

/** A row as it is stored: values by column, with secrets sealed, and linked keys by field. */
export type StoredRow = {
  columns: ReadonlyMap<string, { value: unknown; json: boolean }>
  links: ReadonlyMap<string, readonly unknown[]>
}

/**
 * Inserts a row with its links and reference rows. Its columns name the key.
 *
 * @param references rows of the model's reference table, by column
 */
export function insert(model: Model, registry: Registry, row: StoredRow, references: readonly Values[]): Statement {
  const columns = [...row.columns.keys()]
  const links = linksOf(model).filter(([{ name }]) => (row.links.get(name)?.length ?? 0) > 0)
  const shape = [columns, links.map(([{ name }]) => name), references.length > 0].join('; ')
  const text = insertTexts(model).getOrInsertComputed(shape, () =>
    insertText(model, registry, columns, links, references.length > 0),
  )
  const values = [...row.columns.values()].map(({ value, json }) => bound(json, value))
  for (const [{ name }] of links) values.push(row.links.get(name))
  if (references.length > 0) values.push(JSON.stringify(references))
  return { text, values }
}

/** By the shape of the inserted row. */
const insertTexts = onceFor(() => new Map<string, string>())

function insertText(
  model: Model,
  registry: Registry,
  columns: readonly string[],
  links: readonly [Field, Link][],
  hasReferences: boolean,
): string {
  let position = 0
  const next = () => `$${++position}`
  const slots = columns.map(next)
  const inserted = `INSERT INTO ${quoted(model.table)} (${columns.map(quoted).join(', ')}) VALUES (${slots.join(', ')})`
  const followers = links.map(
    ([field, { table, own, other }]) =>
      `INSERT INTO ${quoted(table)} (${quoted(own)}, ${quoted(other)}) SELECT made.pk, k FROM made, unnest(${next()}::${keyType(registry, field)}[]) k`,
  )
  if (model.referenceRows !== undefined && hasReferences) {
    const { table, own } = model.referenceRows
    followers.push(
      `INSERT INTO ${quoted(table)} (${quoted(own)}, ${referenceColumns(model)}) SELECT made.pk, ${referenceColumns(model, 'm')} FROM made, ${referenceSource(model, next())}`,
    )
  }
  const last = followers.pop()
  if (last === undefined) return inserted
  const before = [`made AS (${inserted} RETURNING pk)`, ...followers.map((text, index) => `also${index} AS (${text})`)]
  return `WITH ${before.join(', ')} ${last}`
}

export function keyType(registry: Registry, { name, reference }: Pick<Field, 'name' | 'reference'>): string {
  const target = registry.targets.get(reference?.target ?? '')
  if (target === undefined) throw new Error(`${name} is a link without a known reference target`)
  return target.key
}

function referenceColumns(model: Model, alias?: string): string {
  const columns = Object.values(model.referenceRows?.columns ?? {})
  const names = ['field', 'position', ...columns.map(({ name }) => name)]
  return names.map((column) => (alias === undefined ? quoted(column) : `${alias}.${quoted(column)}`)).join(', ')
}

const referenceSource = (model: Model, parameter: string) =>
  `jsonb_to_recordset(${parameter}::jsonb) AS m(field text, position integer, ${Object.values(
    model.referenceRows?.columns ?? {},
  )
    .map(({ name, key }) => `${quoted(name)} ${key}`)
    .join(', ')})`

/** Updates the changed columns and links of one row. Equal links are not written again. */
export function update(model: Model, registry: Registry, pk: string | number, row: StoredRow): Statement[] {
  const statements: Statement[] = []
  const columns = [...row.columns]
  if (columns.length > 0) {
    const values: unknown[] = [pk]
    const set = columns.map(([column, { value, json }]) => `${quoted(column)} = $${values.push(bound(json, value))}`)
    statements.push(unprepared({ text: `UPDATE ${quoted(model.table)} SET ${set.join(', ')} WHERE pk = $1`, values }))
  }
  for (const [field, { table, own, other }] of linksOf(model)) {
    const others = row.links.get(field.name)
    if (others === undefined) continue
    const type = keyType(registry, field)
    statements.push(
      {
        text: `DELETE FROM ${quoted(table)} WHERE ${quoted(own)} = $1 AND NOT ${quoted(other)} = ANY($2::${type}[])`,
        values: [pk, others],
      },
      {
        text: `INSERT INTO ${quoted(table)} (${quoted(own)}, ${quoted(other)}) SELECT $1, k FROM unnest($2::${type}[]) k WHERE NOT EXISTS (SELECT FROM ${quoted(table)} WHERE ${quoted(own)} = $1 AND ${quoted(other)} = k)`,
        values: [pk, others],
      },
    )
  }
  return statements
}

/** Replaces the reference rows of the named fields. */
export function updateReferenceRows(
  model: Model,
  pk: string | number,
  fields: readonly string[],
  references: readonly Values[],
): Statement[] {
  if (model.referenceRows === undefined || fields.length === 0) return []
  const { table, own } = model.referenceRows
  const inserted = `INSERT INTO ${quoted(table)} (${quoted(own)}, ${referenceColumns(model)}) SELECT $1, ${referenceColumns(model, 'm')} FROM ${referenceSource(model, '$2')}`
  return [
    { text: `DELETE FROM ${quoted(table)} WHERE ${quoted(own)} = $1 AND field = ANY($2)`, values: [pk, fields] },
    ...(references.length > 0 ? [{ text: inserted, values: [pk, JSON.stringify(references)] }] : []),
  ]
}

export const remove = (model: Model, pk: string | number): Statement => ({
  text: `DELETE FROM ${quoted(model.table)} WHERE pk = $1`,
  values: [pk],
})
