import { z } from 'zod'
import type { Db } from '../db/client.ts'
import type { Actor } from '../permissions.ts'
import { queueMsSql, type StepS, workMsSql } from '../runs/fold.ts'
import { outcomeSql, outcomes } from '../runs/outcome.ts'
import { Values } from './find.ts'
import { type ListSpec, scopeOf } from './list.ts'
import { type Figures, readSums, type Times } from './run-sums.ts'
import { askRuns, seenRuns } from './runs.ts'

/** Figures of the runs that a caller sees, for the page of operators. */

export type { Figures } from './run-sums.ts'

/** The periods that a plot shows: `steps` bars of `stepS` seconds each. */
export const periods = {
  hour: { steps: 60, stepS: 60 },
  day: { steps: 48, stepS: 1_800 },
  week: { steps: 56, stepS: 10_800 },
  month: { steps: 60, stepS: 43_200 },
  year: { steps: 53, stepS: 604_800 },
} as const
export type Period = keyof typeof periods

const bar = z.object({ at: z.date(), outcome: z.enum(outcomes), runs: z.int() })

const times = z.object({
  queueMs: z.array(z.number().nullable()).nullable(),
  workMs: z.array(z.number().nullable()).nullable(),
})

const figuresRow = z.object({ from: z.date(), bars: z.array(z.unknown()), ...times.shape })

/** Reads what became of the submissions of a period, the current step included. */
export function readFigures(db: Db, spec: ListSpec<'Run'>, actor: Actor, period: Period): Promise<Figures> {
  const { own, owners } = scopeOf(spec, actor)
  const seesAll = own === undefined && owners === undefined
  return seesAll && period !== 'hour'
    ? readSums(db, periods[period], sumsOf[period])
    : readRuns(db, spec, actor, period)
}

/** From which sums a plot is made. */
const sumsOf = { day: 60, week: 3_600, month: 3_600, year: 86_400 } as const satisfies Partial<Record<Period, StepS>>

/**
 * Of callers who do not see all runs, and of the last hour, the runs themselves are read. The period stands in the text: PostgreSQL
 * estimates what lies between it and now, and takes the index of a short one.
 */
async function readRuns(db: Db, spec: ListSpec<'Run'>, actor: Actor, period: Period): Promise<Figures> {
  const { steps, stepS } = periods[period]
  const values = new Values()
  const step = `interval '${stepS} s'`
  const from = `date_bin(${step}, now(), 'epoch'::timestamptz) - interval '${(steps - 1) * stepS} s'`
  const [row] = await askRuns(db, figuresRow, {
    text: `WITH seen AS MATERIALIZED (
        SELECT date_bin(${step}, runs.created_at, 'epoch'::timestamptz) AS at, ${outcomeSql} AS outcome,
          (${queueMsSql})::float8 AS queue_ms, (${workMsSql})::float8 AS work_ms
        FROM runs WHERE runs.created_at >= ${from} AND runs.mode = 'apply' AND ${seenRuns(spec, actor, values)}),
      bars AS (SELECT at, outcome, count(*)::integer AS runs FROM seen GROUP BY at, outcome)
      SELECT ${from} AS from,
        coalesce((SELECT jsonb_agg(jsonb_build_object('at', at, 'outcome', outcome, 'runs', runs) ORDER BY at) FROM bars), '[]')
          AS bars,
        percentile_disc(ARRAY[0.5, 0.99]) WITHIN GROUP (ORDER BY queue_ms) AS "queueMs",
        percentile_disc(ARRAY[0.5, 0.99]) WITHIN GROUP (ORDER BY work_ms) AS "workMs"
      FROM seen`,
    values: values.list,
  })
  if (row === undefined) throw new Error('a statement that always has a row had none')
  return { from: row.from, bars: z.array(barText).parse(row.bars), times: timesOf(row) }
}

const barText = bar.extend({ at: z.iso.datetime({ offset: true }).transform((text) => new Date(text)) })

const timesOf = ({ queueMs, workMs }: z.output<typeof times>): Times => ({
  queueMs: quantilesOf(queueMs),
  workMs: quantilesOf(workMs),
})

function quantilesOf(found: readonly (number | null)[] | null) {
  const [p50 = null, p99 = null] = found ?? []
  return p50 === null || p99 === null ? null : { p50, p99 }
}

const newestRow = z.object({ id: z.guid() })

/** The ids of the newest runs. */
export async function newestRuns(db: Db, spec: ListSpec<'Run'>, actor: Actor, most: number): Promise<string[]> {
  const values = new Values()
  const rows = await askRuns(db, newestRow, {
    text: `SELECT runs.id FROM runs WHERE ${seenRuns(spec, actor, values)}
        ORDER BY runs.created_at DESC, runs.id DESC LIMIT ${values.bind(most)}`,
    values: values.list,
  })
  return rows.map(({ id }) => id)
}
