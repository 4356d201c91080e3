import { z } from 'zod'
import type { Statement } from '../db/raw.ts'
import type { Field, Link, Model, Only, Reference } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { columnOf, columnsOf, keysIn, labelColumn, linksOf, nextKey, quoted, type Row } from './statements.ts'
import { waysToFind } from './ways-to-find.ts'

const key = z.union([z.string(), z.int()])

const storedRow: z.ZodType<Row> = z.looseObject({ pk: key, links: z.record(z.string(), z.array(key)).optional() })

/** The rows of the database that concern an entry. */
export const seen = z.object({
  /** Rows that the identifiers match, two at most: more than one is an error. */
  rows: z.array(storedRow),
  /** The key for a new row; null when the row exists, or no key was requested. */
  newKey: z.int().nullable(),
  /** Keys of references that do not fit, by `referenceName`. `found` is the row's value; null without a row. */
  unfit: z.record(z.string(), z.array(z.object({ key, found: z.string().nullable() }))),
  /** Rows that already have a value that must be unique, by field: the values for their model, name and owner. */
  taken: z.record(z.string(), z.array(storedRow.and(z.object({ value: key })))),
  /** Rows that the entry's row claims, or of which a reference needs a value: the same, by field. */
  claimed: z.record(z.string(), z.array(storedRow)),
  /** The rows that refer to the same row by the field that is limited; none for a model without a limit. */
  counted: z.array(key),
})

export type Seen = z.output<typeof seen>

/** The question for one entry: only values that the entry names. */
export type Question = {
  /** Whether the key of a new row is taken from its sequence now: statements that refer to it need not wait for the insert. */
  readonly takesKey: boolean
  /** The fields of `waysToFind` with their values; empty when a value is unknown or has errors. */
  readonly by: ReadonlyMap<string, unknown>
  /** Fields in join tables whose keys are read with the row. */
  readonly links: readonly string[]
  /** The fields among them of which only some keys are read: a row may have very many. */
  readonly within: ReadonlyMap<string, readonly (string | number)[]>
  /** Keys that the entry refers to, by `referenceName`; none without a key. */
  readonly referred: ReadonlyMap<string, { readonly reference: Reference; readonly keys: readonly (string | number)[] }>
  /** The values that must be unique, or the keys of an exclusive link, by field. */
  readonly exclusive: ReadonlyMap<string, readonly (string | number)[]>
  /** The keys of the rows, by field of `model.claims`, and by field that needs a value of its row. */
  readonly claims: ReadonlyMap<string, readonly (string | number)[]>
  /** The key in the field that is limited. */
  readonly counted: string | number | undefined
}

/** The parts of a question by the entry alone, and those by the values that were sent. */
export type StepUse = Pick<Question, 'takesKey' | 'links'>
export type Asked = Omit<Question, keyof StepUse>

export const keyRow = z.object({ key: z.int() })

/** Takes the next key of a model, for a new row whose name another row of the database has. */
export const keyStatement = ({ table }: Model): Statement => ({
  text: `SELECT ${nextKey(table)}::integer AS key`,
  values: [],
})

/** A reference target with its restriction: `flow authorization`. */
export const referenceName = ({ target, only }: Reference): string => [target, ...(only?.values ?? [])].join(' ')

/** The restriction of a reference: that of the field, or that of the target. */
export const onlyOf = ({ targets }: Registry, { target, only }: Reference): Only | undefined =>
  only ?? targets.get(target)?.only

export type EntryQuestion = { readonly model: Model; readonly question: Question }

/**
 * One statement that reads all rows for these entries: their own, missing references and unique values in use. Its one row holds
 * an answer for each entry, in order (docs/adr/0005-one-statement-per-snapshot.md). The statement for a role, whose row may
 * exist:
 *
 *     SELECT jsonb_build_array(jsonb_build_object(
 *       'rows', ARRAY(SELECT to_jsonb(r) FROM (SELECT t."pk", t."name", t."permissions"
 *         FROM "roles" t WHERE t."name" = $1 LIMIT 2) r),
 *       'unfit', jsonb_build_object(),
 *       'taken', jsonb_build_object('name', ARRAY(SELECT to_jsonb(u) FROM unnest($2::text[]) k, LATERAL (
 *         (SELECT t."pk", t."name", t."name" AS value FROM "roles" t WHERE t."name" = k LIMIT 1) UNION ALL
 *         (SELECT t."pk", t."name", t."name" AS value FROM "roles" t WHERE compared_name(t."name") = compared_name(k) LIMIT 1)
 *         LIMIT 1) u)),
 *       'claimed', jsonb_build_object(), 'counted', '[]'::jsonb, 'newKey', NULL)) AS seen
 */
export function snapshotStatement(registry: Registry, asked: readonly EntryQuestion[]): Statement {
  const shape = asked.map(shapeOf).join('; ')
  const text = texts.getOrInsertComputed(shape, () => {
    let position = 0
    const answers = asked.map((each) => answerPart(registry, each, () => `$${++position}`))
    return `SELECT jsonb_build_array(${answers.join(', ')}) AS seen`
  })
  return { text, values: asked.flatMap(({ question }) => valuesOf(question)) }
}

/**
 * The same for any number of entries of one shape: the question of one entry, once for each. Its one row holds an answer for each
 * entry, in order.
 *
 * @param asked questions of one `shapeOf`
 */
export function snapshotOfMany(registry: Registry, asked: readonly EntryQuestion[]): Statement {
  const [first] = asked
  if (first === undefined) throw new Error('no entry asks')
  const text = texts.getOrInsertComputed(`many ${shapeOf(first)}`, () => {
    const columns = ['"at" integer']
    const answer = answerPart(registry, first, (type) => {
      const column = `"p${columns.length - 1}"`
      columns.push(`${column} ${type}`)
      return `q.${column}`
    })
    return `SELECT jsonb_agg(${answer} ORDER BY q."at") AS seen FROM jsonb_to_recordset($1::jsonb) AS q(${columns.join(', ')})`
  })
  const rows = asked.map(({ question }, at) => ({
    at,
    ...Object.fromEntries(valuesOf(question).map((value, index) => [`p${index}`, value])),
  }))
  return { text, values: [JSON.stringify(rows)] }
}

/** The shape of a question: entries of one shape have the same text. */
export const shapeOf = ({
  model,
  question: { takesKey, by, links, within, referred, exclusive, claims, counted },
}: EntryQuestion): string =>
  `${model.name} ${takesKey} ${counted !== undefined} ${links.join()} ${[by, within, referred, exclusive, claims].map((each) => [...each.keys()].join()).join(' ')}`

/** Statements by the shape of their questions: documents have few shapes. */
const texts = new Map<string, string>()

/** The values, in the order in which `answerPart` names them. */
const valuesOf = ({ by, within, referred, exclusive, claims, counted }: Question): unknown[] => [
  ...by.values(),
  ...(by.size === 0 ? [] : within.values()),
  ...[...referred.values()].map(({ keys }) => keys),
  ...exclusive.values(),
  ...claims.values(),
  ...(counted === undefined ? [] : [counted]),
]

/** Names the next value of a question: `$1`, or a column of a list of questions. @param type the type of the value, in SQL */
type Next = (type: string) => string

function answerPart(registry: Registry, { model, question }: EntryQuestion, next: Next): string {
  const { takesKey, by, links, within, referred, exclusive, claims, counted } = question
  const rows = rowsPart(model, registry, { by: [...by.keys()], links, within: [...within.keys()] }, next)
  const unfit = [...referred.values()].map(({ reference }) => unfitPart(registry, reference, next))
  const taken = [...exclusive.keys()].map((name) => takenPart(model, registry, name, next))
  const claimed = [...claims.keys()].map((name) => claimedPart(model, registry, name, next))
  const limited = counted === undefined ? `'[]'::jsonb` : countedPart(model, registry, next)
  const others = `'unfit', jsonb_build_object(${unfit.join(', ')}), 'taken', jsonb_build_object(${taken.join(', ')}),
    'claimed', jsonb_build_object(${claimed.join(', ')}), 'counted', ${limited}`
  if (!takesKey || model.key !== 'integer') return `jsonb_build_object('rows', ${rows}, ${others}, 'newKey', NULL)`
  // OFFSET 0 keeps the planner from running the sub-select twice.
  const newKey = `CASE WHEN cardinality(s.rows) = 0 THEN ${nextKey(model.table)} END`
  return `(SELECT jsonb_build_object('rows', s.rows, ${others}, 'newKey', ${newKey}) FROM (SELECT ${rows} AS rows OFFSET 0) s)`
}

// The LIMIT 1 below makes PostgreSQL look up each key in an index. A join would be planned as a full scan while the table is
// small, and the cached plan would stay when the table has grown.

/** A row is found by any of the ways that the entry names, and in one way by all of its fields. */
function rowsPart(
  model: Model,
  registry: Registry,
  { by, links: read, within }: Readonly<Record<'by' | 'links' | 'within', readonly string[]>>,
  next: Next,
): string {
  if (by.length === 0) return `'{}'::jsonb[]`
  const same = new Map(
    by.map((name) => [name, `t.${quoted(columnOf(model, name))} = ${next(typeOf(model, registry, name))}`]),
  )
  const named = new Map(
    within.map((name) => {
      const type = `${typeOf(model, registry, name)}[]`
      return [name, `${next(type)}::${type}`]
    }),
  )
  const where = waysToFind(model, by).map((way) => way.map((name) => same.get(name)).join(' AND '))
  const isRead = ([{ name }]: readonly [Field, Link]) => read.includes(name)
  const links = linksOf(model)
    .filter(isRead)
    .map(([{ name }, { table, own, other }]) => {
      const some = named.get(name)
      const isNamed = some === undefined ? '' : ` AND l.${quoted(other)} = ANY(${some})`
      const keys = `SELECT l.${quoted(other)} FROM ${quoted(table)} l WHERE l.${quoted(own)} = t.pk${isNamed} ORDER BY 1`
      return `'${name}', ARRAY(${keys})`
    })
  const columns = columnsOf(model).map((column) => `t.${quoted(column)}`)
  const origin = model.isLabelled ? ['t."owner"', originColumns] : []
  const linked = links.length === 0 ? [] : [`jsonb_build_object(${links.join(', ')}) AS links`]
  const rows = `SELECT ${[...columns, ...origin, ...linked].join(', ')} FROM ${quoted(model.table)} t WHERE ${where.join(' OR ')} LIMIT 2`
  return `ARRAY(SELECT to_jsonb(r) FROM (${rows}) r)`
}

/** The type of an identifier in SQL: a key's, or text. */
function typeOf({ key, fields }: Model, { targets }: Registry, name: string): string {
  return name === 'pk' ? key : (targets.get(fields.get(name)?.reference?.target ?? '')?.key ?? 'text')
}

/** The maker of a row, the time, and the label under which it is managed: `apply/ownership.ts` reads them. */
const originColumns = `t."created_by", t."created_at",
  (SELECT u.username FROM users u WHERE u.pk = t."created_by") AS "created_by_name"`

function unfitPart(registry: Registry, reference: Reference, next: Next): string {
  const target = registry.targets.get(reference.target)
  if (target === undefined) throw new Error(`no model is called ${reference.target}`)
  const only = onlyOf(registry, reference)
  const values = only?.values.map((value) => `'${value}'`).join(', ')
  const column = only === undefined ? "''" : `f.${quoted(only.column)}::text`
  const isUnfit = only === undefined ? '' : ` OR found NOT IN (${values})`
  // OFFSET 0 keeps the planner from running the sub-select twice.
  const found = `SELECT (SELECT ${column} FROM ${quoted(target.table)} f WHERE f.pk = k LIMIT 1) AS found OFFSET 0`
  const keys = `unnest(${next(`${target.key}[]`)}::${target.key}[]) k, LATERAL (${found}) s`
  const unfit = `SELECT jsonb_build_object('key', k, 'found', found) FROM ${keys} WHERE found IS NULL${isUnfit}`
  return `'${referenceName(reference)}', ARRAY(${unfit})`
}

function claimedPart(model: Model, registry: Registry, name: string, next: Next): string {
  const { reference } = model.fields.get(name) ?? {}
  const { table, key, models: [first] = [] } = registry.targets.get(reference?.target ?? '') ?? {}
  if (table === undefined || first === undefined) throw new Error(`${model.name}: ${name} is claimed, but no reference`)
  const needed = (reference?.needs?.fields ?? []).map((field) => columnOf(first, field))
  const columns = [...namingColumns(first), ...needed].map((column) => `t.${quoted(column)}`)
  const origin = first.isLabelled ? [originColumns] : []
  const row = `SELECT ${[...columns, ...origin].join(', ')} FROM ${quoted(table)} t WHERE t.pk = k LIMIT 1`
  return `'${name}', ARRAY(SELECT to_jsonb(r) FROM unnest(${next(`${key}[]`)}::${key}[]) k, LATERAL (${row}) r)`
}

/** The columns for the model of a row, its name, and the permission to view it. */
const namingColumns = (model: Model): string[] => [
  ...new Set([
    'pk',
    labelColumn(model),
    ...Object.keys(model.discriminator),
    ...(model.isLabelled ? ['owner'] : []),
    ...(model.owner === undefined ? [] : [columnOf(model, model.owner)]),
  ]),
]

/** Finds them by an index on the field. */
function countedPart(model: Model, registry: Registry, next: Next): string {
  if (model.limit === undefined) return `'[]'::jsonb`
  const { per, until } = model.limit
  const [column, end] = [`t.${quoted(columnOf(model, per))}`, `t.${quoted(columnOf(model, until))}`]
  return `ARRAY(SELECT t.pk FROM ${quoted(model.table)} t
    WHERE ${column} = ${next(typeOf(model, registry, per))} AND (${end} IS NULL OR ${end} > now()))`
}

function takenPart(model: Model, registry: Registry, name: string, next: Next): string {
  const target = registry.targets.get(model.fields.get(name)?.reference?.target ?? '')
  const { value, from } = keysIn(model, name)
  const columns = namingColumns(model).map((column) => `t.${quoted(column)}`)
  const holder = (condition: string) =>
    `SELECT ${columns.join(', ')}, ${value} AS value FROM ${from} WHERE ${condition} LIMIT 1`
  // The row with this very name comes first: an earlier version may have stored another spelling, too.
  const isFolded = model.fields.get(name)?.folded === true
  const found = isFolded
    ? `(${holder(`${value} = k`)}) UNION ALL (${holder(`compared_name(${value}) = compared_name(k)`)}) LIMIT 1`
    : holder(`${value} = k`)
  const type = `${target?.key ?? 'text'}[]`
  return `'${name}', ARRAY(SELECT to_jsonb(u) FROM unnest(${next(type)}::${type}) k, LATERAL (${found}) u)`
}
