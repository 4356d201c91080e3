import type { Values } from '../db/raw.ts'
import { asWalked, byRow, isNarrowed, matchingRows, matchingTexts, otherRows } from './conditions.ts'
import { isAmong } from './filters.ts'
import { type Listed, type ListQuery, type Sorted, usualPageSize } from './listed.ts'
import { qualified, tableOf } from './tables.ts'

/** The keys of one page, in SQL, when they were not found while its rows were counted. */

export const startOf = ({ page, page_size }: ListQuery): number => (page - 1) * page_size

export const keyOf = ({ view: { model } }: Listed): string => qualified(model, tableOf(model).unique[0])

type Sort = { readonly field: string; readonly column: string; readonly descending: boolean }

/**
 * The fields that break ties are added, so that a row is on one page only; in the last field's direction, so that an index serves
 * both.
 */
export function sortsOf({ view: { model }, order }: Listed, ordering: readonly Sorted[]): readonly Sort[] {
  const { unique, ties = [] } = tableOf(model)
  const sorts: Sort[] = []
  const add = (field: string, descending: boolean) => {
    if (!sorts.some((sort) => sort.field === field)) sorts.push({ field, column: qualified(model, field), descending })
  }
  for (const { field: name, descending } of ordering) {
    const field = order[name] ?? unique[0]
    add(field, descending)
    if (unique.includes(field)) return sorts
  }
  const isDescending = sorts.at(-1)?.descending === true
  for (const field of [...ties, unique[0]]) add(field, isDescending)
  return sorts
}

/** @returns the columns of an order for a list of columns, and the order by their names there */
export function orderOf(
  sorts: readonly Sort[],
  isBackward: boolean,
): { readonly columns: string[]; readonly order: string } {
  const columns = sorts.map(({ column }, index) => `${column} AS o${index}`)
  const order = sorts.map(({ descending }, index) => `o${index} ${descending === isBackward ? 'ASC' : 'DESC'}`)
  return { columns, order: order.join(', ') }
}

/** The place of a page in a list. A page behind the middle is found from the end: its keys come backwards. */
export type Place = {
  readonly isBackward: boolean
  readonly size: number
  readonly offset: number
  /** Whether a walk to it reads few of the rows that match. */
  readonly isNear: boolean
  /** The rows that a walk along the order may read before it is cancelled; null: it is not. */
  readonly patience: number | null
  /** The rows whose keys a walk far into the list has to know; null: it reads the rows themselves. */
  readonly known: 'matches' | 'others' | null
}

/** The first page of a list that is not counted yet. */
export const firstPlace = ({ page_size: size }: ListQuery): Place => ({
  isBackward: false,
  size,
  offset: 0,
  isNear: true,
  patience: null,
  known: null,
})

/** The part of the matches above which comparing all with the related rows is cheaper than looking up each. */
const mostLookedUp = 0.02

/** The most keys: PostgreSQL would need more than 40 MB for more. */
const mostKnown = 500_000

/** A walk is cancelled after this many times the rows that it would need if matches were spread evenly. */
const patience = 2

/** Rows that a walk passes sooner than half a million keys are sorted. */
const mostPassed = 20_000

/**
 * The patience for matches that are not all counted: to sort them takes about as long as a walk that has read this many rows
 * without finding the page.
 */
const patienceOf = (needed: number, rows: number): number => Math.ceil(patience * Math.sqrt(needed * rows))

/**
 * @param count the rows that match. When it is not exact, more may match. The page is among those that were counted
 * @param rows an estimate of the rows of the table
 */
export function placeOf(
  list: Listed,
  asked: ListQuery,
  { count, isExact, rows }: { readonly count: number; readonly isExact: boolean; readonly rows: number },
): Place {
  const start = startOf(asked)
  const isBackward = isExact && valuesOf(list, asked) === undefined && start > count / 2
  const size = isExact ? Math.min(asked.page_size, count - start) : asked.page_size
  const offset = isBackward ? count - start - size : start
  const needed = offset + size
  const isNear = needed < count * mostLookedUp
  const place = { isBackward, size, offset, isNear, known: null }
  if (isExact) {
    const most = Math.ceil((needed * Math.max(rows, count)) / count) * patience
    const known = count * 2 > rows ? 'others' : 'matches'
    const areKnown = !isNear && Math.min(count, Math.abs(rows - count)) <= mostKnown
    return { ...place, patience: most * 4 < rows ? most : null, known: areKnown ? known : null }
  }
  if (isBetween(list, asked)) return { ...place, patience: needed + mostPassed }
  // PostgreSQL takes the index of a filter that has this order, too, when it knows how many rows match.
  const isSearched = list.search.once !== undefined && asked.terms.length > 0
  return { ...place, patience: isSearched ? patienceOf(needed, rows) : null }
}

/** Whether rows of a period are requested in an order that is nearly that of time: a walk reaches them at once, or much later. */
function isBetween(list: Listed, { ordering, filters }: ListQuery): boolean {
  const { alike = [] } = tableOf(list.view.model)
  const [first] = sortsOf(list, ordering)
  const isAlike = (field: unknown) => alike.some((each) => each === field)
  return isAlike(first?.field) && filters.some(({ filter: { on } }) => on !== first?.field && isAlike(on))
}

/** The keys of one page, as `keys`: by an index-only scan where an index has this order. */
export function walkStatement(list: Listed, asked: ListQuery, place: Place, values: Values): string {
  const { isBackward, size, offset } = place
  const sorts = sortsOf(list, asked.ordering)
  // LIMIT is a literal: the generic plan would guess the number of rows of a parameter.
  const isUsual = asked.isPlain && size === usualPageSize && offset === 0
  const limits = isUsual ? `LIMIT ${usualPageSize}` : `LIMIT ${values.bind(size)} OFFSET ${values.bind(offset)}`
  const byText = textByText(list, asked, sorts, isBackward, values)
  if (byText !== undefined) return `SELECT ARRAY(${byText} ${limits}) AS keys`
  const conditions = walkedConditions(list, asked, place, values)
  const few = valuesOf(list, asked)
  if (few !== undefined) return byValue(list, sorts, conditions, few, limits, offset + size)
  if (place.patience !== null && place.known === null && conditions.length > 0)
    return boundedWalk(list, sorts, conditions, place, limits, matchingRows(list, asked, values))
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  return `SELECT ARRAY(SELECT ${keyOf(list)} FROM ${tableOf(list.view.model).name} ${where}
    ORDER BY ${directions(sorts, isBackward)} ${limits}) AS keys`
}

/** The keys in an order that begins with the texts that are searched; undefined for another order. */
function textByText(
  list: Listed,
  asked: ListQuery,
  sorts: readonly Sort[],
  isBackward: boolean,
  values: Values,
): string | undefined {
  const [first] = sorts
  if (first === undefined) return undefined
  const direction = first.descending === isBackward ? 'ASC' : 'DESC'
  const found = matchingTexts(list, asked, { ...first, direction }, values)
  if (found === undefined) return undefined
  const along = sorts.map((sort) => (sort === first ? { ...sort, column: found.text } : sort))
  return `SELECT ${keyOf(list)} FROM ${found.rows} ORDER BY ${directions(along, isBackward)}`
}

/**
 * The conditions of a walk. Far into a list they are on keys alone: then it reads an index, and no rows. A filter that has such a
 * form of its own needs no other.
 */
function walkedConditions(list: Listed, asked: ListQuery, { isNear, known }: Place, values: Values): readonly string[] {
  const part = isNear ? 'few' : 'many'
  if (known === null || hasOwnForm(list, asked) || !isNarrowed(list, asked)) return byRow(list, asked, part, values)
  const key = keyOf(list)
  return known === 'matches'
    ? [isAmong(key, `SELECT ${key} FROM ${matchingRows(list, asWalked(asked, part), values)}`)]
    : [`NOT ${isAmong(key, `SELECT ${key} FROM ${otherRows(list, asked, values)}`)}`]
}

const hasOwnForm = (list: Listed, { filters, ...asked }: ListQuery): boolean =>
  filters.length === 1 && filters[0]?.filter.walked !== undefined && !isNarrowed(list, { ...asked, filters: [] })

const directions = (sorts: readonly Sort[], isBackward: boolean): string =>
  sorts.map(({ column, descending }) => `${column} ${descending === isBackward ? 'ASC' : 'DESC'}`).join(', ')

/**
 * Rows that match may all be at the other end of the order: a walk that does not find the page where it should be is cancelled,
 * and the matches are sorted.
 */
function boundedWalk(
  list: Listed,
  sorts: readonly Sort[],
  conditions: readonly string[],
  { isBackward, size, patience: most }: Place,
  limits: string,
  matching: string,
): string {
  const { name } = tableOf(list.view.model)
  const { columns, order } = orderOf(sorts, isBackward)
  const along = directions(sorts, isBackward)
  // Conditions see the row of the table itself: some take it as a whole.
  const met = [`${keyOf(list)} AS key`, `(${conditions.join(' AND ')}) AS is_match`, ...columns].join(', ')
  return `WITH walked AS MATERIALIZED (
      SELECT key FROM (SELECT ${met} FROM ${name} ORDER BY ${along} LIMIT ${most}) met
      WHERE is_match ORDER BY ${order} ${limits})
    SELECT CASE WHEN (SELECT count(*) FROM walked) = ${size} THEN ARRAY(SELECT key FROM walked) ELSE ARRAY(
      SELECT key FROM (SELECT ${[`${keyOf(list)} AS key`, ...columns].join(', ')} FROM ${matching} OFFSET 0) matching
      ORDER BY ${order} ${limits}) END AS keys`
}

/** The values of the field that an order begins with, as far as rows with them may match; undefined: it has no list of values. */
function valuesOf(list: Listed, { ordering, filters }: ListQuery): readonly string[] | undefined {
  const [first] = sortsOf(list, ordering)
  const all: readonly string[] | undefined = Object.entries(list.fewValues ?? {}).find(
    ([name]) => name === first?.field,
  )?.[1]
  const sent = filters.flatMap(({ filter: { on }, value }) =>
    on === first?.field && Array.isArray(value) ? [value] : [],
  )
  return all?.filter((value) => sent.every((values) => values.includes(value)))
}

/**
 * The keys value by value, for an order that begins with a field of few values: each finds its rows by an index of the next
 * order. A value is left out when those before it have enough rows.
 */
function byValue(
  list: Listed,
  sorts: readonly Sort[],
  conditions: readonly string[],
  values: readonly string[],
  limits: string,
  most: number,
): string {
  const { columns, order } = orderOf(sorts, false)
  const [first, ...rest] = sorts
  const inOrder = first?.descending === true ? values.toReversed() : values
  const parts = inOrder.map((value, index) => {
    const earlier = inOrder.slice(0, index).map((_, each) => `(SELECT count(*) FROM v${each})`)
    const isWanted = earlier.length === 0 ? [] : [`${earlier.join(' + ')} < ${most}`]
    const met = [...conditions, `${first?.column} = '${value}'`, ...isWanted].join(' AND ')
    return `v${index} AS MATERIALIZED (
      SELECT ${[`${keyOf(list)} AS key`, ...columns].join(', ')} FROM ${tableOf(list.view.model).name}
      WHERE ${met} ORDER BY ${directions(rest, false)} LIMIT ${most})`
  })
  const all = inOrder.map((_, index) => `SELECT * FROM v${index}`).join(' UNION ALL ')
  return `WITH ${parts.join(', ')}
    SELECT ARRAY(SELECT key FROM (${all}) matching ORDER BY ${order} ${limits}) AS keys`
}
