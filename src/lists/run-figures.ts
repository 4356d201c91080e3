import { z } from 'zod'
import { type Db, transaction } from '../db/client.ts'
import { query, unprepared, Values } from '../db/raw.ts'
import type { Actor } from '../permissions.ts'
import { type Outcome, outcomeSql, outcomes } from '../runs/outcome.ts'
import type { ListSpec } from './listed.ts'
import { seenRuns } from './runs.ts'
import { findRuns } from './runs-of-operators.ts'

/** Figures of the newest runs that a caller sees, for the page of operators (docs/adr/0068-one-plot-of-a-day-at-most.md). */

/** The periods that a plot shows: `steps` bars of `stepS` seconds each. */
export const periods = {
  hour: { steps: 60, stepS: 60 },
  day: { steps: 48, stepS: 1_800 },
} as const
export type Period = keyof typeof periods

/** The most submissions that are counted, the newest: to count them takes a quarter of a second. */
export const mostCounted = 50_000

/** A row for each step with a submission, and one for the whole period. Each outcome has a column. Plans do not count. */
const figuresRow = z.object({
  /** Null: the whole period. */
  at: z.date().nullable(),
  from: z.date(),
  oldest: z.date().nullable(),
  /** Milliseconds that half of the runs, and all but one of a hundred, took at most; null: no worker began one of them. */
  queueP50: z.number().nullable(),
  queueP99: z.number().nullable(),
  workP50: z.number().nullable(),
  workP99: z.number().nullable(),
  ...(Object.fromEntries(outcomes.map((each) => [each, z.int()])) as Record<Outcome, z.ZodInt>),
})
export type Counted = z.output<typeof figuresRow>

/**
 * @property bars each step of the period with a submission, the oldest first
 * @property since the oldest of `mostCounted` submissions, when there are more; null: all of the period are counted
 */
export type Figures = {
  readonly from: Date
  readonly bars: readonly (Counted & { readonly at: Date })[]
  readonly total: Counted
  readonly since: Date | null
}

const quantile = (share: number, of: string) => `percentile_disc(${share}) WITHIN GROUP (ORDER BY ${of})`

/**
 * Reads the outcomes of the submissions of a period, and how long they took, the current step included. The period is in the text:
 * PostgreSQL estimates the rows between it and now, and takes the index of a short one.
 */
export async function readFigures(db: Db, spec: ListSpec<'Run'>, actor: Actor, period: Period): Promise<Figures> {
  const { steps, stepS } = periods[period]
  const values = new Values()
  const step = `interval '${stepS} s'`
  const from = `date_bin(${step}, now(), 'epoch'::timestamptz) - interval '${(steps - 1) * stepS} s'`
  const text = `WITH seen AS MATERIALIZED (
        SELECT runs.created_at, date_bin(${step}, runs.created_at, 'epoch'::timestamptz) AS at, ${outcomeSql} AS outcome,
          (extract(epoch FROM runs.started_at - runs.created_at) * 1000)::float8 AS queue_ms,
          (extract(epoch FROM runs.finished_at - runs.started_at) * 1000)::float8 AS work_ms
        FROM runs WHERE runs.created_at >= ${from} AND runs.mode = 'apply'
          AND ${seenRuns(spec, actor, values)} ORDER BY runs.created_at DESC LIMIT ${values.bind(mostCounted)})
      SELECT at, ${from} AS from, min(created_at) AS oldest,
        ${outcomes.map((each) => `count(*) FILTER (WHERE outcome = '${each}')::integer AS ${each}`).join(', ')},
        ${quantile(0.5, 'queue_ms')} AS "queueP50", ${quantile(0.99, 'queue_ms')} AS "queueP99",
        ${quantile(0.5, 'work_ms')} AS "workP50", ${quantile(0.99, 'work_ms')} AS "workP99"
      FROM seen GROUP BY GROUPING SETS ((at), ()) ORDER BY at`
  // It is planned for its values: one submitter may have most runs, and another none.
  const statement = unprepared({ text, values: values.list })
  const rows = await transaction(db, (tx) => query(tx, figuresRow, statement), { plans: 'auto' })
  const total = rows.find(({ at }) => at === null)
  if (total === undefined) throw new Error('a statement that always has a row had none')
  const bars = rows.flatMap((row) => (row.at === null ? [] : [{ ...row, at: row.at }]))
  return { from: total.from, bars, total, since: runsOf(total) < mostCounted ? null : total.oldest }
}

/** The number of submissions. */
export const runsOf = (counted: Counted): number => outcomes.reduce((sum, each) => sum + counted[each], 0)

export const newestRuns = async (db: Db, spec: ListSpec<'Run'>, actor: Actor, most: number): Promise<string[]> =>
  (await findRuns(db, spec, actor, { sent: {}, size: most, mostCounted: most })).ids
