import { type Statement, statement } from '../db/sql.ts'
import type { Model } from '../models/define.ts'
import type { Registry } from '../models/index.ts'
import { columnOf, columnsOf, exclusiveLinks, labelColumn, linksOf, nextKey, quoted, type Row } from './statements.ts'

/** What one look at the database answers about an entry. */
export type Look = {
  /** Rows that the identifiers match, two at most: more than one is an error. */
  rows: Row[]
  /** The key that a new row will have; null when there is a row, or nobody asked. */
  fresh: number | null
  /** Keys that were referred to and are not there, by family. */
  missing: Record<string, (string | number)[]>
  /** Rows that hold a value which must be unique, by member. */
  taken: Record<string, { pk: string | number; label: string; value: string | number }[]>
}

/** What an entry asks: only what it names is looked for. */
export type Question = {
  /** Draw the key of a new row already, so that what refers to it can be sent without waiting. */
  readonly draw: boolean
  /** Identifier members with their values; none when they cannot be used. */
  readonly by: ReadonlyMap<string, unknown>
  /** Keys that it refers to, by family; no family without a key. */
  readonly referred: ReadonlyMap<string, readonly (string | number)[]>
  /** The one value of a member that must be unique, or the keys of an exclusive link. */
  readonly claimed: ReadonlyMap<string, readonly (string | number)[]>
}

export type Asked = { readonly model: Model; readonly question: Question }

/**
 * One statement that answers all that these entries need to know: their rows, missing references and taken unique
 * values. Its one row holds the answers in order (docs/adr/0005-one-look-per-entry.md).
 */
export function look(registry: Registry, asked: readonly Asked[]): Statement {
  const shape = asked.map(shapeOf).join('; ')
  const text = texts.getOrInsertComputed(shape, () => lookText(registry, asked))
  const values = asked.flatMap(({ question: { by, referred, claimed } }) => [
    ...by.values(),
    ...referred.values(),
    ...claimed.values(),
  ])
  return statement(text, values)
}

const shapeOf = ({ model, question: { draw, by, referred, claimed } }: Asked): string =>
  `${model.name} ${draw} ${[by, referred, claimed].map((each) => [...each.keys()].join()).join(' ')}`

/** One text for each shape of question: as many as there are ways that documents are written. */
const texts = new Map<string, string>()

function lookText(registry: Registry, asked: readonly Asked[]): string {
  let position = 0
  const next = () => `$${++position}`
  const looks = asked.map(({ model, question: { draw, by, referred, claimed } }) => {
    const rows = rowsPart(model, [...by.keys()], next)
    const missing = [...referred.keys()].map((family) => missingPart(registry, family, next))
    const taken = [...claimed.keys()].map((name) => takenPart(model, registry, name, next))
    const others = `'missing', jsonb_build_object(${missing.join(', ')}), 'taken', jsonb_build_object(${taken.join(', ')})`
    if (!draw || model.key !== 'integer') return `jsonb_build_object('rows', ${rows}, ${others}, 'fresh', NULL)`
    // OFFSET keeps the rows from being looked for twice.
    const drawn = `CASE WHEN cardinality(s.rows) = 0 THEN ${nextKey(model.table)} END`
    return `(SELECT jsonb_build_object('rows', s.rows, ${others}, 'fresh', ${drawn}) FROM (SELECT ${rows} AS rows OFFSET 0) s)`
  })
  return `SELECT jsonb_build_array(${looks.join(', ')}) AS looks`
}

type Next = () => string

// Below, LIMIT 1 makes each key one look-up in an index. A join would be planned once, while a table is young and small,
// as a scan of all of it, and kept when it has grown.

function rowsPart(model: Model, by: readonly string[], next: Next): string {
  if (by.length === 0) return `'{}'::jsonb[]`
  const where = by.map((name) => `t.${quoted(columnOf(model, name))} = ${next()}`)
  const links = linksOf(model).map(([{ name }, { table, own, other }]) => {
    const keys = `SELECT l.${quoted(other)} FROM ${quoted(table)} l WHERE l.${quoted(own)} = t.pk ORDER BY 1`
    return `ARRAY(${keys}) AS ${quoted(`link:${name}`)}`
  })
  const columns = columnsOf(model).map((column) => `t.${quoted(column)}`)
  const rows = `SELECT ${[...columns, ...links].join(', ')} FROM ${quoted(model.table)} t WHERE ${where.join(' AND ')} LIMIT 2`
  return `ARRAY(SELECT to_jsonb(r) FROM (${rows}) r)`
}

function missingPart(registry: Registry, name: string, next: Next): string {
  const family = registry.families.get(name)
  if (family === undefined) throw new Error(`no model is called ${name}`)
  const values = family.only?.values.map((value) => `'${value}'`).join(', ')
  const only = family.only === undefined ? '' : ` AND f.${quoted(family.only.column)} IN (${values})`
  const there = `SELECT true FROM ${quoted(family.table)} f WHERE f.pk = k${only} LIMIT 1`
  return `'${name}', ARRAY(SELECT k FROM unnest(${next()}::${family.key}[]) k WHERE (${there}) IS NULL)`
}

function takenPart(model: Model, registry: Registry, name: string, next: Next): string {
  const label = `t.${quoted(labelColumn(model))} AS label`
  const [, link] = exclusiveLinks(model).find(([member]) => member.name === name) ?? []
  const family = registry.families.get(model.members.get(name)?.reference?.family ?? '')
  const from = `${quoted(model.table)} t`
  const [value, holders] =
    link === undefined
      ? [`t.${quoted(columnOf(model, name))}`, from]
      : [`l.${quoted(link.other)}`, `${quoted(link.table)} l JOIN ${from} ON t.pk = l.${quoted(link.own)}`]
  const found = `SELECT t.pk, ${label}, ${value} AS value FROM ${holders} WHERE ${value} = k LIMIT 1`
  return `'${name}', ARRAY(SELECT to_jsonb(u) FROM unnest(${next()}::${family?.key ?? 'text'}[]) k, LATERAL (${found}) u)`
}
