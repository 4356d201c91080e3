import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { Values } from '../db/raw.ts'
import type { Actor } from '../permissions.ts'
import { queueMsSql, type StepS, workMsSql } from '../runs/fold.ts'
import { outcomeSql, outcomes } from '../runs/outcome.ts'
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

const figuresRow = z.object({ from: z.date(), bars: z.array(z.unknown()), steps: z.array(z.unknown()), ...times.shape })

/** Reads the outcomes of the submissions of a period, and how long they took, the current step included. */
export function readFigures(db: Db, spec: ListSpec<'Run'>, actor: Actor, period: Period): Promise<Figures> {
  if (period === 'hour') return readHour(db, spec, actor)
  const { own, owners } = scopeOf(spec, actor)
  const seesAll = own === undefined && owners === undefined
  return readSums(db, periods[period], sumsOf[period], seesAll ? null : (values) => seenRuns(spec, actor, values))
}

/** The seconds of the sums of which a plot is made. */
const sumsOf = { day: 60, week: 3_600, month: 3_600, year: 86_400 } as const satisfies Record<
  Exclude<Period, 'hour'>,
  StepS
>

/**
 * Reads the runs of the last hour themselves, and their times are exact. The period is in the text: PostgreSQL estimates the rows
 * between it and now, and takes the index of a short one.
 */
async function readHour(db: Db, spec: ListSpec<'Run'>, actor: Actor): Promise<Figures> {
  const { steps, stepS } = periods.hour
  const values = new Values()
  const step = `interval '${stepS} s'`
  const from = `date_bin(${step}, now(), 'epoch'::timestamptz) - interval '${(steps - 1) * stepS} s'`
  const [row] = await askRuns(db, figuresRow, {
    text: `WITH seen AS MATERIALIZED (
        SELECT date_bin(${step}, runs.created_at, 'epoch'::timestamptz) AS at, ${outcomeSql} AS outcome,
          (${queueMsSql})::float8 AS queue_ms, (${workMsSql})::float8 AS work_ms
        FROM runs WHERE runs.created_at >= ${from} AND runs.mode = 'apply' AND ${seenRuns(spec, actor, values)}),
      bars AS (SELECT at, outcome, count(*)::integer AS runs FROM seen GROUP BY at, outcome),
      steps AS (SELECT at, ${quantileSql('queue_ms')} AS queue, ${quantileSql('work_ms')} AS work FROM seen GROUP BY at)
      SELECT ${from} AS from,
        coalesce((SELECT jsonb_agg(jsonb_build_object('at', at, 'outcome', outcome, 'runs', runs) ORDER BY at) FROM bars), '[]')
          AS bars,
        coalesce((SELECT jsonb_agg(jsonb_build_object('at', at, 'queueMs', queue, 'workMs', work) ORDER BY at) FROM steps), '[]')
          AS steps,
        ${quantileSql('queue_ms')} AS "queueMs", ${quantileSql('work_ms')} AS "workMs"
      FROM seen`,
    values: values.list,
  })
  if (row === undefined) throw new Error('a statement that always has a row had none')
  return {
    from: row.from,
    bars: z.array(barText).parse(row.bars),
    times: timesOf(row),
    steps: z
      .array(stepText)
      .parse(row.steps)
      .map(({ at, ...found }) => ({ at, ...timesOf(found) })),
  }
}

const quantileSql = (of: string): string => `percentile_disc(ARRAY[0.5, 0.99]) WITHIN GROUP (ORDER BY ${of})`

const at = z.iso.datetime({ offset: true }).transform((text) => new Date(text))
const barText = bar.extend({ at })
const stepText = times.extend({ at })

const timesOf = ({ queueMs, workMs }: z.output<typeof times>): Times => ({
  queueMs: quantilesOf(queueMs),
  workMs: quantilesOf(workMs),
})

function quantilesOf(found: readonly (number | null)[] | null) {
  const [p50 = null, p99 = null] = found ?? []
  return p50 === null || p99 === null ? null : { p50, p99 }
}

const newestRow = z.object({ id: z.guid() })

export async function newestRuns(db: Db, spec: ListSpec<'Run'>, actor: Actor, most: number): Promise<string[]> {
  const values = new Values()
  const rows = await askRuns(db, newestRow, {
    text: `SELECT runs.id FROM runs WHERE ${seenRuns(spec, actor, values)}
        ORDER BY runs.created_at DESC, runs.id DESC LIMIT ${values.bind(most)}`,
    values: values.list,
  })
  return rows.map(({ id }) => id)
}
