import { z } from 'zod'
import { type Db, transaction } from '../db/client.ts'
import { query, unprepared, Values } from '../db/raw.ts'
import { bucketSql, middleOf, queueMsSql, type StepS, workMsSql } from '../runs/fold.ts'
import { type Outcome, outcomeSql, outcomes } from '../runs/outcome.ts'

/**
 * Figures of all runs, from sums that maintenance keeps, and from the runs since: a plot of a year reads no more rows than that
 * of a day (docs/adr/0068-plots-read-folded-runs.md).
 */

/** Submissions that were recorded in one step, by outcome. Plans do not count. */
export type Bar = { readonly at: Date; readonly outcome: Outcome; readonly runs: number }

/** Milliseconds that half of the runs, and all but one of a hundred, took at most. */
export type Quantiles = { readonly p50: number; readonly p99: number }

/** Times of the runs; null: no worker began one of them. */
export type Times = Readonly<Record<'queueMs' | 'workMs', Quantiles | null>>

/** @property times the times of the whole period @property steps the times of each step with a run, the oldest first */
export type Figures = {
  readonly bars: readonly Bar[]
  readonly from: Date
  readonly times: Times
  readonly steps: readonly (Times & { readonly at: Date })[]
}

const part = z.object({
  at: z.date(),
  series: z.enum([...outcomes, 'queue', 'work']),
  bucket: z.int(),
  runs: z.int(),
})
type Part = z.output<typeof part>

const placeRow = z.object({ from: z.date(), until: z.date() })

/**
 * @param sumsS the step of the sums, which divides the step of the plot
 * @param seen the runs that the caller sees, in SQL, if it does not see all: sums are of all runs
 */
export async function readSums(
  db: Db,
  { steps, stepS }: { readonly steps: number; readonly stepS: number },
  sumsS: StepS,
  seen: ((values: Values) => string) | null,
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
      const values = new Values()
      const since = values.bind(seen === null && until > from ? until : from)
      const text = sinceText(step, since, seen === null ? 'true' : seen(values))
      const parts = await query(tx, part, unprepared({ text, values: values.list }))
      const folded = seen === null ? await query(tx, part, unprepared(foldedStatement(step, sumsS, from))) : []
      return figuresOf([...folded, ...parts], from)
    },
    { isolationLevel: 'RepeatableRead', plans: 'auto' },
  )
}

const foldedStatement = (step: string, sumsS: StepS, from: Date) => ({
  text: `SELECT date_bin(${step}, at, 'epoch') AS at, series, bucket::integer AS bucket, sum(runs)::integer AS runs
    FROM run_sums WHERE step_s = ${sumsS} AND at >= $1::timestamptz GROUP BY 1, 2, 3`,
  values: [from],
})

/** The runs are read once: their counts are few. */
const sinceText = (step: string, since: string, seen: string): string => `WITH since AS MATERIALIZED (
    SELECT date_bin(${step}, runs.created_at, 'epoch') AS at, ${outcomeSql} AS outcome,
      ${bucketSql(queueMsSql)} AS queue, ${bucketSql(workMsSql)} AS work, count(*) AS runs
    FROM runs WHERE runs.created_at >= ${since}::timestamptz AND runs.mode = 'apply' AND ${seen} GROUP BY 1, 2, 3, 4)
  SELECT at, outcome AS series, 0 AS bucket, sum(runs)::integer AS runs FROM since GROUP BY at, outcome
  UNION ALL SELECT at, 'queue', queue::integer, sum(runs)::integer FROM since WHERE queue IS NOT NULL GROUP BY at, queue
  UNION ALL SELECT at, 'work', work::integer, sum(runs)::integer FROM since WHERE work IS NOT NULL GROUP BY at, work`

function figuresOf(parts: readonly Part[], from: Date): Figures {
  const byBar = new Map<string, Bar>()
  for (const { at, series, runs } of parts) {
    if (series === 'queue' || series === 'work') continue
    const key = `${at.getTime()} ${series}`
    byBar.set(key, { at, outcome: series, runs: runs + (byBar.get(key)?.runs ?? 0) })
  }
  const byStep = Map.groupBy(parts, ({ at }) => at.getTime())
  return {
    bars: [...byBar.values()].sort((one, other) => one.at.getTime() - other.at.getTime()),
    from,
    times: timesOf(parts),
    steps: [...byStep]
      .sort(([one], [other]) => one - other)
      .map(([at, found]) => ({ at: new Date(at), ...timesOf(found) })),
  }
}

const timesOf = (parts: readonly Part[]): Times => ({
  queueMs: quantilesOf(parts.filter(({ series }) => series === 'queue')),
  workMs: quantilesOf(parts.filter(({ series }) => series === 'work')),
})

function quantilesOf(parts: readonly Part[]): Quantiles | null {
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
