import { z } from 'zod'
import type { Tx } from '../db/client.ts'
import { query, type Statement, unprepared, Values } from '../db/raw.ts'
import type { Key } from '../views/view.ts'
import { byRow, isFrequent, isNarrowed, matchingRows, otherRows } from './conditions.ts'
import { firstPlace, keyOf, orderOf, placeOf, sortsOf, startOf, walkStatement } from './keys.ts'
import type { Listed, ListQuery } from './listed.ts'
import { tableOf } from './tables.ts'

/**
 * The statements that find and count the rows of a list: Prisma's models cannot express them, and their `contains` takes no index
 * (docs/adr/0027-lists-find-keys-and-prisma-reads-rows.md). Values are always parameters.
 */

/** Only plain lists are prepared: a connection keeps each prepared text, and filters make any number of texts. */
const made = (text: string, { list: values }: Values, { isPlain }: ListQuery): Statement =>
  isPlain ? { text, values } : unprepared({ text, values })

/** Up to this number, matches are sorted while they are counted. If there are more, `walkStatement` finds the page. */
const maxSorted = 10_000

const keysSchema = z.array(z.union([z.number(), z.string(), z.bigint().transform(String)]))
const foundRow = z.object({
  count: z.int(),
  /** The keys of the page, in order; null when they are not known yet. */
  keys: keysSchema.nullable(),
  /** An estimate of the rows of the table; null when the keys are known. */
  size: z.int().nullable(),
  /** The values that name nothing, by parameter. */
  unknown: z.record(z.string(), z.array(z.string())),
})
const pageRow = z.object({ keys: keysSchema })

export type Found = {
  /** One more than `mostCounted` when there are more. */
  readonly count: number
  readonly isExact: boolean
  readonly unknown: z.output<typeof foundRow>['unknown']
  /** Reads the keys of the page, in order, once it is known that there is such a page. */
  readKeys(): Promise<readonly Key[]>
}

/** Counts the rows that are left, and finds those of one page: one statement, or two for pages far inside the list. */
export async function find(tx: Tx, list: Listed, asked: ListQuery): Promise<Found> {
  const isNarrow = isNarrowed(list, asked)
  const [found] = await query(tx, foundRow, isNarrow ? matchingStatement(list, asked) : sizeStatement(list, asked))
  if (found === undefined) throw new Error('a statement that always has a row had none')
  const { count, unknown, keys, size } = found
  const isExact =
    asked.mostCounted === undefined || count <= asked.mostCounted || !(isNarrow || list.count === 'capped')
  const readKeys = async () => {
    if (keys !== null) return keys
    const place = placeOf(list, asked, { count, isExact, rows: size ?? count })
    const values = new Values()
    const [page] = await query(tx, pageRow, made(walkStatement(list, asked, place, values), values, asked))
    const found = page?.keys ?? []
    return place.isBackward ? found.toReversed() : found
  }
  return { count, isExact, unknown, readKeys }
}

/** The size of a whole list, and the keys of its first page. */
function sizeStatement(list: Listed, asked: ListQuery): Statement {
  const values = new Values()
  const { name } = tableOf(list.view.model)
  const counted = list.count === 'capped' ? upTo(asked, values, name) : name
  const size = list.count === 'kept' ? keptSize(name) : `(SELECT count(*) FROM ${counted})`
  const keys = asked.page === 1 ? `(${walkStatement(list, asked, firstPlace(asked), values)})` : 'NULL'
  const text = `SELECT ${size}::integer AS count, ${keys} AS keys, NULL::integer AS size, '{}'::jsonb AS unknown`
  return made(text, values, asked)
}

const keptSize = (table: string): string =>
  `(SELECT coalesce(sum(c.rows), 0) FROM row_counts c WHERE c.table_name = '${table}')`

/** An estimate of the rows of a table, as it was last analysed, unless triggers keep the number. */
const aboutSize = ({ count, view: { model } }: Listed): string =>
  count === 'kept'
    ? keptSize(tableOf(model).name)
    : `(SELECT greatest(c.reltuples, 0) FROM pg_class c WHERE c.oid = '${tableOf(model).name}'::regclass)`

/** @param from a table, and the conditions on its rows */
const upTo = ({ mostCounted }: ListQuery, { bind }: Values, from: string): string =>
  mostCounted === undefined ? from : `(SELECT FROM ${from} LIMIT ${bind(mostCounted + 1)}) counted`

/**
 * PostgreSQL estimates badly how many rows a search or an attribute matches, and would walk along the order's index past all the
 * others: so matches are found first.
 */
function matchingStatement(list: Listed, asked: ListQuery): Statement {
  const values = new Values()
  const from = matchingRows(list, asked, values)
  const { columns, order } = orderOf(sortsOf(list, asked.ordering), false)
  const most = Math.min(maxSorted, asked.mostCounted ?? maxSorted)
  const found = `SELECT ${[`${keyOf(list)} AS key`, ...columns].join(', ')} FROM ${from}`
  const number = numberAlone(list, asked, values) ?? numberFirst(asked, from)
  const many =
    number !== undefined ? 'number' : most === asked.mostCounted ? `${most + 1}` : manyOf(list, asked, values)
  const parts =
    number === undefined
      ? `matching AS MATERIALIZED (${found} LIMIT ${most + 1}),
    few AS MATERIALIZED (SELECT count(*) AS number, count(*) <= ${most} AS is_all FROM matching)`
      : `few AS MATERIALIZED (SELECT number, number <= ${most} AS is_all FROM (${number}) alone (number)),
    matching AS MATERIALIZED (${found} AND (SELECT is_all FROM few))`
  const text = `WITH ${parts}
    SELECT (CASE WHEN is_all THEN number ELSE ${many} END)::integer AS count,
      CASE WHEN is_all THEN ARRAY(SELECT key FROM matching
        ORDER BY ${order} LIMIT ${values.bind(asked.page_size)} OFFSET ${values.bind(startOf(asked))}) END AS keys,
      (CASE WHEN NOT is_all THEN ${aboutSize(list)} END)::integer AS size,
      ${unknownOf(asked, values)} AS unknown
    FROM few`
  return made(text, values, asked)
}

/** The number of matches, in SQL, when there are many. */
function manyOf(list: Listed, asked: ListQuery, values: Values): string {
  const { name } = tableOf(list.view.model)
  const counted = (from: string) => `(SELECT count(*) FROM ${upTo(asked, values, from)})`
  const found = counted(matchingRows(list, asked, values))
  const frequent = isFrequent(list, asked, aboutSize(list), values)
  if (frequent === undefined) return found
  const read =
    list.count === 'kept'
      ? `${keptSize(name)} - (SELECT count(*) FROM ${otherRows(list, asked, values)})`
      : counted(`${name} WHERE ${byRow(list, asked, 'many', values).join(' AND ')}`)
  return `CASE WHEN ${frequent} THEN ${read} ELSE ${found} END`
}

/** The number of matches, in SQL, when only one filter narrows the list, and that filter knows it. */
function numberAlone(list: Listed, asked: ListQuery, { bind }: Values): string | undefined {
  const [alone, ...others] = asked.filters
  const isAlone = others.length === 0 && !isNarrowed(list, { ...asked, filters: [] })
  return isAlone && asked.mostCounted === undefined ? alone?.filter.number?.(alone.value, bind) : undefined
}

/**
 * The number of matches, in SQL, when more than `mostCounted` are not counted and no text is searched: an index that has the
 * filter counts without the rows, which are read for their order only if they are few.
 */
const numberFirst = ({ mostCounted, terms }: ListQuery, from: string): string | undefined =>
  mostCounted === undefined || terms.length > 0
    ? undefined
    : `SELECT count(*) FROM (SELECT FROM ${from} LIMIT ${mostCounted + 1}) counted`

function unknownOf({ filters }: ListQuery, { bind }: Values): string {
  const pairs = filters.flatMap(({ name, filter, value }) => {
    if (filter.known === undefined) return []
    const sent = bind([value].flat().map(String))
    return `'${name}', ARRAY(SELECT s FROM unnest(${sent}::text[]) s WHERE s NOT IN (${filter.known.among(sent)}))`
  })
  return `jsonb_build_object(${pairs.join(', ')})`
}
