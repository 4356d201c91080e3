import { type Statement, unprepared } from '../db/raw.ts'
import type { Field, Link, Model, Values } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import type { Step } from './step.ts'

/**
 * The SQL of a model, built from its declaration. Identifiers come from model files; values are always parameters. One
 * row and many are written by the same statements: rows are sent as one JSON list, and PostgreSQL gives its members the
 * types of the table's columns.
 */

export type Key = string | number

/** A row that was read: values by column, and linked keys by field. */
export type Row = {
  pk: Key
  links?: Readonly<Record<string, readonly Key[]>> | undefined
  [column: string]: unknown
}

/** Whether a row of the model's table is one of the model: other models may share the table. */
export const isRowOf = (
  { discriminator }: Pick<Model, 'discriminator'>,
  row: Readonly<Record<string, unknown>>,
): boolean => Object.entries(discriminator).every(([column, value]) => row[column] === value)

export const quoted = (column: string) => `"${column}"`

/** The conditions of {@link isRowOf} in SQL, on the table as `t`. Their values come from model files, too. */
export const ownRows = ({ discriminator }: Pick<Model, 'discriminator'>): string[] =>
  Object.entries(discriminator).map(([column, value]) => `t.${quoted(column)} = '${value}'`)

/** A text as a key, in SQL: NULL when it has not the form of one. */
export const asKey = (type: Model['key'], text: string): string =>
  `CASE WHEN ${text} ~ '${type === 'integer' ? '^[0-9]{1,9}$' : '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'}' THEN ${text}::${type} END`

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

/** The keys of a field, in SQL: in the rows `t` of the model, or beside them. @param target the table of these keys */
export function keysIn(model: Model, name: string, target = ''): { readonly value: string; readonly from: string } {
  const rows = `${quoted(model.table)} t`
  const { storage } = model.fields.get(name) ?? {}
  if (storage?.in === 'link')
    return {
      value: `l.${quoted(storage.other)}`,
      from: `${quoted(storage.table)} l JOIN ${rows} ON t.pk = l.${quoted(storage.own)}`,
    }
  const { table = '', own = '', columns } = model.referenceRows ?? {}
  const column = columns?.[target]
  if (storage?.in !== 'settings' || column === undefined)
    return { value: `t.${quoted(columnOf(model, name))}`, from: rows }
  return {
    value: `r.${quoted(column.name)}`,
    from: `${quoted(table)} r JOIN ${rows} ON t.pk = r.${quoted(own)} AND r.field = '${name}'`,
  }
}

/** Caches a result for each model, or each registry: it depends on the declarations alone. */
export function onceFor<Of extends object, Result>(work: (of: Of) => Result): (of: Of) => Result {
  const known = new WeakMap<Of, Result>()
  return (of) => known.getOrInsertComputed(of, work)
}

export const linksOf = onceFor((model: Model): readonly [Field, Link][] =>
  [...model.fields.values()].flatMap((field) =>
    field.storage.in === 'link' ? [[field, field.storage] as [Field, Link]] : [],
  ),
)

export const exclusiveLinks = onceFor((model: Model) => linksOf(model).filter(([, link]) => link.exclusive === true))

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

/** A row to store: values by column, with secrets sealed, and linked keys by field. */
export type StoredRow = {
  columns: ReadonlyMap<string, unknown>
  links: ReadonlyMap<string, readonly unknown[]>
}

/** A row to insert, with its reference rows by column. Its columns name the key. */
export type Inserted = { readonly row: StoredRow; readonly references: readonly Values[] }

/**
 * A row to change: its columns and links, and the fields whose reference rows are replaced.
 *
 * @property edits the links of which only some keys are added and removed: all others are kept
 */
export type Updated = Inserted & {
  readonly pk: Key
  readonly referring: readonly string[]
  readonly edits?: Step['edits'] | undefined
}

/**
 * Inserts rows with their links and reference rows, by one statement:
 *
 *     WITH also0 AS (INSERT INTO "group_roles" ("group_pk", "role_pk")
 *         SELECT own, other FROM jsonb_to_recordset($2::jsonb) AS v(own uuid, other uuid))
 *     INSERT INTO "groups" ("pk", "name") SELECT "pk", "name" FROM jsonb_populate_recordset(NULL::"groups", $1::jsonb) v
 *
 * PostgreSQL checks foreign keys when the statement ends, so the order of its parts does not matter.
 *
 * @param rows rows with the same columns
 */
export function insert(model: Model, registry: Registry, rows: readonly Inserted[]): Statement {
  const owned = rows.map((each) => ({ ...each, own: each.row.columns.get('pk') as Key }))
  const values = [JSON.stringify(rows.map(({ row }) => inJson(row)))]
  const followers: string[] = []
  for (const [field, link] of linksOf(model)) {
    const linked = owned.flatMap(({ own, row }) => (row.links.get(field.name) ?? []).map((other) => ({ own, other })))
    if (linked.length === 0) continue
    const source = `jsonb_to_recordset($${values.push(JSON.stringify(linked))}::jsonb) AS v(own ${model.key}, other ${keyType(registry, field)})`
    followers.push(`${insertInto(link.table, [link.own, link.other])} SELECT own, other FROM ${source}`)
  }
  const references = referenceRows(owned)
  if (references.length > 0) followers.push(insertReferences(model, `$${values.push(JSON.stringify(references))}`))
  const columns = namesOf(rows)
  const inserted = `${insertInto(model.table, columns)} SELECT ${columns.map(quoted).join(', ')} FROM ${rowsOf(model)}`
  return { text: followers.length === 0 ? inserted : `WITH ${followers.map(asPart).join(', ')} ${inserted}`, values }
}

const asPart = (text: string, index: number) => `also${index} AS (${text})`

/**
 * Updates the changed columns, links and reference rows. Links that stay are not written again.
 *
 * @param rows rows with the same columns, links and referring fields
 */
export function update(model: Model, registry: Registry, rows: readonly Updated[]): Statement[] {
  const statements: Statement[] = []
  const columns = namesOf(rows)
  const set = columns.map((column) => `${quoted(column)} = v.${quoted(column)}`).join(', ')
  const list = JSON.stringify(rows.map(({ pk, row }) => ({ ...inJson(row), pk })))
  const text = `UPDATE ${quoted(model.table)} t SET ${set} FROM ${rowsOf(model)} WHERE t.pk = v.pk`
  // Entries name many sets of fields: each would be a prepared statement of its own.
  if (columns.length > 0) statements.push(unprepared({ text, values: [list] }))
  for (const [field, link] of linksOf(model)) {
    if (rows.every(({ row }) => row.links.get(field.name) === undefined)) continue
    const type = keyType(registry, field)
    const source = `jsonb_to_recordset($1::jsonb) AS v(own ${model.key}, others ${type}[], removed ${type}[])`
    const linked = rows.map(({ pk, row, edits }) => {
      const edit = edits?.get(field.name)
      const others = edit === undefined ? (row.links.get(field.name) ?? []) : edit.add
      return { own: pk, others, removed: edit?.remove }
    })
    const values = [JSON.stringify(linked)]
    const [table, own, other] = [link.table, link.own, link.other].map(quoted)
    // A whole list is excluded by pairs, which PostgreSQL hashes. It would compare each member of an array in turn.
    const gone = linked.some(({ removed }) => removed !== undefined)
      ? `${source}, unnest(v.removed) k WHERE l.${own} = v.own AND l.${other} = k`
      : `${source} WHERE l.${own} = v.own AND (l.${own}, l.${other}) NOT IN (SELECT v.own, k FROM ${source}, unnest(v.others) k)`
    statements.push(
      { text: `DELETE FROM ${table} l USING ${gone}`, values },
      {
        text: `${insertInto(link.table, [link.own, link.other])} SELECT v.own, k FROM ${source}, unnest(v.others) k
          WHERE NOT EXISTS (SELECT FROM ${table} l WHERE l.${own} = v.own AND l.${other} = k)`,
        values,
      },
    )
  }
  const [{ referring = [] } = {}] = rows
  if (model.referenceRows === undefined || referring.length === 0) return statements
  const { table, own } = model.referenceRows
  statements.push({
    text: `DELETE FROM ${quoted(table)} WHERE ${quoted(own)} = ANY($1::${model.key}[]) AND field = ANY($2::text[])`,
    values: [rows.map(({ pk }) => pk), referring],
  })
  const references = referenceRows(rows.map(({ pk, references }) => ({ own: pk, references })))
  if (references.length > 0)
    statements.push({ text: insertReferences(model, '$1'), values: [JSON.stringify(references)] })
  return statements
}

export const remove = ({ table, key }: Model, rows: readonly Pick<Updated, 'pk'>[]): Statement => ({
  text: `DELETE FROM ${quoted(table)} WHERE pk = ANY($1::${key}[])`,
  values: [rows.map(({ pk }) => pk)],
})

const insertInto = (table: string, columns: readonly string[]) =>
  `INSERT INTO ${quoted(table)} (${columns.map(quoted).join(', ')})`

function keyType(registry: Registry, { name, reference }: Field): string {
  const target = registry.targets.get(reference?.target ?? '')
  if (target === undefined) throw new Error(`${name} is a link without a known reference target`)
  return target.key
}

const referenceRows = (rows: readonly { readonly own: Key; readonly references: readonly Values[] }[]) =>
  rows.flatMap(({ own, references }) => references.map((each) => ({ ...each, own })))

function insertReferences({ name, referenceRows, key }: Model, parameter: string): string {
  if (referenceRows === undefined) throw new Error(`${name} has no reference rows`)
  const { table, own, columns } = referenceRows
  const types = Object.values(columns)
  const names = ['field', 'position', ...types.map(({ name }) => name)]
  const declared = types.map(({ name, key }) => `${quoted(name)} ${key}`).join(', ')
  return `${insertInto(table, [own, ...names])} SELECT own, ${names.map(quoted).join(', ')}
    FROM jsonb_to_recordset(${parameter}::jsonb) AS v(own ${key}, field text, position integer, ${declared})`
}

const rowsOf = ({ table }: Model): string => `jsonb_populate_recordset(NULL::${quoted(table)}, $1::jsonb) v`

const namesOf = ([first]: readonly { readonly row: StoredRow }[]): string[] => [...(first?.row.columns.keys() ?? [])]

const inJson = ({ columns }: StoredRow): Record<string, unknown> =>
  Object.fromEntries([...columns].map(([column, value]) => [column, asMember(value)]))

/** Bytes as PostgreSQL writes them. */
const asMember = (value: unknown): unknown =>
  value instanceof Uint8Array ? `\\x${Buffer.from(value).toString('hex')}` : (value ?? null)
