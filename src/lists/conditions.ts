import type { Values } from '../db/raw.ts'
import { likeLiterally } from './filters.ts'
import type { Listed, ListQuery, Owned, Visible } from './listed.ts'
import { type ListedModel, qualified, type Search, tableOf } from './tables.ts'

/**
 * The conditions of a request, and those of the rows that this caller sees at all, in SQL: none for a list that nothing narrows.
 */
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
    ...wordsIn(search.sql, asked.terms, bind),
  ]
}

/** Whether a condition leaves only some rows of the table. */
export const isNarrowed = ({ always }: Listed, { own, values, owners, filters, terms }: ListQuery): boolean =>
  always !== undefined ||
  own !== undefined ||
  owners !== undefined ||
  values !== undefined ||
  filters.length > 0 ||
  terms.length > 0

const wordsIn = (sql: string, terms: readonly string[], bind: Bind): string[] =>
  terms.map((term) => {
    const pattern = `lower(${bind(`%${likeLiterally(term)}%`)})`
    return `(${sql.replaceAll('{pattern}', () => pattern)})`
  })

/** The conditions for rows that are read one by one, and not found by an index. @param part whether few or many of them match */
export function byRow(list: Listed, asked: ListQuery, part: 'few' | 'many', values: Values): string[] {
  const { once, sql } = list.search
  const text = firstIn(list.search, once?.isOne ? once.sql : sql)
  const looked = once?.isOne
    ? `(SELECT ${text} FROM ${once.table} WHERE ${once.table}.${once.key} = ${tableOf(list.view.model).name}.${once.column})`
    : text
  return conditionsOf({ ...list, search: { sql: looked } }, asWalked(asked, part), values)
}

const firstIn = ({ columns = [] }: Search, sql: string): string =>
  [...columns.map((column) => `${column} LIKE {pattern}`), sql].join(' OR ')

/** Filters in their form for rows that are read one by one. */
export function asWalked(asked: ListQuery, part: 'few' | 'many'): ListQuery {
  const filters = asked.filters.map(({ filter, ...sent }) => ({
    ...sent,
    filter: { ...filter, condition: filter.walked?.[part] ?? filter.condition },
  }))
  return { ...asked, filters }
}

/** The percentage of a table's pages from which the number of matches is estimated. */
const sampled = 0.5

/** A filter that matches a larger part of the rows is checked row by row, in the related rows. */
const largePart = 0.05

/**
 * Whether many rows match. Then reading all rows is quicker than finding each by an index. A search is judged by a sample of the
 * table, a filter on related rows by its own number.
 *
 * @param rows the number of rows of the table, in SQL
 * @returns SQL; undefined when that makes no difference
 */
export function isFrequent(
  { view: { model }, search }: Listed,
  { terms, filters }: ListQuery,
  rows: string,
  { bind }: Values,
): string | undefined {
  const parts = filters.flatMap(({ filter: { number, walked }, value }) =>
    number === undefined || walked === undefined ? [] : [`(${number(value, bind)}) > ${largePart} * ${rows}`],
  )
  if (search.columns !== undefined && terms.length > 0) {
    const { table, sql } = search.once ?? { table: tableOf(model).name, sql: search.sql }
    parts.push(`(SELECT count(*) FILTER (WHERE ${wordsIn(sql, terms, bind).join(' AND ')}) * 4 > count(*)
      FROM ${table} TABLESAMPLE SYSTEM (${sampled}) REPEATABLE (0))`)
  }
  return parts.length === 0 ? undefined : parts.join(' AND ')
}

/**
 * The rows of a list that something narrows, in no order: the SQL that follows FROM. Texts that are stored once are searched
 * there, and lead to their rows. PostgreSQL would read all rows in place of those of a thousand texts, unless another condition
 * is known to leave few: the subquery prevents that.
 */
export function matchingRows(list: Listed, asked: ListQuery, values: Values): string {
  const { name } = tableOf(list.view.model)
  const { once } = list.search
  if (once === undefined || asked.terms.length === 0)
    return `${name} WHERE ${conditionsOf(list, asked, values).join(' AND ')}`
  const others = conditionsOf(list, { ...asked, terms: [] }, values)
  const words = wordsIn(once.sql, asked.terms, values.bind).join(' AND ')
  const texts = textsOf(once, words, asked.terms)
  return others.length === 0
    ? rowsOfTexts(name, once, texts)
    : `${name} WHERE ${others.join(' AND ')} AND ${name}.${once.column} IN (${texts})`
}

/** The other rows of its table, in the same form, for a list with many matches. */
export function otherRows(list: Listed, asked: ListQuery, values: Values): string {
  const { name } = tableOf(list.view.model)
  const { once } = list.search
  if (!once?.isOne || asked.terms.length === 0 || isNarrowed(list, { ...asked, terms: [] }))
    return `${name} WHERE (${byRow(list, asked, 'many', values).join(' AND ')}) IS NOT TRUE`
  const words = wordsIn(firstIn(list.search, once.sql), asked.terms, values.bind)
  return rowsOfTexts(name, once, `SELECT ${once.key} FROM ${once.table} WHERE (${words.join(' AND ')}) IS NOT TRUE`)
}

/**
 * The rows that match, text by text, for an order that begins with texts that are searched, and that many rows have.
 *
 * @param direction the direction of that order
 * @returns the text in place of the column too; undefined when nothing is searched, or the order begins otherwise
 */
export function matchingTexts(
  list: Listed,
  asked: ListQuery,
  first: { readonly column: string; readonly direction: 'ASC' | 'DESC' },
  values: Values,
): { readonly rows: string; readonly text: string } | undefined {
  const { name } = tableOf(list.view.model)
  const { once } = list.search
  if (once === undefined || once.isOne || asked.terms.length === 0) return undefined
  if (first.column !== `${name}.${once.column}`) return undefined
  const words = wordsIn(once.sql, asked.terms, values.bind).join(' AND ')
  const texts = `${textsOf(once, words, asked.terms)} ORDER BY ${once.key} ${first.direction}`
  const others = conditionsOf(list, { ...asked, terms: [] }, values)
  return { rows: rowsOfTexts(name, once, texts, others), text: `${once.table}.${once.key}` }
}

type Once = NonNullable<Search['once']>

/**
 * The keys of texts. They are read as whole rows where the trigram index finds them: PostgreSQL would read all of an index that
 * has the text and the key, because it takes lower case for cheap.
 */
function textsOf({ table, key, isOne }: Once, words: string, terms: readonly string[]): string {
  if (!isOne) return `SELECT DISTINCT ${key} FROM ${table} WHERE ${words}`
  const hasTrigrams = terms.some((term) => /[\p{L}\p{N}]{3}/u.test(term))
  return hasTrigrams
    ? `SELECT (${table}.${table}).${key} FROM (SELECT ${table} FROM ${table} WHERE ${words} OFFSET 0) ${table}`
    : `SELECT ${key} FROM ${table} WHERE ${words}`
}

const rowsOfTexts = (
  name: string,
  { table, key, column }: Once,
  texts: string,
  others: readonly string[] = [],
): string =>
  `(${texts}) ${table} CROSS JOIN LATERAL (
    SELECT * FROM ${name} WHERE ${[`${name}.${column} = ${table}.${key}`, ...others].join(' AND ')} OFFSET 0) ${name}`

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
