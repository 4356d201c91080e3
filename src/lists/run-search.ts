import { z } from 'zod'
import type { Db } from '../db/client.ts'
import type { Actor } from '../permissions.ts'
import { hasOutcome, type Outcome, outcomeSql, outcomes } from '../runs/outcome.ts'
import { type ListQuery, Values } from './find.ts'
import type { ListSpec } from './list.ts'
import { askRuns, seenRuns } from './runs.ts'

/** Runs as operators search them: by time first, the newest first, and from a place on. Nothing is counted further than is read. */

/** How far back a search goes, as PostgreSQL spells it. */
export const spans = { hour: '1 hour', day: '1 day', week: '7 days', month: '30 days', all: null } as const
export type Span = keyof typeof spans

export type RunQuestion = {
  readonly span: Span
  readonly outcome: Outcome | 'planned' | null
  /** The username of the submitter. */
  readonly who: string | null
  readonly owner: string | null
  /** Those of the API's list. */
  readonly filters: ListQuery['filters']
  readonly terms: readonly string[]
}

/** The place of a run in the order: milliseconds, and its id. */
const place = z.object({ at: z.number(), id: z.guid() })
export type Place = z.output<typeof place>

/** @returns `1732371304123.01a1fd66-...`, for an address */
export const placeText = ({ at, id }: Place): string => `${at}.${id}`

/** @returns undefined for what is no place */
export function placeOf(text: string): Place | undefined {
  const [, at, id] = /^(\d{1,15})\.([\da-f-]{36})$/.exec(text) ?? []
  return place.safeParse({ at: Number(at), id }).data
}

/** More are not counted. */
export const mostCounted = 1_000

const searchRow = z.object({ runs: z.array(place), count: z.int() })

/** @property count of all that match, whatever the place: 1 001 stands for more @property next where the next page begins */
export type Found = { readonly ids: readonly string[]; readonly count: number; readonly next: Place | null }

/** Finds a page of runs that the caller sees. @param before only what is older than this */
export async function searchRuns(
  db: Db,
  spec: ListSpec<'Run'>,
  actor: Actor,
  question: RunQuestion,
  { before, size }: { readonly before: Place | null; readonly size: number },
): Promise<Found> {
  const values = new Values()
  const matching = conditionsOf(spec, actor, question, await submitterOf(db, question), values)
  const counted = `SELECT count(*)::integer FROM (SELECT FROM runs WHERE ${matching} LIMIT ${mostCounted + 1}) counted`
  const older =
    before === null
      ? 'true'
      : `(runs.created_at, runs.id) < (to_timestamp(${values.bind(before.at)}::float8 / 1000), ${values.bind(before.id)}::uuid)`
  const [row] = await askRuns(db, searchRow, {
    text: `SELECT (${counted}) AS count, coalesce((SELECT jsonb_agg(page) FROM (
        SELECT round(extract(epoch FROM runs.created_at) * 1000)::float8 AS at, runs.id FROM runs WHERE ${matching} AND ${older}
        ORDER BY runs.created_at DESC, runs.id DESC LIMIT ${values.bind(size + 1)}) page), '[]') AS runs`,
    values: values.list,
  })
  const { runs, count } = row ?? { runs: [], count: 0 }
  const page = runs.slice(0, size)
  return { ids: page.map(({ id }) => id), count, next: runs.length > size ? (page.at(-1) ?? null) : null }
}

const factRow = z.object({
  id: z.guid(),
  outcome: z.enum([...outcomes, 'planned']),
  cause: z.string().nullable(),
  reason: z.string().nullable(),
  submitter: z.string().nullable(),
  owner: z.string().nullable(),
  createdAt: z.date(),
})

/** What a run is grouped by. The cause is for those with `view_run` alone: `run-groups.ts` sees to that. */
export type RunFact = z.output<typeof factRow>

/** The facts of the newest runs that match. */
export async function readFacts(
  db: Db,
  spec: ListSpec<'Run'>,
  actor: Actor,
  question: RunQuestion,
  most: number,
): Promise<RunFact[]> {
  const values = new Values()
  const matching = conditionsOf(spec, actor, question, await submitterOf(db, question), values)
  return askRuns(db, factRow, {
    text: `SELECT runs.id, ${outcomeSql} AS outcome, runs.cause, runs.reason, u.username AS submitter,
        runs.options->>'owner' AS owner, runs.created_at AS "createdAt"
      FROM runs LEFT JOIN users u ON u.pk = runs.submitter_pk WHERE ${matching}
      ORDER BY runs.created_at DESC, runs.id DESC LIMIT ${values.bind(most)}`,
    values: values.list,
  })
}

const laterRow = z.object({ id: z.guid() })

/**
 * Later runs of the same objects, the next one first: those of the same application, and those that changed one of the
 * objects. Which objects a caller may ask for says the list's own filter.
 *
 * @param objects as the filter `object` takes them: `application:shop`
 */
export async function laterRuns(
  db: Db,
  spec: ListSpec<'Run'>,
  actor: Actor,
  of: { readonly slug: string | null; readonly createdAt: Date; readonly objects: readonly string[] },
  most: number,
): Promise<string[]> {
  const values = new Values()
  const { object: filter } = spec.filters
  const after = values.bind(of.createdAt)
  const same = of.objects.flatMap((text) => {
    const value = filter?.schema.safeParse(text).data
    if (filter === undefined || value === undefined) return []
    return [
      `SELECT r.id FROM runs r WHERE ${filter.condition('r.id', filter.seen?.(value, actor) ?? value, values.bind)}`,
    ]
  })
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

function conditionsOf(
  spec: ListSpec<'Run'>,
  actor: Actor,
  { span, outcome, owner, filters, terms }: RunQuestion,
  submitter: number | null,
  values: Values,
): string {
  const period = spans[span]
  const seen = filters.map(({ name, filter, value }) => ({ name, filter, value: filter.seen?.(value, actor) ?? value }))
  return [
    seenRuns(spec, actor, values, { filters: seen, terms }),
    ...(period === null ? [] : [`runs.created_at >= now() - interval '${period}'`]),
    ...(outcome === null ? [] : [outcome === 'planned' ? isPlanned : hasOutcome[outcome]]),
    ...(submitter === null ? [] : [`runs.submitter_pk = ${values.bind(submitter)}::integer`]),
    ...(owner === null ? [] : [`runs.options->>'owner' = ${values.bind(owner)}`]),
  ].join(' AND ')
}

const isPlanned = "(runs.mode = 'plan' AND runs.state = 'done')"
