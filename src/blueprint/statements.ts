import { type Statement, statement, unprepared } from '../db/sql.ts'
import type { Link, Member, Model, Values } from '../models/define.ts'
import type { Registry } from '../models/index.ts'

/**
 * The SQL of a model, made from its declaration. Texts depend on the declaration alone, so each is prepared once per
 * connection. Identifiers come from model files, values are always parameters.
 */

/** What one look at the database answers about an entry. */
export type Look = {
  /** Rows that the identifiers match, two at most: more than one is an error. */
  rows: Row[]
  /** Keys that were referred to and are not there, by family. */
  missing: Record<string, (string | number)[]>
  /** Rows that hold a value which must be unique, by member. */
  taken: Record<string, { pk: string | number; label: string; value: string | number }[]>
}

export type Row = { pk: string | number; [column: string]: unknown }

const quoted = (column: string) => `"${column}"`

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

const linksOf = (model: Model): [Member, Link][] =>
  [...model.members.values()].flatMap((member) => (member.place.in === 'link' ? [[member, member.place] as [Member, Link]] : []))

export const exclusiveLinks = (model: Model) => linksOf(model).filter(([, link]) => link.exclusive === true)

/** Families that the model refers to, sorted, so that the parameters have a fixed order. */
export const referredFamilies = (model: Model): string[] =>
  [...new Set([...model.members.values()].flatMap(({ reference }) => (reference === undefined ? [] : [reference.family])))].sort()

/** All columns that hold something of the model's own. */
function columnsOf(model: Model): string[] {
  const own = [...model.members.values()].flatMap(({ place }) => (place.in === 'column' || place.in === 'sealed' ? [place.column] : []))
  return [
    'pk',
    ...new Set([...own, ...Object.keys(model.fixed), ...(model.packed ? ['settings', 'secrets'] : []), ...(model.uuid ? ['uuid'] : [])]),
  ]
}

/**
 * One statement that answers all an entry needs to know: its row, missing references and taken unique values.
 *
 * @param by identifier members with their values
 * @param referred keys by family; @param uniques values by unique member or exclusive link
 */
export function look(
  model: Model,
  registry: Registry,
  by: ReadonlyMap<string, unknown>,
  referred: Readonly<Record<string, readonly unknown[]>>,
  uniques: Readonly<Record<string, unknown>>,
): Statement {
  const families = referredFamilies(model)
  const exclusive = exclusiveLinks(model)
  const values = [
    ...by.values(),
    ...families.map((family) => referred[family] ?? []),
    ...model.unique.map((name) => uniques[name] ?? null),
    ...exclusive.map(([{ name }]) => uniques[name] ?? []),
  ]
  return statement(lookText(model, registry, [...by.keys()]), values)
}

const lookTexts = new Map<string, string>()

function lookText(model: Model, registry: Registry, by: readonly string[]): string {
  const cacheKey = `${model.name} ${by.join()}`
  const cached = lookTexts.get(cacheKey)
  if (cached !== undefined) return cached
  let position = 0
  const next = () => `$${++position}`
  const where = by.map((name) => `t.${quoted(columnOf(model, name))} = ${next()}`).join(' AND ')
  const links = linksOf(model).map(
    ([{ name }, link]) =>
      `(SELECT coalesce(jsonb_agg(l.${quoted(link.other)} ORDER BY l.${quoted(link.other)}), '[]') FROM ${quoted(link.table)} l WHERE l.${quoted(link.own)} = t.pk) AS ${quoted(`link:${name}`)}`,
  )
  const rows = `SELECT ${[...columnsOf(model).map((column) => `t.${quoted(column)}`), ...links].join(', ')} FROM ${quoted(model.table)} t WHERE ${where || 'false'} LIMIT 2`
  const missing = referredFamilies(model).map((name) => {
    const family = registry.families.get(name)
    if (family === undefined) throw new Error(`${model.name} refers to ${name}, which no model is`)
    const only = family.only === undefined ? '' : ` AND f.${quoted(family.only.column)} IN (${family.only.values.map((value) => `'${value}'`).join(', ')})`
    return `'${name}', (SELECT coalesce(jsonb_agg(k), '[]') FROM unnest(${next()}::${family.key}[]) k WHERE NOT EXISTS (SELECT FROM ${quoted(family.table)} f WHERE f.pk = k${only}))`
  })
  const label = `t.${quoted(labelColumn(model))} AS label`
  const taken = model.unique.map((name) => {
    const column = `t.${quoted(columnOf(model, name))}`
    return `'${name}', (SELECT coalesce(jsonb_agg(u), '[]') FROM (SELECT t.pk, ${label}, ${column} AS value FROM ${quoted(model.table)} t WHERE ${column} = ${next()} LIMIT 1) u)`
  })
  const linked = exclusiveLinks(model).map(
    ([{ name, reference }, link]) =>
      `'${name}', (SELECT coalesce(jsonb_agg(u), '[]') FROM (SELECT t.pk, ${label}, l.${quoted(link.other)} AS value FROM ${quoted(link.table)} l JOIN ${quoted(model.table)} t ON t.pk = l.${quoted(link.own)} WHERE l.${quoted(link.other)} = ANY(${next()}::${registry.families.get(reference?.family ?? '')?.key}[])) u)`,
  )
  const text = `SELECT (SELECT coalesce(jsonb_agg(r), '[]') FROM (${rows}) r) AS rows, jsonb_build_object(${missing.join(', ')}) AS missing, jsonb_build_object(${[...taken, ...linked].join(', ')}) AS taken`
  lookTexts.set(cacheKey, text)
  return text
}

/** Binds a stored value: JSON as text, everything else as it is. */
const bound = (json: boolean, value: unknown): unknown => (json && value !== null && value !== undefined ? JSON.stringify(value) : (value ?? null))

/** What a row holds, column by column: `values` by member, secrets already sealed. */
export type Packed = { columns: ReadonlyMap<string, { value: unknown; json: boolean }>; links: ReadonlyMap<string, readonly unknown[]> }

/**
 * Inserts a row with its links and mirrored references; answers its `pk`.
 *
 * @param mirrored rows of the mirror table, by column
 */
export function insert(model: Model, registry: Registry, packed: Packed, mirrored: readonly Values[]): Statement {
  const values: unknown[] = []
  const next = (value: unknown) => `$${values.push(value)}`
  const columns = [...packed.columns]
  const slots = columns.map(([, { value, json }]) => next(bound(json, value)))
  const parts = [
    `made AS (INSERT INTO ${quoted(model.table)} (${columns.map(([column]) => quoted(column)).join(', ')}) VALUES (${slots.join(', ')}) RETURNING pk)`,
  ]
  for (const [index, [member, link]] of linksOf(model).entries()) {
    const others = next(packed.links.get(member.name) ?? [])
    parts.push(
      `link${index} AS (INSERT INTO ${quoted(link.table)} (${quoted(link.own)}, ${quoted(link.other)}) SELECT made.pk, k FROM made, unnest(${others}::${keyType(registry, member)}[]) k)`,
    )
  }
  if (model.mirror !== undefined) {
    const { table, own } = model.mirror
    parts.push(
      `mirror AS (INSERT INTO ${quoted(table)} (${quoted(own)}, ${mirrorColumns(model)}) SELECT made.pk, ${mirrorColumns(model, 'm')} FROM made, ${mirrorSource(model, next(JSON.stringify(mirrored)))})`,
    )
  }
  return statement(`WITH ${parts.join(', ')} SELECT pk FROM made`, values)
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
  `jsonb_to_recordset(${parameter}::jsonb) AS m(member text, position integer, ${Object.values(model.mirror?.columns ?? {}).map((column) => `${quoted(column)} uuid`).join(', ')})`

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
      statement(`DELETE FROM ${quoted(table)} WHERE ${quoted(own)} = $1 AND NOT ${quoted(other)} = ANY($2::${type}[])`, [pk, others]),
      statement(
        `INSERT INTO ${quoted(table)} (${quoted(own)}, ${quoted(other)}) SELECT $1, k FROM unnest($2::${type}[]) k WHERE NOT EXISTS (SELECT FROM ${quoted(table)} WHERE ${quoted(own)} = $1 AND ${quoted(other)} = k)`,
        [pk, others],
      ),
    )
  }
  return statements
}

/** Replaces the mirrored references of the named members. */
export function remirror(model: Model, pk: string | number, members: readonly string[], mirrored: readonly Values[]): Statement[] {
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
