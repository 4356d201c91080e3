import { z } from 'zod'
import type { Db } from '../db/client.ts'
import type { Registry } from '../models/registry.ts'
import type { Actor } from '../permissions.ts'
import { hasOutcome, outcomes } from '../runs/outcome.ts'
import type { WhyOf } from '../runs/why.ts'
import * as filter from './filters.ts'
import { findPage, type Request } from './list.ts'
import type { ListSpec } from './listed.ts'
import { type RunList, runList } from './runs.ts'

/** The list of runs with what the pages of operators ask beside: periods, outcomes, users by name. */

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

export function runListOfOperators(registry: Registry, whyOf: WhyOf): RunList {
  const list = runList(registry, whyOf)
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
    },
  }
}

/** Runs are counted up to this number. */
export const mostCounted = 1_000

/** Finds runs, the newest first. @returns `count`: 1 001 stands for more */
export async function findRuns(db: Db, spec: ListSpec<'Run'>, actor: Actor, request: Request) {
  const { keys, count } = await findPage(db, spec, actor, { mostCounted, ...request })
  return { ids: keys.map(String), count }
}
