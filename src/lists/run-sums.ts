import { z } from 'zod'
import { type Db, transaction } from '../db/client.ts'
import { query, unprepared } from '../db/raw.ts'
import { bucketSql, middleOf, queueMsSql, type StepS, workMsSql } from '../runs/fold.ts'
import { type Outcome, outcomeSql, outcomes } from '../runs/outcome.ts'

/**
 * Figures of all runs, from sums that maintenance keeps, and from the runs since: a plot of a year reads no more rows than
 * that of a day (docs/adr/0068-plots-read-folded-runs.md).
 */

/** Submissions that were recorded in one step, by outcome. Plans are none. */
export type Bar = { readonly at: Date; readonly outcome: Outcome; readonly runs: number }

/** Milliseconds that half of the runs, and all but one of a hundred, took at most. */
export type Times = Readonly<Record<'queueMs' | 'workMs', { readonly p50: number; readonly p99: number } | null>>

export type Figures = { readonly bars: readonly Bar[]; readonly from: Date; readonly times: Times }

const part = z.object({
  /** Null of times, which are not told apart by step. */
  at: z.date().nullable(),
  series: z.enum([...outcomes, 'queue', 'work']),
  bucket: z.int(),
  runs: z.int(),
})
type Part = z.output<typeof part>

const placeRow = z.object({ from: z.date(), until: z.date() })

/** @param sumsS the step of the sums, which a step of the plot has some of */
export async function readSums(
  db: Db,
  { steps, stepS }: { readonly steps: number; readonly stepS: number },
  sumsS: StepS,
): Promise<Figures> {
  const step = `interval '${stepS} s'`
  return transaction(
    db,
    async (tx) => {
      const [place] = await query(tx, placeRow, {
        text: `SELECT date_bin(${step}, now(), 'epoch') - interval '${(steps - 1) * stepS} s' AS from, until FROM run_folds`,
        values: [],
      })
      if (place === undefined) throw new Error('run_folds has no row')
      const { from, until } = place
      const folded = await query(
        tx,
        part,
        unprepared({
          text: `SELECT CASE WHEN series NOT IN ('queue', 'work') THEN date_bin(${step}, at, 'epoch') END AS at, series,
              bucket::integer AS bucket, sum(runs)::integer AS runs
            FROM run_sums WHERE step_s = ${sumsS} AND at >= $1::timestamptz GROUP BY 1, 2, 3`,
          values: [from],
        }),
      )
      const since = await query(tx, part, unprepared({ text: sinceText(step), values: [until > from ? until : from] }))
      return figuresOf([...folded, ...since], from)
    },
    { isolationLevel: 'RepeatableRead', plans: 'auto' },
  )
}

const sinceText = (step: string): string => `WITH since AS MATERIALIZED (
    SELECT date_bin(${step}, runs.created_at, 'epoch') AS at, ${outcomeSql} AS outcome,
      ${bucketSql(queueMsSql)} AS queue, ${bucketSql(workMsSql)} AS work
    FROM runs WHERE runs.created_at >= $1::timestamptz AND runs.mode = 'apply')
  SELECT at, outcome AS series, 0 AS bucket, count(*)::integer AS runs FROM since GROUP BY at, outcome
  UNION ALL SELECT NULL, 'queue', queue::integer, count(*)::integer FROM since WHERE queue IS NOT NULL GROUP BY queue
  UNION ALL SELECT NULL, 'work', work::integer, count(*)::integer FROM since WHERE work IS NOT NULL GROUP BY work`

function figuresOf(parts: readonly Part[], from: Date): Figures {
  const byBar = new Map<string, Bar>()
  for (const { at, series, runs } of parts) {
    if (at === null || series === 'queue' || series === 'work') continue
    const key = `${at.getTime()} ${series}`
    byBar.set(key, { at, outcome: series, runs: runs + (byBar.get(key)?.runs ?? 0) })
  }
  const bars = [...byBar.values()].sort((one, other) => one.at.getTime() - other.at.getTime())
  const timesOf = (series: 'queue' | 'work') => quantilesOf(parts.filter((each) => each.series === series))
  return { bars, from, times: { queueMs: timesOf('queue'), workMs: timesOf('work') } }
}

function quantilesOf(parts: readonly Part[]) {
  if (parts.length === 0) return null
  const sorted = parts.toSorted((one, other) => one.bucket - other.bucket)
  const all = sorted.reduce((sum, { runs }) => sum + runs, 0)
  const reached = (share: number): number => {
    let seen = 0
    for (const { bucket, runs } of sorted) {
      seen += runs
      if (seen >= all * share) return middleOf(bucket)
    }
    return middleOf(sorted.at(-1)?.bucket ?? 0)
  }
  return { p50: reached(0.5), p99: reached(0.99) }
}
