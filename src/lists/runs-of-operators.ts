import { z } from 'zod'
import type { Db } from '../db/client.ts'
import type { Registry } from '../models/registry.ts'
import type { Actor } from '../permissions.ts'
import { hasOutcome, type Outcome, outcomes } from '../runs/outcome.ts'
import * as filter from './filters.ts'
import { findPage, type ListSpec, type Request } from './list.ts'
import { runList } from './runs.ts'

/** The list of runs with what the pages of operators ask beside: periods, outcomes, users by name, and runs of the same objects. */

/** The periods of a search, as PostgreSQL writes them. */
export const spans = { hour: '1 hour', day: '1 day', week: '7 days', month: '30 days', all: null } as const
export type Span = keyof typeof spans

export const outcomesAsked = [...outcomes, 'planned'] as const

const conditionOf: Readonly<Record<Outcome | 'planned', string>> = {
  ...hasOutcome,
  planned: "(runs.mode = 'plan' AND runs.state = 'done')",
}

/**
 * Runs that changed one of the objects, were recorded for the application since a time, or are of the submitter with the title.
 *
 * @property objects names in the form of the filter `object`: `application:shop`
 */
type Same = {
  readonly objects: readonly string[]
  readonly application?: { readonly slug: string; readonly since: Date }
  readonly document?: { readonly title: string; readonly submitter: number | null }
}

const any = z.any()

export function runListOfOperators(registry: Registry): ListSpec<'Run'> {
  const list = runList(registry)
  return {
    ...list,
    filters: {
      ...list.filters,
      period: filter.isWithin('createdAt', spans),
      outcome: filter.narrows<'state', Outcome | 'planned'>('state', z.enum(outcomesAsked), (_, outcome) => conditionOf[outcome]),
      who: filter.narrows<'submitterPk', string>(
        'submitterPk',
        z.string(),
        (submitter, name, bind) => `${submitter} = (SELECT u.pk FROM users u WHERE u.username = ${bind(name)})`,
      ),
      title: filter.equals('title'),
      applied: filter.isTrue('applied', 'Applied.'),
      application: filter.narrows<'slug', string | null>('slug', any, (slug, value, bind) =>
        value === null ? `${slug} IS NULL` : `${slug} = ${bind(value)}`,
      ),
      since: filter.narrows<'createdAt', Date>('createdAt', any, (at, since, bind) => `${at} > ${bind(since)}::timestamptz`),
      same: sameAs(list.filters.object),
    },
  }
}

/** The filter by an object decides which objects a caller may name. */
const sameAs = (object: filter.Filter | undefined) =>
  filter.narrows<'id', Same & { readonly seen?: readonly unknown[] }>(
    'id',
    any,
    (id, { seen = [], application, document }, bind) => {
      const of = (condition: string) => `SELECT r.id FROM runs r WHERE ${condition}`
      const ids = seen.map((value) => of(object?.condition('r.id', value, bind) ?? 'false'))
      if (application !== undefined)
        ids.push(of(`r.slug = ${bind(application.slug)} AND r.created_at > ${bind(application.since)}::timestamptz`))
      if (document !== undefined)
        ids.push(of(`r.title = ${bind(document.title)} AND r.submitter_pk = ${bind(document.submitter)}::integer`))
      return `${id} IN (${ids.join(' UNION ALL ') || of('false')})`
    },
    ({ objects, ...same }, actor) => {
      const values = objects.map((text) => object?.schema.safeParse(text).data)
      const seen = values.filter((value) => value !== undefined).map((value) => object?.seen?.(value, actor) ?? value)
      return { objects, ...same, seen }
    },
  )

/** Runs are counted up to this number. */
export const mostCounted = 1_000

/** Finds runs, the newest first. @returns `count`: 1 001 stands for more */
export async function findRuns(
  db: Db,
  spec: ListSpec<'Run'>,
  actor: Actor,
  request: Request,
): Promise<{ readonly ids: string[]; readonly count: number }> {
  const { keys, count } = await findPage(db, spec, actor, { mostCounted, ...request })
  return { ids: keys.map(String), count }
}

/** Later runs of the same objects, the next one first: those of the same application, and those that changed one of the objects. */
export async function laterRuns(
  db: Db,
  spec: ListSpec<'Run'>,
  actor: Actor,
  { slug, createdAt, objects }: { readonly slug: string | null; readonly createdAt: Date; readonly objects: readonly string[] },
  size: number,
): Promise<string[]> {
  const same: Same = { objects, ...(slug !== null && { application: { slug, since: createdAt } }) }
  const sent = { same, since: createdAt, mode: ['apply'] }
  return (await findRuns(db, spec, actor, { sent, ordering: 'created_at', size })).ids
}

export type Earlier = {
  readonly id: string
  readonly title: string
  readonly createdAt: Date
  readonly endedAt: Date
  readonly submitter: number | null
}

type Of = {
  /** The slug of an application, whose earlier runs have the same; null for a blueprint. */
  readonly slug: string | null
  /** The title of a blueprint. Its earlier run has the same title and submitter, or changed one of its objects. */
  readonly title: string
  readonly submitter: number | null
  readonly objects: readonly string[]
  /** Only runs that were recorded before this time. */
  readonly before: Date
}

/** The last applied run before another one: of a blueprint, one with its title if there is one. @returns undefined when there is none */
export async function earlierRun(
  db: Db,
  spec: ListSpec<'Run'>,
  actor: Actor,
  { slug, title, submitter, objects, before }: Of,
): Promise<Earlier | undefined> {
  const sent = { application: slug, created_before: before, applied: true, mode: ['apply'] }
  const same: Same = { objects, document: { title, submitter } }
  for (const each of slug === null ? [{ same, title }, { same }] : [{}]) {
    const { ids } = await findRuns(db, spec, actor, { sent: { ...sent, ...each }, size: 1 })
    const row = await db.run.findFirst({ where: { id: { in: ids } } , select: earlierSelect })
    if (row !== null)
      return { ...row, endedAt: row.finishedAt ?? row.createdAt, submitter: row.submitterPk }
  }
  return undefined
}

const earlierSelect = { id: true, title: true, createdAt: true, finishedAt: true, submitterPk: true } as const
