import { z } from 'zod'
import { type Db, transaction } from '../db/client.ts'
import { query, unprepared, Values } from '../db/raw.ts'
import type { Actor } from '../permissions.ts'
import { type Outcome, outcomeSql, outcomes } from '../runs/outcome.ts'
import type { ListSpec } from './listed.ts'
import { seenRuns } from './runs.ts'
import { findRuns } from './runs-of-operators.ts'

/** Figures of the newest runs that a caller sees, for the page of operators (docs/adr/0068-one-plot-of-the-last-hour.md). */

/** The plot has a bar for each minute of an hour. */
export const bars = 60
const barS = 60

/** The most submissions that are counted, the newest: to count them takes a quarter of a second. */
export const mostCounted = 50_000

/** A row for each minute with a submission. Each outcome has a column. Plans do not count. */
const barRow = z.object({
  /** Its place, from 0 for the oldest minute to 59 for the current one. */
  bar: z.int(),
  oldest: z.date(),
  ...(Object.fromEntries(outcomes.map((each) => [each, z.int()])) as Record<Outcome, z.ZodInt>),
})
type Bar = z.output<typeof barRow>

/** @property since the oldest of `mostCounted` submissions, when there are more; null: all of the hour are counted */
export type Figures = {
  readonly bars: readonly Bar[]
  readonly total: Readonly<Record<Outcome, number>>
  readonly since: Date | null
}

/** Reads the outcomes of the submissions of the last hour, the current minute included. */
export async function readFigures(db: Db, spec: ListSpec<'Run'>, actor: Actor): Promise<Figures> {
  const values = new Values()
  const from = `date_trunc('minute', now()) - interval '${(bars - 1) * barS} s'`
  const text = `WITH seen AS MATERIALIZED (
        SELECT runs.created_at, ${outcomeSql} AS outcome FROM runs WHERE runs.created_at >= ${from} AND runs.mode = 'apply'
          AND ${seenRuns(spec, actor, values)} ORDER BY runs.created_at DESC LIMIT ${values.bind(mostCounted)})
      SELECT least(floor(extract(epoch FROM created_at - (${from})) / ${barS}), ${bars - 1})::integer AS bar,
        min(created_at) AS oldest,
        ${outcomes.map((each) => `count(*) FILTER (WHERE outcome = '${each}')::integer AS ${each}`).join(', ')}
      FROM seen GROUP BY 1 ORDER BY 1`
  // It is planned for its values: one submitter may have most runs, and another none.
  const statement = unprepared({ text, values: values.list })
  const rows = await transaction(db, (tx) => query(tx, barRow, statement), { plans: 'auto' })
  const sum = (outcome: Outcome) => rows.reduce((all, bar) => all + bar[outcome], 0)
  const total = Object.fromEntries(outcomes.map((each) => [each, sum(each)])) as Record<Outcome, number>
  return { bars: rows, total, since: runsOf(total) < mostCounted ? null : (rows[0]?.oldest ?? null) }
}

/** The number of submissions. */
export const runsOf = (counted: Readonly<Record<Outcome, number>>): number =>
  outcomes.reduce((sum, each) => sum + counted[each], 0)

export const newestRuns = async (db: Db, spec: ListSpec<'Run'>, actor: Actor, most: number): Promise<string[]> =>
  (await findRuns(db, spec, actor, { sent: {}, size: most, mostCounted: most })).ids
