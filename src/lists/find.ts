import { z } from 'zod'
import type { Tx } from '../db/client.ts'
import { query, type Statement, unprepared, Values } from '../db/raw.ts'
import type { Key } from '../views/view.ts'
import { conditionsOf } from './conditions.ts'
import type { ListQuery, ListSpec, Sorted } from './listed.ts'
import { qualified, tableOf } from './tables.ts'

/**
 * The statements that count the rows of a list, and find those of one page: Prisma's models cannot express them, and their
 * `contains` takes no index (docs/adr/0027-lists-find-keys-and-prisma-reads-rows.md). Values are always parameters.
 */

/**
 * PostgreSQL estimates badly how many rows a search or an attribute matches, and would walk along an order past all others. So up
 * to this number of matches are found first, and sorted. Of more, one in twenty of a million rows matches: a walk is short.
 */
const mostSorted = 50_000

const keysOf = z.array(z.union([z.number(), z.string(), z.bigint().transform(String)]))
const countedRow = z.object({
  count: z.int(),
  /** The keys of the page, in order; null when it takes a statement of its own. */
  keys: keysOf.nullable(),
  /** The values that name nothing, by parameter. */
  unknown: z.record(z.string(), z.array(z.string())),
})
const pageRow = z.object({ keys: keysOf })

/**
 * @property count one more than `mostCounted` when there are more, and `isExact` is false
 * @property keys those of the page, in order; none behind the last page
 */
export type Found = {
  readonly count: number
  readonly isExact: boolean
  readonly unknown: z.output<typeof countedRow>['unknown']
  readonly keys: readonly Key[]
}

type Counted = Pick<Found, 'count' | 'isExact'>

/** Counts the rows that match, and finds the keys of one page: one statement, or two when many rows match. */
export async function find(tx: Tx, list: ListSpec, asked: ListQuery): Promise<Found> {
  const values = new Values()
  const { length: narrowings } = conditionsOf(list, asked, new Values().bind)
  const isNarrowed = narrowings > 0
  const number = isNarrowed ? numberAlone(asked, narrowings, values) : sizeOf(list, asked)
  const text = number === undefined ? matching(list, asked, values) : counted(list, asked, number, values)
  const [found] = await query(tx, countedRow, made(text, values, asked))
  if (found === undefined) throw new Error('a statement that always has a row had none')
  const { count, unknown } = found
  const isCapped = isNarrowed || list.count === 'capped'
  const isExact = asked.mostCounted === undefined || count <= asked.mostCounted || !isCapped
  const keys = found.keys ?? (startOf(asked) < count ? await readPage(tx, list, asked, { count, isExact }) : [])
  return { count, isExact, unknown, keys }
}

/** Only plain lists are prepared: a connection keeps each prepared text, and filters and pages make any number of texts. */
const made = (text: string, { list: values }: Values, { isPlain }: ListQuery): Statement =>
  isPlain ? { text, values } : unprepared({ text, values })

/** A number that is known without the rows, and the first page of a whole list. */
function counted(list: ListSpec, asked: ListQuery, number: string, values: Values): string {
  const isFirst = asked.filters.length === 0 && asked.page === 1
  const keys = isFirst ? `ARRAY(${pageOf(list, asked, [], { offset: 0, size: asked.page_size }, values)})` : 'NULL'
  return `SELECT (${number})::integer AS count, ${keys} AS keys, ${unknownOf(asked, values)} AS unknown`
}

function sizeOf(list: ListSpec, asked: ListQuery): string {
  const { name } = tableOf(list.view.model)
  if (list.count === 'kept') return `SELECT coalesce(sum(c.rows), 0) FROM row_counts c WHERE c.table_name = '${name}'`
  return `SELECT count(*) FROM ${list.count === 'capped' ? upTo(asked, name) : name}`
}

/** @param from a table, and the conditions on its rows */
const upTo = ({ mostCounted }: ListQuery, from: string): string =>
  mostCounted === undefined ? from : `(SELECT FROM ${from} LIMIT ${mostCounted + 1}) counted`

/** The number of matches, in SQL, when only one filter narrows the list, and that filter knows it. */
function numberAlone({ filters, mostCounted }: ListQuery, narrowings: number, { bind }: Values) {
  const [alone] = filters
  return narrowings === 1 && mostCounted === undefined ? alone?.filter.number?.(alone.value, bind) : undefined
}

/** Few matches are counted and sorted at once, and of many the number. */
function matching(list: ListSpec, asked: ListQuery, values: Values): string {
  const { mostCounted = Number.POSITIVE_INFINITY } = asked
  const most = Math.min(mostSorted, mostCounted)
  const all = () => `${tableOf(list.view.model).name} WHERE ${conditionsOf(list, asked, values.bind).join(' AND ')}`
  const many = most === mostCounted ? most + 1 : `(SELECT count(*) FROM ${upTo(asked, all())})`
  const sorts = sortsOf(list, asked.ordering)
  const columns = sorts.map(({ column }, index) => `${column} AS o${index}`)
  const sorted = sorts.map((sort, index) => ({ ...sort, column: `o${index}` }))
  return `WITH matching AS MATERIALIZED (
      SELECT ${[`${keyOf(list)} AS key`, ...columns].join(', ')} FROM ${all()} LIMIT ${most + 1}),
    few AS MATERIALIZED (SELECT count(*) AS number, count(*) <= ${most} AS is_all FROM matching)
    SELECT (CASE WHEN is_all THEN number ELSE ${many} END)::integer AS count,
      CASE WHEN is_all THEN ARRAY(SELECT key FROM matching WHERE ${behind(sorted, asked, values)}
        ORDER BY ${directions(sorted)} LIMIT ${asked.page_size} OFFSET ${startOf(asked)}) END AS keys,
      ${unknownOf(asked, values)} AS unknown
    FROM few`
}

function unknownOf({ filters }: ListQuery, { bind }: Values): string {
  const pairs = filters.flatMap(({ name, filter, value }) => {
    if (filter.known === undefined) return []
    const sent = bind([value].flat().map(String))
    return `'${name}', ARRAY(SELECT s FROM unnest(${sent}::text[]) s WHERE s NOT IN (${filter.known.among(sent)}))`
  })
  return `jsonb_build_object(${pairs.join(', ')})`
}

/** The keys of a page when they were not found while the rows were counted. Behind the middle, it is found from the end. */
async function readPage(tx: Tx, list: ListSpec, asked: ListQuery, matches: Counted): Promise<readonly Key[]> {
  const { count, isExact } = matches
  const start = startOf(asked)
  const isBackward = isExact && asked.behind === undefined && start > count / 2
  const size = isExact ? Math.min(asked.page_size, count - start) : asked.page_size
  const offset = isBackward ? count - start - size : start
  const values = new Values()
  const conditions = conditionsOf(list, asked, values.bind, count > mostSorted || !isExact)
  const text = `SELECT ARRAY(${pageOf(list, asked, conditions, { offset, size, isBackward }, values)}) AS keys`
  const [page] = await query(tx, pageRow, made(text, values, asked))
  const keys = page?.keys ?? []
  return isBackward ? keys.toReversed() : keys
}

type PageBounds = { readonly offset: number; readonly size: number; readonly isBackward?: boolean }

/** The keys of a page along the order, in SQL. */
function pageOf(
  list: ListSpec,
  asked: ListQuery,
  conditions: readonly string[],
  { offset, size, isBackward = false }: PageBounds,
  values: Values,
): string {
  const sorts = sortsOf(list, asked.ordering)
  const met = [...conditions, behind(sorts, asked, values)].join(' AND ')
  return `SELECT ${keyOf(list)} FROM ${tableOf(list.view.model).name} WHERE ${met}
    ORDER BY ${directions(sorts, isBackward)} LIMIT ${size} OFFSET ${offset}`
}

const startOf = ({ page, page_size }: ListQuery): number => (page - 1) * page_size

const keyOf = ({ view: { model } }: ListSpec): string => qualified(model, tableOf(model).unique[0])

type Sort = { readonly field: string; readonly column: string; readonly descending: boolean }

/** The fields that break ties are added: a row is on one page only. In the last direction: an index serves both. */
function sortsOf({ view: { model }, order }: ListSpec, ordering: readonly Sorted[]): readonly Sort[] {
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

const directions = (sorts: readonly Sort[], isBackward = false): string =>
  sorts.map(({ column, descending }) => `${column} ${descending === isBackward ? 'ASC' : 'DESC'}`).join(', ')

/** The rows behind another one, of which the request has the sorted values: all fields have the direction of the first. */
function behind(sorts: readonly Sort[], { behind: place }: ListQuery, { bind }: Values): string {
  if (place === undefined) return 'true'
  const columns = sorts.map(({ column }) => column).join(', ')
  return `(${columns}) ${sorts[0]?.descending === true ? '<' : '>'} (${place.map(bind).join(', ')})`
}
