import { type Statement, statement, unprepared } from '../db/sql.ts'
import type { Permission } from '../permissions.ts'
import type { View } from '../views/view.ts'
import { type Filter, likeLiterally } from './filters.ts'

/** The statements of a list. Values are parameters, always; everything else comes from the declaration. */

/** A column that rows are ordered by. `unique`: no two rows have the same. */
export type Order = {
  readonly sql: string
  readonly unique?: true
  /** What of it is compared, where the name does not say so: `its uuid`. */
  readonly by?: string
}

/** Which rows a list has, and in which orders. */
export type Listed = {
  readonly view: View
  /** Conditions in SQL, where `{pattern}` stands for what lower-cased text is LIKE: every term of `search` meets one. */
  readonly search: readonly string[]
  /** What `ordering` may name. */
  readonly order: Readonly<Record<string, Order>>
  /** Rows of others are not there for whoever lacks the permission; without one, for nobody. */
  readonly own?: { readonly column: string; readonly unless?: Permission }
  /** A condition that always holds, in SQL. */
  readonly always?: string
}

export type Sorted = { readonly field: string; readonly descending: boolean }

/** What is asked of a list. */
export type Asked = {
  readonly filters: readonly { readonly name: string; readonly filter: Filter; readonly value: unknown }[]
  readonly terms: readonly string[]
  /** The owner's key; undefined: everybody's. */
  readonly own: number | null | undefined
  /** Undefined: the list's own order. */
  readonly ordering: readonly Sorted[]
  /** Neither filters nor terms nor an order: a statement that is asked for again and again, and so is prepared. */
  readonly isPlain: boolean
  readonly page: number
  readonly page_size: number
}

class Values {
  readonly list: unknown[] = []
  readonly bind = (value: unknown): string => `$${this.list.push(value)}`
}

/** A caller can make as many other texts as he likes; a connection keeps what is prepared. */
const made = (text: string, { list }: Values, { isPlain }: Asked): Statement =>
  isPlain ? statement(text, list) : unprepared(text, list)

/** Rows of a page when nobody says how many. */
export const usualPageSize = 100

/** How many rows a list has that nothing narrows; see docs/adr/0012-lists-know-their-size.md. */
export const sizeStatement = ({ view }: Listed): Statement =>
  statement('SELECT coalesce(sum(c.rows), 0)::bigint AS count FROM row_counts c WHERE c.table_name = $1', [view.table])

/** Beyond this many, rows are so many that walking along an index meets a page of them soon. */
const maxSorted = 25_000

export type Found = {
  readonly count: number
  /** The keys of the page, in order; null when they are more than are sorted here. */
  readonly keys: readonly (string | number)[] | null
  /** By parameter, which values name nothing. */
  readonly unknown: Readonly<Record<string, readonly string[]>>
}

/**
 * How many rows are left, and which of them are on the page. PostgreSQL guesses badly how many rows a search or an
 * attribute matches, and would walk along the order's index past all the others: so what matches is found first
 * (docs/adr/0015-lists-find-what-matches-first.md).
 */
export function findStatement(spec: Listed, asked: Asked): Statement {
  const { table, alias } = spec.view
  const values = new Values()
  const from = `${table} ${alias} WHERE ${conditionsOf(spec, asked, values).join(' AND ')}`
  const sorts = sortsOf(spec, asked.ordering)
  const columns = sorts.map(({ sql }, index) => `${sql} AS o${index}`)
  const order = sorts.map(({ descending }, index) => `o${index} ${descending ? 'DESC' : 'ASC'}`)
  const start = values.bind((asked.page - 1) * asked.page_size)
  const text = `WITH matching AS MATERIALIZED (SELECT ${[`${alias}.pk`, ...columns].join(', ')} FROM ${from} LIMIT ${maxSorted + 1}),
    few AS MATERIALIZED (SELECT count(*) AS number, count(*) <= ${maxSorted} AS is_all FROM matching)
    SELECT CASE WHEN is_all THEN number ELSE (SELECT count(*) FROM ${from}) END AS count,
      CASE WHEN is_all THEN ARRAY(SELECT pk FROM matching ORDER BY ${order.join(', ')} LIMIT ${values.bind(asked.page_size)} OFFSET ${start}) END AS keys,
      ${unknownOf(asked, values)} AS unknown
    FROM few`
  return made(text, values, asked)
}

function unknownOf({ filters }: Asked, { bind }: Values): string {
  const pairs = filters.flatMap(({ name, filter, value }) => {
    if (filter.known === undefined) return []
    const sent = bind([value].flat().map(String))
    return `'${name}', ARRAY(SELECT s FROM unnest(${sent}::text[]) s WHERE s NOT IN (${filter.known.among(sent)}))`
  })
  return `jsonb_build_object(${pairs.join(', ')})`
}

/**
 * The rows of one page. Keys are found first, by index alone where one has them in order; then the rows are read. Pages
 * behind the middle are counted from the end.
 *
 * @param total rows in all; infinite when it is not known yet, for the first page
 */
export function pageStatement(spec: Listed, asked: Asked, total: number): Statement {
  const { table, alias, columns, joins } = spec.view
  const values = new Values()
  const conditions = conditionsOf(spec, asked, values)
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  const start = (asked.page - 1) * asked.page_size
  const size = Math.min(asked.page_size, total - start)
  const isBackward = start > total / 2
  const sorts = sortsOf(spec, asked.ordering)
  const order = (isReversed: boolean) =>
    sorts.map(({ sql, descending }) => `${sql} ${descending === isReversed ? 'ASC' : 'DESC'}`).join(', ')
  const cut = { limit: size, offset: isBackward ? total - start - size : start }
  // The page that most ask for is planned once, for what it is; of a number that is yet to come, a plan would be a guess.
  const isUsual = asked.isPlain && cut.limit === usualPageSize && cut.offset === 0
  const [limit, offset] = isUsual ? [usualPageSize, 0] : [values.bind(cut.limit), values.bind(cut.offset)]
  const keys = `SELECT ${alias}.pk FROM ${table} ${alias} ${where} ORDER BY ${order(isBackward)} LIMIT ${limit} OFFSET ${offset}`
  const text = `SELECT ${columns} FROM (${keys}) page JOIN ${table} ${alias} ON ${alias}.pk = page.pk ${joins} ORDER BY ${order(false)}`
  return made(text, values, asked)
}

/** The key breaks ties, so that a row is on one page only; in the last field's direction, so that an index serves both. */
function sortsOf({ view, order }: Listed, ordering: readonly Sorted[]): { sql: string; descending: boolean }[] {
  const sorts: { sql: string; descending: boolean }[] = []
  for (const { field, descending } of ordering) {
    const { sql, unique } = order[field] ?? { sql: `${view.alias}.pk`, unique: true as const }
    sorts.push({ sql, descending })
    if (unique) return sorts
  }
  return [...sorts, { sql: `${view.alias}.pk`, descending: sorts.at(-1)?.descending === true }]
}

/** @returns none for a list that nothing narrows */
function conditionsOf({ search, own, always }: Listed, asked: Asked, { bind }: Values): string[] {
  return [
    ...(always === undefined ? [] : [always]),
    ...(asked.own === undefined || own === undefined ? [] : [`${own.column} = ${bind(asked.own)}`]),
    ...asked.filters.map(({ filter, value }) => `(${filter.condition(value, bind)})`),
    ...asked.terms.map((term) => {
      const pattern = `lower(${bind(`%${likeLiterally(term)}%`)})`
      return `(${search.map((condition) => condition.replaceAll('{pattern}', () => pattern)).join(' OR ')})`
    }),
  ]
}

export const isNarrowed = ({ always }: Listed, { own, filters, terms }: Asked): boolean =>
  always !== undefined || own !== undefined || filters.length > 0 || terms.length > 0
