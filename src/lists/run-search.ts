import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { Values } from '../db/raw.ts'
import type { Actor } from '../permissions.ts'
import { hasOutcome, type Outcome, outcomeSql, outcomes } from '../runs/outcome.ts'
import type { ListSpec } from './list.ts'
import type { ListQuery } from './listed.ts'
import { askRuns, hasOwner, narrowed, ownersSql, runsOfObjects, seenRuns } from './runs.ts'

/**
 * Runs as operators search them: by time first, the newest first, and from a place on. Nothing is counted beyond the rows that
 * are read. Conditions without an index (words, a kind, whether anything was changed) are checked on a limited number of rows,
 * and the search reports the last one.
 */

/** The periods of a search, as PostgreSQL writes them. */
export const spans = { hour: '1 hour', day: '1 day', week: '7 days', month: '30 days', all: null } as const
export type Span = keyof typeof spans

export type RunQuestion = {
  readonly span: Span
  readonly outcome: Outcome | 'planned' | null
  /** The username of the submitter. */
  readonly who: string | null
  readonly owner: string | null
  /** The filters of the API's list. */
  readonly filters: ListQuery['filters']
  readonly terms: readonly string[]
}

/** The place of a run in the order: milliseconds, and its id. */
const place = z.object({ at: z.number(), id: z.guid() })
export type Place = z.output<typeof place>

/** @returns `1732371304123.01a1fd66-...`, for an address */
export const placeText = ({ at, id }: Place): string => `${at}.${id}`

/** @returns undefined for a text that is no place */
export function placeOf(text: string): Place | undefined {
  const [, at, id] = /^(\d{1,15})\.([\da-f-]{36})$/.exec(text) ?? []
  return place.safeParse({ at: Number(at), id }).data
}

/** Runs are counted up to this number. */
export const mostCounted = 1_000

/** The most runs that are grouped by cause: a failed one of them is compared with later ones. */
export const mostGrouped = 500

/** The most runs that one search scans for conditions without an index. */
export const mostLooked = 5_000

const searchRow = z.object({ runs: z.array(place), count: z.int(), looked: place.nullable() })

/**
 * @property count all that match, whatever the place: 1 001 stands for more; null when it is not known
 * @property next the start of the next page
 * @property looked the place at which the search ended: older runs may match too
 */
export type Found = {
  readonly ids: readonly string[]
  readonly count: number | null
  readonly next: Place | null
  readonly looked: Place | null
}

/** Finds a page of runs that the caller sees. @param before only runs that are older than this */
export async function searchRuns(
  db: Db,
  spec: ListSpec<'Run'>,
  actor: Actor,
  question: RunQuestion,
  { before, size }: { readonly before: Place | null; readonly size: number },
): Promise<Found> {
  const values = new Values()
  const { quick, slow } = conditionsOf(spec, actor, question, await submitterOf(db, question), values)
  const older =
    before === null
      ? 'true'
      : `(runs.created_at, runs.id) < (to_timestamp(${values.bind(before.at)}::float8 / 1000), ${values.bind(before.id)}::uuid)`
  const limit = values.bind(size + 1)
  const text =
    slow === null ? quickText(quick, older, limit) : slowText(`${quick} AND ${older}`, slow, `LIMIT ${limit}`)
  const [row] = await askRuns(db, searchRow, { text, values: values.list })
  const { runs, count, looked } = row ?? { runs: [], count: 0, looked: null }
  const page = runs.slice(0, size)
  const next = runs.length > size ? (page.at(-1) ?? null) : looked
  return { ids: page.map(({ id }) => id), count: slow !== null && before !== null ? null : count, next, looked }
}

const placeSql = (of: string) => `round(extract(epoch FROM ${of}.created_at) * 1000)::float8 AS at, ${of}.id`
const newestFirst = (of: string) => `ORDER BY ${of}.created_at DESC, ${of}.id DESC`

/**
 * Finds runs by an index. PostgreSQL estimates badly how many runs an owner has, and would walk past all others: few runs are
 * found first.
 */
const quickText = (matching: string, older: string, limit: string): string => `
  WITH few AS MATERIALIZED (SELECT runs.created_at, runs.id FROM runs WHERE ${matching} LIMIT ${mostCounted + 1}),
    counted AS MATERIALIZED (SELECT count(*)::integer AS count FROM few)
  SELECT count, coalesce(CASE WHEN count <= ${mostCounted} THEN ${pageSql('few runs', older, limit)}
      ELSE ${pageSql('runs', `${matching} AND ${older}`, limit)} END, '[]') AS runs, NULL::jsonb AS looked
  FROM counted`

const pageSql = (from: string, matching: string, limit: string): string => `(SELECT jsonb_agg(page) FROM (
      SELECT ${placeSql('runs')} FROM ${from} WHERE ${matching} ${newestFirst('runs')} LIMIT ${limit}) page)`

/** Scans rows one by one until enough are found: PostgreSQL reads no more of `newest` than is requested. */
const slowText = (quick: string, slow: string, limit: string): string => `WITH ${newestSql(quick, slow)},
  found AS MATERIALIZED (SELECT created_at, id FROM newest WHERE hit LIMIT ${mostCounted + 1}),
  counted AS MATERIALIZED (SELECT count(*)::integer AS count FROM found)
  SELECT count, coalesce((SELECT jsonb_agg(page) FROM (
      SELECT ${placeSql('found')} FROM found ${newestFirst('found')} ${limit}) page), '[]') AS runs,
    CASE WHEN count <= ${mostCounted} THEN ${lookedSql} END AS looked
  FROM counted`

const newestSql = (quick: string, slow: string): string => `newest AS MATERIALIZED (
    SELECT runs.created_at, runs.id, (${slow}) AS hit FROM runs WHERE ${quick} ${newestFirst('runs')} LIMIT ${mostLooked})`

/** The place at which the search ended, unless it read all. */
const lookedSql = `(SELECT to_jsonb(last) FROM (
    SELECT ${placeSql('newest')} FROM newest OFFSET ${mostLooked - 1} LIMIT 1) last)`

const factRow = z.object({
  id: z.guid(),
  outcome: z.enum([...outcomes, 'planned']),
  cause: z.string().nullable(),
  reason: z.string().nullable(),
  submitter: z.string().nullable(),
  owners: z.array(z.string()),
  createdAt: z.date(),
})

/** The facts by which a run is grouped. The cause is only for callers with `view_run`: `run-groups.ts` ensures that. */
export type RunFact = z.output<typeof factRow>

/** Reads the facts of the newest runs that match. @returns `looked`: see `searchRuns` */
export async function readFacts(
  db: Db,
  spec: ListSpec<'Run'>,
  actor: Actor,
  question: RunQuestion,
  most: number,
): Promise<{ readonly facts: readonly RunFact[]; readonly looked: Place | null }> {
  const values = new Values()
  const { quick, slow } = conditionsOf(spec, actor, question, await submitterOf(db, question), values)
  const limit = values.bind(most)
  const isHit =
    slow === null
      ? `${quick} ${newestFirst('runs')} LIMIT ${limit}`
      : `runs.id IN (SELECT id FROM newest WHERE hit LIMIT ${limit}) ${newestFirst('runs')}`
  const facts = `SELECT runs.id, ${outcomeSql} AS outcome, runs.cause, runs.reason, u.username AS submitter,
      ${ownersSql} AS owners, runs.created_at AS "createdAt"
    FROM runs LEFT JOIN users u ON u.pk = runs.submitter_pk WHERE ${isHit}`
  const rows = await askRuns(db, factRow, {
    text: slow === null ? facts : `WITH ${newestSql(quick, slow)} ${facts}`,
    values: values.list,
  })
  if (slow === null || rows.length >= most) return { facts: rows, looked: null }
  const { looked } = await searchRuns(db, spec, actor, question, { before: null, size: 1 })
  return { facts: rows, looked }
}

const laterRow = z.object({ id: z.guid() })

/**
 * Later runs of the same objects, the next one first: those of the same application, and those that changed one of the objects.
 * The list's own filter decides which objects a caller may name.
 *
 * @param objects names in the form of the filter `object`: `application:shop`
 */
export async function laterRuns(
  db: Db,
  spec: ListSpec<'Run'>,
  actor: Actor,
  of: { readonly slug: string | null; readonly createdAt: Date; readonly objects: readonly string[] },
  most: number,
): Promise<string[]> {
  const values = new Values()
  const after = values.bind(of.createdAt)
  const same = runsOfObjects(spec, actor, of.objects, values)
  if (of.slug !== null)
    same.push(`(SELECT r.id FROM runs r WHERE r.slug = ${values.bind(of.slug)} AND r.created_at > ${after}::timestamptz
      ORDER BY r.created_at LIMIT ${mostCounted})`)
  if (same.length === 0) return []
  const rows = await askRuns(db, laterRow, {
    text: `SELECT runs.id FROM runs WHERE runs.id IN (${same.join(' UNION ALL ')})
        AND runs.created_at > ${after}::timestamptz AND runs.mode = 'apply' AND ${seenRuns(spec, actor, values)}
      ORDER BY runs.created_at, runs.id LIMIT ${values.bind(most)}`,
    values: values.list,
  })
  return rows.map(({ id }) => id)
}

/** @returns the key of a submitter, whose runs PostgreSQL then knows to be few or many; 0 for a name that no user has */
async function submitterOf(db: Db, { who }: RunQuestion): Promise<number | null> {
  if (who === null) return null
  return (await db.user.findUnique({ where: { username: who }, select: { pk: true } }))?.pk ?? 0
}

/** Filters of the API's list without an index. */
const unindexed: readonly string[] = ['kind']

/** @returns conditions with an index, and those for which rows are scanned; null: none */
function conditionsOf(
  spec: ListSpec<'Run'>,
  actor: Actor,
  { span, outcome, owner, filters, terms }: RunQuestion,
  submitter: number | null,
  values: Values,
): { readonly quick: string; readonly slow: string | null } {
  const period = spans[span]
  const seen = filters.map(({ name, filter, value }) => ({ name, filter, value: filter.seen?.(value, actor) ?? value }))
  const [slowFilters, quickFilters] = [true, false].map((isSlow) =>
    seen.filter(({ name }) => unindexed.includes(name) === isSlow),
  )
  const isOfMost = outcome === 'applied' || outcome === 'unchanged'
  const outcomeIs = outcome === null ? [] : [outcome === 'planned' ? isPlanned : hasOutcome[outcome]]
  const quick = [
    seenRuns(spec, actor, values, { filters: quickFilters ?? [] }),
    ...(period === null ? [] : [`runs.created_at >= now() - interval '${period}'`]),
    ...(isOfMost ? [] : outcomeIs),
    ...(submitter === null ? [] : [`runs.submitter_pk = ${values.bind(submitter)}::integer`]),
    ...(owner === null ? [] : [hasOwner('runs.options', values.bind(owner))]),
  ]
  const isSlow = (slowFilters ?? []).length > 0 || terms.length > 0 || isOfMost
  const slow = [...narrowed(spec, values, { filters: slowFilters ?? [], terms }), ...(isOfMost ? outcomeIs : [])]
  return { quick: quick.join(' AND '), slow: isSlow ? slow.join(' AND ') : null }
}

const isPlanned = "(runs.mode = 'plan' AND runs.state = 'done')"
