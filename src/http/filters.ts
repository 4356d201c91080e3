import { z } from 'zod'
import { isObject } from '../json-object.ts'
import { storable, storableJson } from '../models/syntax.ts'

/** What a list may be narrowed by: each filter is a query parameter and the condition that it means. */
export type Filter<Value = unknown> = {
  /** What the parameter may be, as the query string has it. */
  readonly schema: z.ZodType<Value>
  /** @param bind gives the placeholder of a value; it is never text of the statement */
  readonly condition: (value: Value, bind: Bind) => string
  /** For values that must name something: which of them do, in SQL of one column, `value`. */
  readonly known?: { readonly noun: string; among(placeholder: string): string }
}

export type Bind = (value: unknown) => string

const once = 'Send this parameter once.'

/** A text of which LIKE takes every character for itself. */
export const likeLiterally = (text: string): string => text.replace(/[\\%_]/g, '\\$&')

/** A text as a query string holds it: one value, of which each character can be stored. */
export const queryText = (max = 255) =>
  z
    .string(once)
    .max(max, `Must be at most ${max} characters.`)
    .superRefine((text, context) => {
      const fault = storable(text)
      if (fault !== undefined) context.addIssue({ code: 'custom', message: fault })
    })

/** `true` or `false`, in any case. */
export const queryBoolean = z
  .string(once)
  .regex(/^(true|false)$/i, 'Must be true or false.')
  .transform((text) => text.toLowerCase() === 'true')

/** @param max the largest number that means something */
export function queryInteger(min: number, max: number) {
  const range = `Must be from ${min} to ${max}.`
  return z
    .string(once)
    .regex(/^-?\d{1,100}$/, 'Must be a whole number.')
    .transform(Number)
    .pipe(z.int(range).min(min, range).max(max, range))
}

const queryUuid = z
  .string(once)
  .pipe(z.guid('Must be a UUID.'))
  .transform((text) => text.toLowerCase())
const queryKey = queryInteger(1, 2_147_483_647)

/** A parameter that may be repeated: one of its values will do. */
const repeated = <Item extends z.ZodType>(item: Item, max = 100) =>
  z.preprocess((sent) => (Array.isArray(sent) ? sent : [sent]), z.array(item).max(max, `Send at most ${max} of these.`))

const filter = <Value>(declared: Filter<Value>): Filter => declared as Filter

/** The column has this very value. */
export const equals = (column: string, max?: number): Filter =>
  filter({ schema: queryText(max), condition: (value, bind) => `${column} = ${bind(value)}` })

/** @param expression SQL that is true or false, and never null */
export const isTrue = (expression: string): Filter =>
  filter({ schema: queryBoolean, condition: (value) => (value ? expression : `NOT ${expression}`) })

export const hasUuid = (column: string): Filter =>
  filter({ schema: queryUuid, condition: (value, bind) => `${column} = ${bind(value)}::uuid` })

export const hasKey = (column: string): Filter =>
  filter({ schema: queryKey, condition: (value, bind) => `${column} = ${bind(value)}::integer` })

export const startsWith = (column: string): Filter =>
  filter({
    schema: queryText(),
    condition: (value, bind) => `${column} LIKE ${bind(`${likeLiterally(value)}%`)}`,
  })

/** One of the enum's values. @param type the column's type in PostgreSQL */
export const isOneOf = (column: string, type: string, values: readonly [string, ...string[]]): Filter =>
  filter({
    schema: repeated(z.enum(values, `Must be one of: ${values.join(', ')}.`)),
    condition: (value, bind) => `${column} = ANY(${bind(value)}::${type}[])`,
  })

type Relation = {
  /** The list's own key, and the table of pairs that relates it: `memberships m`, `m.user_pk = u.pk`. */
  readonly key: string
  readonly pairs: string
  readonly own: string
  readonly other: string
  /** The related table. */
  readonly table: string
  readonly noun: string
}

/** Related directly to any of the rows that are named by key; a key of nothing is a fault. */
export const relatedByKey = (type: 'uuid' | 'integer', { key, pairs, own, other, table, noun }: Relation): Filter =>
  filter({
    schema: repeated<z.ZodType<string | number>>(type === 'uuid' ? queryUuid : queryKey),
    condition: (value, bind) =>
      `${key} IN (SELECT ${own} FROM ${pairs} WHERE ${other} = ANY(${bind(value)}::${type}[]))`,
    known: { noun, among: (values) => `SELECT pk::text AS value FROM ${table} WHERE pk = ANY(${values}::${type}[])` },
  })

/** Related directly to any of the rows that are named by `column`. */
export const relatedByName = (
  column: string,
  { key, pairs, own, other, table, noun }: Relation,
  item: z.ZodType<string> = queryText(),
): Filter =>
  filter({
    schema: repeated(item),
    condition: (value, bind) =>
      `${key} IN (SELECT ${own} FROM ${pairs} JOIN ${table} named ON named.pk = ${other} WHERE named.${column} = ANY(${bind(value)}::text[]))`,
    known: {
      noun,
      among: (values) => `SELECT ${column} AS value FROM ${table} WHERE ${column} = ANY(${values}::text[])`,
    },
  })

const maxAttributeKeys = 20
const attributesText = z
  .string(once)
  .max(10_000, 'Must be at most 10000 characters.')
  .meta({
    description:
      'A JSON object that must be contained: `{"address": {"city": "Bern"}}`, or `{"address__city": "Bern"}`.',
    examples: ['{"department": "it"}'],
  })

/** A JSON object that must be contained, at any depth; `a__b` means `b` in `a`. Several members must all be there. */
export const contains = (column: string): Filter =>
  filter({
    schema: attributesText.transform((text, context) => {
      const members = membersOf(text)
      const fault = faultOf(members)
      if (fault === undefined) return (members ?? []).map(nest)
      context.addIssue({ code: 'custom', message: fault })
      return z.NEVER
    }),
    condition: (objects, bind) =>
      objects.map((object) => `${column} @> ${bind(JSON.stringify(object))}::jsonb`).join(' AND ') || 'true',
  })

function faultOf(members: readonly [string, unknown][] | undefined): string | undefined {
  if (members === undefined) return 'Must be a JSON object, such as {"department": "it"}.'
  if (members.length > maxAttributeKeys) return `Must have at most ${maxAttributeKeys} members.`
  // As it is meant: a name with many `__` nests as deep as braces do.
  return members.map((member) => storableJson(nest(member))).find((fault) => fault !== undefined)
}

/** @returns undefined when it is no object */
function membersOf(text: string): [string, unknown][] | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? Object.entries(value) : undefined
  } catch {
    // Said by the caller, in words.
    return undefined
  }
}

/** `['a__b', 1]` -> `{ a: { b: 1 } }` */
const nest = ([path, value]: [string, unknown]): unknown =>
  path.split('__').reduceRight((inner: unknown, name) => ({ [name]: inner }), value)
