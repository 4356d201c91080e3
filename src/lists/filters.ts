import { z } from 'zod'
import { attempt } from '../attempt.ts'
import { Problem } from '../errors.ts'
import { withExample } from '../example.ts'
import { once, queryBoolean, queryTime } from '../http/query.ts'
import { isObject } from '../json-object.ts'
import { follow, oneOf } from '../models/fields.ts'
import { storable, storableJson, username } from '../models/syntax.ts'
import { comparedName } from '../names.ts'
import { parseJson } from '../numbers.ts'
import { type Actor, allows } from '../permissions.ts'

/** A query parameter of a list, and its SQL condition. */
export type Filter<Field extends string = string, Value = unknown> = {
  readonly schema: z.ZodType<Value>
  /** The field of the model, or the named expression, to which it applies. */
  readonly on: Field | Expression
  /** @param bind returns the placeholder of a value, which is never text of the statement */
  readonly condition: (on: string, value: Value, bind: Bind) => string
  /** The same condition on rows that are read one by one in an order. */
  readonly walked?: Filter<Field, Value>['condition']
  /** The number of rows that meet the condition, in SQL, if it is known without them. */
  readonly number?: (value: Value, bind: Bind) => string
  /** The part of the value that this caller may filter by. */
  readonly seen?: (value: Value, actor: Actor) => Value
  /** Set for values that must exist: SQL that returns the existing ones, as column `value`. */
  readonly known?: { readonly displayName: string; among(placeholder: string): string }
  /** Whether at most one row meets it. */
  readonly isUnique?: true
}

export type Bind = (value: unknown) => string

/** SQL over the list's table, which has a name of its own in `find.ts`. */
export type Expression = { readonly sql: string }

/** A text in which LIKE takes every character literally. */
export const likeLiterally = (text: string): string => text.replace(/[\\%_]/g, '\\$&')

/** A text as a query string holds it: one value, of which each character can be stored. */
export const queryText = (max = 255) =>
  follow(storable, z.string(once).max(max, `Must be at most ${max} characters.`), 'invalid_value')

/** @param max the largest number with a meaning */
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

/**
 * A parameter that may be repeated: a row matches when one of its values does. Generated clients send an empty list as one empty
 * value (`groups_by_pk=`): it counts as absent.
 */
const repeated = <Item extends z.ZodType>(item: Item, description: string, max = 100) =>
  z
    .preprocess(
      (sent) => (sent === '' ? undefined : Array.isArray(sent) ? sent : [sent]),
      z.array(item).max(max, `Send at most ${max} of these.`).optional(),
    )
    .meta({ description: `${description} May be repeated: one of the values must match.` })

const filter = <Field extends string, Value>(declared: Filter<Field, Value>) => declared as Filter<Field>

/** A filter with a condition of its own on a field, or on an expression. */
export const narrows = <Field extends string, Value>(
  on: Field | Expression,
  schema: z.ZodType<Value>,
  condition: Filter<Field, Value>['condition'],
  seen?: Filter<Field, Value>['seen'],
) => filter({ on, schema, condition, ...(seen && { seen }) })

/** A filter that compares a field with the value. @param type the type of the value in PostgreSQL */
export const compares = <Field extends string>(on: Field, operator: string, type: string, schema: z.ZodType) =>
  narrows(on, schema, (column, value, bind) => `${column} ${operator} (${bind(value)}::${type})`)

/** `request id` of `requestId`. */
const wordsOf = (field: string) => field.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)

/** A filter by equality. Each filter takes the description of its parameter, as a sentence. */
export const equals = <Field extends string>(field: Field, description = `With this ${wordsOf(field)} exactly.`) =>
  compares(field, '=', 'text', queryText().meta({ description }))
export const unique = <Field extends string>(field: Field, description?: string) => ({
  ...equals(field, description),
  isUnique: true as const,
})
const label = queryText().overwrite(comparedName).meta({ description: 'Managed under this label.' })
export const hasOwner = compares('owner', '=', 'text', label)

/** The fields of settings by which servers find a provider: a kind has one of them at most, and an index has all. */
export const settingsKeys = ['issuer', 'base_dn', 'external_host'] as const
const settingsKey = { sql: `coalesce(${settingsKeys.map((name) => `providers.settings->>'${name}'`).join(', ')})` }

export const hasSettingsKey = (name: string) =>
  narrows(
    settingsKey,
    queryText(2_000).meta({ description: `With this ${name}.` }),
    (on, value, bind) => `${on} = ${bind(value)}`,
  )

/** A filter by the stack that has the object. @param key the type of its keys */
export const isInStack = (resources: readonly string[] | string, key: 'uuid' | 'integer' = 'uuid') =>
  narrows(
    'pk',
    queryText().overwrite(comparedName).meta({ description: 'Managed by this stack.' }),
    (column, stack, bind) =>
      `${column} = ANY (ARRAY(SELECT m.key::${key} FROM stack_members m WHERE m.stack = ${bind(stack)} AND m.model = ANY (${bind([resources].flat())}::text[])))`,
  )
export const hasUuid = <Field extends string>(field: Field, description: string) =>
  compares(field, '=', 'uuid', queryUuid.meta({ description }))
export const hasKey = <Field extends string>(field: Field, description: string) =>
  compares(field, '=', 'integer', queryKey.meta({ description }))

export const isSince = <Field extends string>(on: Field, description: string) =>
  compares(on, '>=', 'timestamptz', queryTime.meta({ description }))
export const isBefore = <Field extends string>(on: Field, description: string) =>
  compares(on, '<', 'timestamptz', queryTime.meta({ description }))

/** A filter by one of the enum's values. @param type the column's type in PostgreSQL */
export const isOneOf = <Field extends string>(
  on: Field,
  type: string,
  values: readonly [string, ...string[]],
  description: string,
  title?: string,
) => compares(on, '= ANY', `${type}[]`, repeated(oneOf(values, title), description))

const keySchemas = {
  uuid: queryUuid,
  integer: queryKey,
  bigint: queryInteger(1, Number.MAX_SAFE_INTEGER),
  text: queryText().overwrite(comparedName),
} as const

/** @param type the type of the key, in PostgreSQL */
export const isOneOfKeys = <Field extends string>(on: Field, type: keyof typeof keySchemas) =>
  compares(on, '= ANY', `${type}[]`, repeated<z.ZodType<string | number>>(keySchemas[type], 'With this key.'))

/** @param on a field, or SQL that is true or false, and never null */
export const isTrue = <Field extends string>(on: Field | Expression, description: string) =>
  narrows(on, queryBoolean.meta({ description }), (sql, value) => (value ? sql : `NOT ${sql}`))

export const startsWith = <Field extends string>(on: Field, description: string) =>
  narrows(
    on,
    queryText().meta({ description }),
    (column, value, bind) => `${column} LIKE ${bind(`${likeLiterally(value)}%`)}`,
  )

/** A filter by a period that ends now. @param spans the intervals by name; null: all time */
export const isWithin = <Field extends string, Span extends string>(
  on: Field,
  spans: Readonly<Record<Span, string | null>>,
) =>
  narrows<Field, Span>(on, z.enum(Object.keys(spans) as [Span]), (column, span) =>
    spans[span] === null ? 'true' : `${column} >= now() - interval '${spans[span]}'`,
  )

/** Rows of a table that memberships relate to those of the list. */
type Relation = {
  readonly displayName: string
  readonly table: string
  /** The columns of memberships with their keys, and with those of the list. */
  readonly named: string
  readonly listed: string
}

const groups: Relation = { displayName: 'group', table: 'groups', named: 'group_pk', listed: 'user_pk' }
const members: Relation = { displayName: 'user', table: 'users', named: 'user_pk', listed: 'group_pk' }

/**
 * A filter by relations to any of the rows that this column names; a value that names nothing is an error.
 *
 * @param type the type of the column in PostgreSQL
 */
function related(
  { displayName, table, named, listed }: Relation,
  column: string,
  type: string,
  item: z.ZodType<string | number>,
  description: string,
): Filter<'pk'> {
  const among = (values: string) => `named.${column} = ANY(${values}::${type}[])`
  const keysOf = (values: string) =>
    column === 'pk' ? `${values}::${type}[]` : `ARRAY(SELECT named.pk FROM ${table} named WHERE ${among(values)})`
  const linked = (values: string) => `memberships m WHERE m.${named} = ANY(${keysOf(values)})`
  return filter({
    on: 'pk',
    schema: repeated(item, description),
    condition: (key, value, bind) => `${key} IN (SELECT m.${listed} FROM ${linked(bind(value))})`,
    // It is looked up for each row: PostgreSQL makes no join of it, which would read the rows in no order.
    walked: (key, value, bind) => `(SELECT true FROM ${linked(bind(value))} AND m.${listed} = ${key} LIMIT 1)`,
    // No row is counted twice for one value.
    number: (value, bind) =>
      `SELECT count(${value?.length === 1 ? '*' : `DISTINCT m.${listed}`}) FROM ${linked(bind(value))}`,
    known: {
      displayName,
      among: (values) => `SELECT named.${column}::text AS value FROM ${table} named WHERE ${among(values)}`,
    },
  })
}

export const groupsByPk = related(groups, 'pk', 'uuid', queryUuid, 'A direct member of the group with this UUID.')
export const groupsByName = related(groups, 'name', 'text', queryText(), 'A direct member of a group with this name.')
export const membersByPk = related(members, 'pk', 'integer', queryKey, 'Has the user with this key as a direct member.')
/** A filter by usernames. A caller without `view_user` could guess usernames otherwise, and which key belongs to which. */
export const membersByUsername: Filter<'pk'> = {
  ...related(
    members,
    'username',
    'text',
    follow(username, queryText(150), 'invalid_value'),
    'Has the user with this name as a direct member. Needs `view_user`, except for the own name.',
  ),
  seen: (value, actor) => {
    const names = Array.isArray(value) ? value : []
    if (allows(actor, 'view_user') || names.every((name) => name === actor.username)) return value
    const detail = 'You may not filter by the usernames of others: the permission view_user is missing.'
    throw new Problem('permission_denied', detail)
  },
}

const maxAttributeKeys = 20
const attributesText = withExample(
  z.string(once).max(10_000, 'Must be at most 10000 characters.'),
  '{"department": "it"}',
  'A JSON object that must be contained: `{"address": {"city": "Bern"}}`, or `{"address__city": "Bern"}`.',
)

/** A filter by a JSON object that must be contained, at any depth; `a__b` means `b` in `a`. All entries must be there. */
export const contains = <Field extends string>(on: Field) =>
  filter({
    on,
    schema: attributesText.transform((text, context) => {
      const objects = objectsIn(text)
      if (typeof objects !== 'string') return objects
      context.addIssue({ code: 'custom', message: objects })
      return z.NEVER
    }),
    condition: (column, objects, bind) =>
      objects.map((object) => `${column} @> ${bind(JSON.stringify(object))}::jsonb`).join(' AND ') || 'true',
  })

/** @returns an object for each entry; a text: the error */
function objectsIn(text: string): unknown[] | string {
  // A text that is not JSON is no object either.
  const value = attempt(() => parseJson(text))
  if (!isObject(value)) return 'Must be a JSON object, such as {"department": "it"}.'
  const objects = Object.entries(value).map(nest)
  if (objects.length > maxAttributeKeys) return `Must have at most ${maxAttributeKeys} fields.`
  // The nested form is checked: a name with many `__` nests as deep as braces do.
  return objects.map((object) => storableJson(object)).find((error) => error !== undefined) ?? objects
}

/** `['a__b', 1]` -> `{ a: { b: 1 } }` */
const nest = ([path, value]: [string, unknown]): unknown =>
  path.split('__').reduceRight((inner: unknown, name) => ({ [name]: inner }), value)
