import { z } from 'zod'
import type { Db } from '../db/client.ts'
import type { Registry } from '../models/registry.ts'
import type { Actor } from '../permissions.ts'
import { hasOutcome, outcomes } from '../runs/outcome.ts'
import { changedObject } from './changed-object.ts'
import * as filter from './filters.ts'
import { findPage, type Request } from './list.ts'
import type { ListSpec } from './listed.ts'
import { runList } from './runs.ts'

/** The list of runs with what the pages of operators ask beside: periods, outcomes, users by name, and runs of the same objects. */

/** The periods of a search, as PostgreSQL writes them. */
export const spans = { hour: '1 hour', day: '1 day', week: '7 days', month: '30 days', all: null } as const
export type Span = keyof typeof spans

/** `attention`: failed, or cancelled by the service. */
export const outcomesAsked = [...outcomes, 'planned', 'attention'] as const

const conditionOf: Readonly<Record<(typeof outcomesAsked)[number], string>> = {
  ...hasOutcome,
  planned: "(runs.mode = 'plan' AND runs.state = 'done')",
  attention: "(runs.state = 'failed' OR (runs.state = 'cancelled' AND NOT jsonb_exists(runs.options, 'cancelled_by')))",
}

/**
 * Runs that changed one of the objects, or were recorded for the application since a time.
 *
 * @property objects names in the form of the filter `object`: `application:shop`
 */
export type Same = {
  readonly objects: readonly string[]
  readonly application?: { readonly slug: string; readonly since: Date }
}

export function runListOfOperators(registry: Registry): ListSpec<'Run'> {
  const list = runList(registry)
  return {
    ...list,
    filters: {
      ...list.filters,
      period: filter.isWithin('createdAt', spans),
      outcome: filter.narrows('state', z.enum(outcomesAsked), (_, outcome) => conditionOf[outcome]),
      who: filter.narrows(
        'submitterPk',
        z.string(),
        (submitter, name, bind) => `${submitter} = (SELECT u.pk FROM users u WHERE u.username = ${bind(name)})`,
      ),
      end: filter.narrows('id', z.string(), (id, end, bind) => `right(${id}::text, 8) = ${bind(end)}`),
      applied: filter.isTrue('applied', 'Applied.'),
      application: filter.equals('slug'),
      since: filter.compares('createdAt', '>', 'timestamptz', z.date()),
      same: sameAs(changedObject(registry)),
    },
  }
}

/** The filter by an object decides which objects a caller may name. */
const sameAs = (object: filter.Filter<'id'>) =>
  filter.narrows(
    'id',
    z.custom<Same & { readonly seen?: readonly unknown[] }>(),
    (id, { seen = [], application }, bind) => {
      const of = (condition: string) => `SELECT r.id FROM runs r WHERE ${condition}`
      const ids = seen.map((value) => of(object.condition('r.id', value, bind)))
      if (application !== undefined)
        ids.push(of(`r.slug = ${bind(application.slug)} AND r.created_at > ${bind(application.since)}::timestamptz`))
      return `${id} IN (${ids.join(' UNION ALL ') || of('false')})`
    },
    ({ objects, ...same }, actor) => {
      const values = objects.map((text) => object.schema.safeParse(text).data).filter((value) => value !== undefined)
      return { objects, ...same, seen: values.map((value) => object.seen?.(value, actor) ?? value) }
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
