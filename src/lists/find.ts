import { z } from 'zod'
import type { Tx } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import { query, type Statement, unprepared } from '../db/raw.ts'
import type { Permission } from '../permissions.ts'
import type { FieldOf, Key } from '../views/view.ts'
import { type Expression, type Filter, likeLiterally } from './filters.ts'

/**
 * The statements that find and count the rows of a list: Prisma's models do not say what they need, and their `contains`
 * takes no index (docs/adr/0027-lists-find-keys-and-prisma-reads-rows.md). Values are parameters, always.
 */

/** What a model is called in SQL. `unique`: fields of which no two rows have the same value; the first is the key. */
type Table<Model extends Prisma.ModelName> = {
  readonly name: string
  readonly unique: readonly [FieldOf<Model>, ...FieldOf<Model>[]]
  /** Columns that have another name than their field. */
  readonly columns?: { readonly [Field in FieldOf<Model>]?: string }
}

/** Models that are listed. `checkList` compares them with the database at start. */
const tables = {
  User: { name: 'users', unique: ['pk', 'uuid', 'username'] },
  Group: { name: 'groups', unique: ['pk', 'numPk', 'name'] },
  TotpDevice: { name: 'totp_devices', unique: ['pk', 'uuid'] },
  UserConsent: { name: 'user_consents', unique: ['pk'] },
  Run: { name: 'runs', unique: ['id'] },
  Token: { name: 'tokens', unique: ['pk', 'identifier'] },
  Application: { name: 'applications', unique: ['pk', 'slug'], columns: { group: 'group_name' } },
  Provider: { name: 'providers', unique: ['pk', 'uuid', 'name'] },
  Flow: { name: 'flows', unique: ['pk', 'slug'] },
  PropertyMapping: { name: 'property_mappings', unique: ['pk'] },
  CertificateKeyPair: { name: 'certificate_key_pairs', unique: ['pk', 'name'] },
  Role: { name: 'roles', unique: ['pk', 'name'] },
  AuditRow: { name: 'audit_rows', unique: ['pk'] },
} satisfies { [Model in Prisma.ModelName]?: Table<Model> }

export type ListedModel = keyof typeof tables

export const tableOf = (
  model: ListedModel,
): {
  readonly name: string
  readonly unique: readonly [string, ...string[]]
  readonly columns?: Readonly<Record<string, string>>
} => tables[model]

/** `isActive` -> `is_active`, as `schema.prisma` maps them. */
export const columnOf = (model: ListedModel, field: string): string =>
  tableOf(model).columns?.[field] ?? field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** A text that is searched; `{pattern}` is what its lower case is LIKE. Each has its trigram index, except where rows are few. */
type Search = Expression

export const userText: Search = {
  sql: `lower(users.username || ' ' || users.name || ' ' || users.email || ' ' || users.uuid::text) LIKE {pattern}`,
}
export const groupName: Search = { sql: 'lower(groups.name) LIKE {pattern}' }
export const deviceName: Search = { sql: 'lower(totp_devices.name) LIKE {pattern}' }
export const consentUsername: Search = {
  sql: 'user_consents.user_pk IN (SELECT u.pk FROM users u WHERE lower(u.username) LIKE {pattern})',
}
export const tokenText: Search = { sql: `lower(tokens.identifier || ' ' || tokens.description) LIKE {pattern}` }
export const applicationText: Search = {
  sql: `lower(applications.name || ' ' || applications.slug || ' ' || applications.group_name) LIKE {pattern}`,
}
export const providerName: Search = { sql: 'lower(providers.name) LIKE {pattern}' }
export const flowText: Search = {
  sql: `lower(flows.name || ' ' || flows.slug || ' ' || flows.title) LIKE {pattern}`,
}
export const mappingText: Search = {
  sql: `lower(property_mappings.name || ' ' || coalesce(property_mappings.managed, '')) LIKE {pattern}`,
}
export const keyPairName: Search = { sql: 'lower(certificate_key_pairs.name) LIKE {pattern}' }
export const roleName: Search = { sql: 'lower(roles.name) LIKE {pattern}' }
export const auditedUser: Search = {
  sql: `lower(audit_rows.actor_name || ' ' || coalesce(audit_rows.real_name, '')) LIKE {pattern}`,
}
export const runTitle: Search = { sql: 'lower(runs.title) LIKE {pattern}' }

/**
 * Whether a user is a superuser, by a group or one above it. The groups that make superusers are few: they are found
 * once for a statement, and looked up among the groups of each user.
 */
export const isSuperuser: Expression = {
  sql: `EXISTS (SELECT FROM memberships m WHERE m.user_pk = users.pk AND m.group_pk = ANY (ARRAY(
    SELECT ga.group_pk FROM groups sg JOIN group_ancestors ga ON ga.ancestor_pk = sg.pk WHERE sg.is_superuser)))`,
}

/** Which rows a list has, and in which orders. */
export type Listed<Model extends ListedModel = ListedModel> = {
  readonly view: { readonly model: Model }
  /**
   * How the list knows its size when nothing narrows it. `kept`: triggers on the table keep it in `row_counts`
   * (docs/adr/0012-lists-know-their-size.md). `rows`: its rows are counted.
   */
  readonly count: 'kept' | 'rows'
  /** Every term of `search` must be in it. */
  readonly search: Search
  /** What `ordering` may name. */
  readonly order: Readonly<Record<string, FieldOf<Model>>>
  /** Callers without the permission see their own rows only; without a permission, so do all. */
  readonly own?: { readonly field: FieldOf<Model>; readonly unless?: `view_${string}` }
  /** A boolean field that is true of all rows of the list. */
  readonly always?: FieldOf<Model>
  readonly visible?: Visible<FieldOf<Model>>
  readonly owned?: Owned
}

/** Callers whose rights are bound to owners see only rows of these. */
export type Owned = {
  /** With this permission for all owners, callers see all rows. */
  readonly unless: Permission
  /** The owner of a row of the list, in SQL. */
  readonly sql: string
  /** Rows that they see all the same, in SQL; `{caller}` is their key. */
  readonly or?: string
  /** What must hold of each of these rows, in SQL: `{owners}` is a list of texts, `{caller}` their key. */
  readonly and?: string
}

/** A caller sees the rows for whose value of a text field the caller holds the permission. */
export type Visible<Field extends string = string> = {
  readonly field: Field
  /** By value. */
  readonly permissions: Readonly<Record<string, Permission>>
  /** The field with the owner, for permissions that hold for rows of some owners. */
  readonly owner: Field
  /** A caller with all of these permissions sees rows with other values, too. */
  readonly others?: true
}

/** Of the applications of these owners, and of the caller. */
export const consentsOfOwners: Owned = {
  unless: 'view_application',
  sql: '(SELECT a.owner FROM applications a WHERE a.pk = user_consents.application_pk)',
  or: 'user_consents.user_pk = {caller}',
}

export type Sorted = { readonly field: string; readonly descending: boolean }

/** What a request asks of a list. */
export type ListQuery = {
  readonly filters: readonly { readonly name: string; readonly filter: Filter; readonly value: unknown }[]
  readonly terms: readonly string[]
  /** The owner's key; undefined: all owners. */
  readonly own: number | null | undefined
  /** The values of the field in `visible`; undefined: all. */
  readonly values: readonly string[] | undefined
  /** Beside them, values with the rows of one owner: `oauth2@team-a`. */
  readonly bound: readonly string[]
  /** The owners of `owned`; undefined: all, and rows without one. */
  readonly owners: readonly string[] | undefined
  /** The key of the caller. */
  readonly caller: number | null
  readonly ordering: readonly Sorted[]
  /** Nothing that makes any number of texts, as filters, terms and orders do: its statement is prepared. */
  readonly isPlain: boolean
  readonly page: number
  readonly page_size: number
  /** Of a page of operators: of more, none is counted. */
  readonly mostCounted?: number
}

export class Values {
  readonly list: unknown[] = []
  readonly bind = (value: unknown): string => `$${this.list.push(value)}`
}

/** Only plain lists are prepared: a connection keeps each prepared text, and filters make any number of texts. */
const made = (text: string, { list: values }: Values, { isPlain }: ListQuery): Statement =>
  isPlain ? { text, values } : unprepared({ text, values })

/** Rows of a page unless `page_size` says otherwise. */
export const usualPageSize = 100

/** With more matches than this, reading the order's index finds a page quickly. */
const maxSorted = 25_000

const keysSchema = z.array(z.union([z.number(), z.string(), z.bigint().transform(String)]))
const foundRow = z.object({
  count: z.int(),
  /** The keys of the page, in order; null when they are not known yet. */
  keys: keysSchema.nullable(),
  /** By parameter, which values name nothing. */
  unknown: z.record(z.string(), z.array(z.string())),
})
const pageRow = z.object({ keys: keysSchema })

export type Found = {
  readonly count: number
  readonly unknown: z.output<typeof foundRow>['unknown']
  /** Reads the keys of the page, in order, once it is known that there is such a page. */
  readKeys(): Promise<readonly Key[]>
}

/** Counts the rows that are left, and finds those of one page: one statement, or two for pages far inside the list. */
export async function find(tx: Tx, list: Listed, asked: ListQuery): Promise<Found> {
  const statement = isNarrowed(list, asked) ? matchingStatement(list, asked) : sizeStatement(list, asked)
  const [found] = await query(tx, foundRow, statement)
  if (found === undefined) throw new Error('a statement that always has a row had none')
  const { count, unknown, keys } = found
  const isCut = asked.mostCounted !== undefined && count > asked.mostCounted && isNarrowed(list, asked)
  const total = isCut ? Number.POSITIVE_INFINITY : count
  return { count, unknown, readKeys: async () => keys ?? readPage(tx, list, asked, total) }
}

const isNarrowed = ({ always }: Listed, { own, values, owners, filters, terms }: ListQuery): boolean =>
  always !== undefined ||
  own !== undefined ||
  owners !== undefined ||
  values !== undefined ||
  filters.length > 0 ||
  terms.length > 0

/** The size of a whole list, and the keys of its first page. */
function sizeStatement(list: Listed, asked: ListQuery): Statement {
  const { name } = tableOf(list.view.model)
  const size =
    list.count === 'kept'
      ? `SELECT coalesce(sum(c.rows), 0) FROM row_counts c WHERE c.table_name = '${name}'`
      : `SELECT count(*) FROM ${name}`
  const values = new Values()
  const keys = asked.page === 1 ? keysOf(list, asked, Number.POSITIVE_INFINITY, values) : 'NULL'
  return made(`SELECT (${size})::integer AS count, ${keys} AS keys, '{}'::jsonb AS unknown`, values, asked)
}

/**
 * PostgreSQL guesses badly how many rows a search or an attribute matches, and would walk along the order's index past
 * all the others: so what matches is found first.
 */
function matchingStatement(list: Listed, asked: ListQuery): Statement {
  const { name } = tableOf(list.view.model)
  const values = new Values()
  const from = `${name} WHERE ${conditionsOf(list, asked, values).join(' AND ')}`
  const sorts = sortsOf(list, asked.ordering)
  const columns = sorts.map(({ column }, index) => `${column} AS o${index}`)
  const order = sorts.map(({ descending }, index) => `o${index} ${descending ? 'DESC' : 'ASC'}`)
  const start = values.bind(startOf(asked))
  const most = asked.mostCounted ?? maxSorted
  const many = asked.mostCounted === undefined ? `(SELECT count(*) FROM ${from})` : `${most + 1}`
  const text = `WITH matching AS MATERIALIZED (
      SELECT ${[`${keyOf(list)} AS key`, ...columns].join(', ')} FROM ${from} LIMIT ${most + 1}),
    few AS MATERIALIZED (SELECT count(*) AS number, count(*) <= ${most} AS is_all FROM matching)
    SELECT (CASE WHEN is_all THEN number ELSE ${many} END)::integer AS count,
      CASE WHEN is_all THEN ARRAY(
        SELECT key FROM matching ORDER BY ${order.join(', ')} LIMIT ${values.bind(asked.page_size)} OFFSET ${start}) END AS keys,
      ${unknownOf(asked, values)} AS unknown
    FROM few`
  return made(text, values, asked)
}

function unknownOf({ filters }: ListQuery, { bind }: Values): string {
  const pairs = filters.flatMap(({ name, filter, value }) => {
    if (filter.known === undefined) return []
    const sent = bind([value].flat().map(String))
    return `'${name}', ARRAY(SELECT s FROM unnest(${sent}::text[]) s WHERE s NOT IN (${filter.known.among(sent)}))`
  })
  return `jsonb_build_object(${pairs.join(', ')})`
}

/** The keys of one page of a list that has this many rows. */
async function readPage(tx: Tx, list: Listed, asked: ListQuery, total: number): Promise<readonly Key[]> {
  const values = new Values()
  const text = `SELECT ${keysOf(list, asked, total, values)} AS keys`
  const [found] = await query(tx, pageRow, made(text, values, asked))
  const keys = found?.keys ?? []
  return isBehindMiddle(asked, total) ? keys.toReversed() : keys
}

const startOf = ({ page, page_size }: ListQuery): number => (page - 1) * page_size

const isBehindMiddle = (asked: ListQuery, total: number): boolean => startOf(asked) > total / 2

/**
 * The keys of one page, by an index-only scan where an index has this order. Pages behind the middle are counted from
 * the end: their keys come backwards.
 *
 * @param total rows in all; infinite when it is not known yet, for the first page
 */
function keysOf(list: Listed, asked: ListQuery, total: number, values: Values): string {
  const conditions = conditionsOf(list, asked, values)
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  const isBackward = isBehindMiddle(asked, total)
  const order = sortsOf(list, asked.ordering).map(
    ({ column, descending }) => `${column} ${descending === isBackward ? 'ASC' : 'DESC'}`,
  )
  const start = startOf(asked)
  const size = Math.min(asked.page_size, total - start)
  const offset = isBackward ? total - start - size : start
  // LIMIT as a literal: with a parameter, the generic plan guesses the number of rows.
  const isUsual = asked.isPlain && size === usualPageSize && offset === 0
  const limits = isUsual ? `LIMIT ${usualPageSize}` : `LIMIT ${values.bind(size)} OFFSET ${values.bind(offset)}`
  return `ARRAY(SELECT ${keyOf(list)} FROM ${tableOf(list.view.model).name} ${where} ORDER BY ${order.join(', ')} ${limits})`
}

const keyOf = ({ view: { model } }: Listed): string => qualified(model, tableOf(model).unique[0])

const qualified = (model: ListedModel, field: string): string => `${tableOf(model).name}.${columnOf(model, field)}`

/** The key breaks ties, so that a row is on one page only; in the last field's direction, so that an index serves both. */
function sortsOf(
  { view: { model }, order }: Listed,
  ordering: readonly Sorted[],
): { column: string; descending: boolean }[] {
  const { unique } = tableOf(model)
  const sorts: { column: string; descending: boolean }[] = []
  for (const { field: name, descending } of ordering) {
    const field = order[name] ?? unique[0]
    sorts.push({ column: qualified(model, field), descending })
    if (unique.includes(field)) return sorts
  }
  return [...sorts, { column: qualified(model, unique[0]), descending: sorts.at(-1)?.descending === true }]
}

/** Which rows are asked for, and which of them this caller sees at all, in SQL: none for a list that nothing narrows. */
export function conditionsOf(
  { view: { model }, search, own, always, visible, owned }: Omit<Listed, 'count' | 'order'>,
  asked: Pick<ListQuery, 'filters' | 'terms' | 'own' | 'values' | 'bound' | 'owners' | 'caller'>,
  { bind }: Pick<Values, 'bind'>,
): string[] {
  return [
    ...(always === undefined ? [] : [qualified(model, always)]),
    ...(asked.own === undefined || own === undefined ? [] : [`${qualified(model, own.field)} = ${bind(asked.own)}`]),
    ...(asked.values === undefined || visible === undefined
      ? []
      : [visibleIn(model, visible, asked.values, asked.bound, bind)]),
    ...(asked.owners === undefined || owned === undefined ? [] : [ownedIn(owned, asked.owners, asked.caller, bind)]),
    ...asked.filters.map(({ filter: { on, condition }, value }) => {
      const sql = typeof on === 'string' ? qualified(model, on) : on.sql
      return `(${condition(sql, value, bind)})`
    }),
    ...asked.terms.map((term) => {
      const pattern = `lower(${bind(`%${likeLiterally(term)}%`)})`
      return `(${search.sql.replaceAll('{pattern}', () => pattern)})`
    }),
  ]
}

type Bind = Values['bind']

function visibleIn(
  model: ListedModel,
  { field, owner }: Visible,
  values: readonly string[],
  bound: readonly string[],
  bind: Bind,
): string {
  const value = qualified(model, field)
  const isFull = `${value} = ANY(${bind(values)}::text[])`
  if (bound.length === 0) return isFull
  return `(${isFull} OR ${value} || '@' || ${qualified(model, owner)} = ANY(${bind(bound)}::text[]))`
}

function ownedIn({ sql, or, and }: Owned, owners: readonly string[], caller: number | null, bind: Bind): string {
  const list = `${bind(owners)}::text[]`
  const isOwned = `${sql} = ANY(${list})`
  if (or === undefined) return isOwned
  const key = bind(caller)
  const seen = `(${isOwned} OR ${or.replaceAll('{caller}', key)})`
  return and === undefined ? seen : `(${seen} AND ${and.replaceAll('{owners}', list).replaceAll('{caller}', key)})`
}
