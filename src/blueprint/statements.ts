import { type Statement, statement, unprepared } from '../db/sql.ts'
import type { Link, Member, Model, Values } from '../models/define.ts'
import type { Registry } from '../models/index.ts'

/**
 * The SQL of a model, made from its declaration. Texts depend on the declaration alone, so each is prepared once per
 * connection. Identifiers come from model files, values are always parameters.
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
  const place = model.members.get(name)?.place
  if (place?.in === 'column' || place?.in === 'sealed') return place.column
  throw new Error(`${model.name}: ${name} has no column of its own`)
}

/** What follows from a declaration alone is worked out once. */
function onceFor<Result>(work: (model: Model) => Result): (model: Model) => Result {
  const known = new WeakMap<Model, Result>()
  return (model) => known.getOrInsertComputed(model, work)
}

export const linksOf = onceFor((model): readonly [Member, Link][] =>
  [...model.members.values()].flatMap((member) =>
    member.place.in === 'link' ? [[member, member.place] as [Member, Link]] : [],
  ),
)

export const exclusiveLinks = onceFor((model) => linksOf(model).filter(([, link]) => link.exclusive === true))

/** All columns that hold something of the model's own. */
export function columnsOf(model: Model): string[] {
  const own = [...model.members.values()].flatMap(({ place }) =>
    place.in === 'column' || place.in === 'sealed' ? [place.column] : [],
  )
  return [
    'pk',
    ...new Set([
      ...own,
      ...Object.keys(model.fixed),
      ...(model.packed ? ['settings', 'secrets'] : []),
      ...(model.uuid ? ['uuid'] : []),
    ]),
  ]
}

/** Binds a stored value: JSON as text, everything else as it is. */
const bound = (json: boolean, value: unknown): unknown =>
  json && value !== null && value !== undefined ? JSON.stringify(value) : (value ?? null)

/** What a row holds, column by column: `values` by member, secrets already sealed. */
export type Packed = {
  columns: ReadonlyMap<string, { value: unknown; json: boolean }>
  links: ReadonlyMap<string, readonly unknown[]>
}

/**
 * Inserts a row with its links and mirrored references. Answers its `pk` when the database draws it, else no row.
 *
 * @param mirrored rows of the mirror table, by column
 */
export function insert(model: Model, registry: Registry, packed: Packed, mirrored: readonly Values[]): Statement {
  const columns = [...packed.columns.keys()]
  const links = linksOf(model).filter(([{ name }]) => (packed.links.get(name)?.length ?? 0) > 0)
  const shape = [columns, links.map(([{ name }]) => name), mirrored.length > 0].join('; ')
  const text = insertTexts(model).getOrInsertComputed(shape, () =>
    insertText(model, registry, columns, links, mirrored.length > 0),
  )
  const values = [...packed.columns.values()].map(({ value, json }) => bound(json, value))
  for (const [{ name }] of links) values.push(packed.links.get(name))
  if (mirrored.length > 0) values.push(JSON.stringify(mirrored))
  return statement(text, values)
}

/** By what is written. */
const insertTexts = onceFor(() => new Map<string, string>())

function insertText(
  model: Model,
  registry: Registry,
  columns: readonly string[],
  links: readonly [Member, Link][],
  isMirrored: boolean,
): string {
  let position = 0
  const next = () => `$${++position}`
  const slots = columns.map(next)
  const made = `INSERT INTO ${quoted(model.table)} (${columns.map(quoted).join(', ')}) VALUES (${slots.join(', ')})`
  const followers = links.map(
    ([member, { table, own, other }]) =>
      `INSERT INTO ${quoted(table)} (${quoted(own)}, ${quoted(other)}) SELECT made.pk, k FROM made, unnest(${next()}::${keyType(registry, member)}[]) k`,
  )
  if (model.mirror !== undefined && isMirrored) {
    const { table, own } = model.mirror
    followers.push(
      `INSERT INTO ${quoted(table)} (${quoted(own)}, ${mirrorColumns(model)}) SELECT made.pk, ${mirrorColumns(model, 'm')} FROM made, ${mirrorSource(model, next())}`,
    )
  }
  // Rows that nobody needs are not answered: describing them costs as much as writing some.
  const last = columns.includes('pk') ? followers.pop() : 'SELECT pk FROM made'
  if (last === undefined) return made
  const before = [`made AS (${made} RETURNING pk)`, ...followers.map((text, index) => `also${index} AS (${text})`)]
  return `WITH ${before.join(', ')} ${last}`
}

function keyType(registry: Registry, { name, reference }: Member): string {
  const family = registry.families.get(reference?.family ?? '')
  if (family === undefined) throw new Error(`${name} is a link without a known family`)
  return family.key
}

function mirrorColumns(model: Model, alias?: string): string {
  const names = ['member', 'position', ...Object.values(model.mirror?.columns ?? {})]
  return names.map((column) => (alias === undefined ? quoted(column) : `${alias}.${quoted(column)}`)).join(', ')
}

const mirrorSource = (model: Model, parameter: string) =>
  `jsonb_to_recordset(${parameter}::jsonb) AS m(member text, position integer, ${Object.values(
    model.mirror?.columns ?? {},
  )
    .map((column) => `${quoted(column)} uuid`)
    .join(', ')})`

/** Updates the changed columns and links of one row; nothing that stays equal is written. */
export function update(model: Model, registry: Registry, pk: string | number, packed: Packed): Statement[] {
  const statements: Statement[] = []
  const columns = [...packed.columns]
  if (columns.length > 0) {
    const values: unknown[] = [pk]
    const set = columns.map(([column, { value, json }]) => `${quoted(column)} = $${values.push(bound(json, value))}`)
    statements.push(unprepared(`UPDATE ${quoted(model.table)} SET ${set.join(', ')} WHERE pk = $1`, values))
  }
  for (const [member, { table, own, other }] of linksOf(model)) {
    const others = packed.links.get(member.name)
    if (others === undefined) continue
    const type = keyType(registry, member)
    statements.push(
      statement(
        `DELETE FROM ${quoted(table)} WHERE ${quoted(own)} = $1 AND NOT ${quoted(other)} = ANY($2::${type}[])`,
        [pk, others],
      ),
      statement(
        `INSERT INTO ${quoted(table)} (${quoted(own)}, ${quoted(other)}) SELECT $1, k FROM unnest($2::${type}[]) k WHERE NOT EXISTS (SELECT FROM ${quoted(table)} WHERE ${quoted(own)} = $1 AND ${quoted(other)} = k)`,
        [pk, others],
      ),
    )
  }
  return statements
}

/** Replaces the mirrored references of the named members. */
export function remirror(
  model: Model,
  pk: string | number,
  members: readonly string[],
  mirrored: readonly Values[],
): Statement[] {
  if (model.mirror === undefined || members.length === 0) return []
  const { table, own } = model.mirror
  const inserted = `INSERT INTO ${quoted(table)} (${quoted(own)}, ${mirrorColumns(model)}) SELECT $1, ${mirrorColumns(model, 'm')} FROM ${mirrorSource(model, '$2')}`
  return [
    statement(`DELETE FROM ${quoted(table)} WHERE ${quoted(own)} = $1 AND member = ANY($2)`, [pk, members]),
    ...(mirrored.length > 0 ? [statement(inserted, [pk, JSON.stringify(mirrored)])] : []),
  ]
}

export const remove = (model: Model, pk: string | number): Statement =>
  statement(`DELETE FROM ${quoted(model.table)} WHERE pk = $1`, [pk])
