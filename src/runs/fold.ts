import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { execute, query } from '../db/raw.ts'
import { outcomeSql } from './outcome.ts'

/**
 * Runs are folded into sums of a minute, an hour and a day each, for plots of more than an hour: in the background, never in the
 * transaction of an apply. Sums outlive their runs (docs/adr/0068-plots-read-folded-runs.md).
 */

/** The steps, in seconds, and how long their sums are kept: a little longer than the plots that read them. */
const kept = [
  { stepS: 60, days: 2 },
  { stepS: 3_600, days: 40 },
  { stepS: 86_400, days: 400 },
] as const
export type StepS = (typeof kept)[number]['stepS']

/** A run of the last minutes may still be written: a transaction that records one is open for less time. */
const notYet = "interval '5 minutes'"

/** Runs of one statement, approximately. */
const portion = 20_000

/** Each bucket of times ends a quarter above the one before: a time that is read from them is right to an eighth. */
const growth = 1.25

/** The bucket of a time in milliseconds, in SQL; null of null, which `greatest` would not be. */
export const bucketSql = (ms: string): string =>
  `(CASE WHEN ${ms} < 1 THEN 0 ELSE ceil(ln((${ms})::float8) / ln(${growth})) END)::smallint`

/** Milliseconds in the middle of a bucket. */
export const middleOf = (bucket: number): number => growth ** (bucket - 0.5)

/** The times of a row of `runs` in milliseconds, in SQL: null for one that no worker worked on. */
export const queueMsSql = 'extract(epoch FROM runs.started_at - runs.created_at) * 1000'
export const workMsSql = 'extract(epoch FROM runs.finished_at - runs.started_at) * 1000'

const steps = kept.map(({ stepS, days }) => `(${stepS}, interval '${stepS} s', interval '${days} days')`).join(', ')

const minuteOf = (time: string): string => `date_bin('1 minute', ${time}, 'epoch')`

/** Nothing is folded past a run that has not ended. */
const spanText = `SELECT f.until AS since, greatest(f.until, l.most) AS most, greatest(f.until, least(l.most, (
      SELECT greatest(f.until + interval '1 minute', ${minuteOf('r.created_at')}) FROM runs r
      WHERE r.created_at >= f.until ORDER BY r.created_at, r.id OFFSET $1 LIMIT 1))) AS until
  FROM run_folds f, (SELECT least(${minuteOf(`now() - ${notYet}`)},
    ${minuteOf("(SELECT min(created_at) FROM runs WHERE state = 'queued')")}) AS most) l`

const spanRow = z.object({ since: z.date(), until: z.date(), most: z.date() })

/** The row of `run_folds` is locked, and moved in the same statement: each run is counted once, however many workers fold. */
const foldText = `WITH state AS MATERIALIZED (SELECT FROM run_folds WHERE until = $1::timestamptz FOR UPDATE SKIP LOCKED),
  ended AS MATERIALIZED (
    SELECT ${minuteOf('runs.created_at')} AS at, ${outcomeSql} AS outcome,
      ${bucketSql(queueMsSql)} AS queue, ${bucketSql(workMsSql)} AS work
    FROM runs WHERE runs.created_at >= $1::timestamptz AND runs.created_at < $2::timestamptz
      AND runs.mode = 'apply' AND runs.state <> 'queued' AND EXISTS (SELECT FROM state)
  ), minutes AS (
    SELECT at, outcome AS series, 0::smallint AS bucket, count(*) AS runs FROM ended GROUP BY at, outcome
    UNION ALL SELECT at, 'queue', queue, count(*) FROM ended WHERE queue IS NOT NULL GROUP BY at, queue
    UNION ALL SELECT at, 'work', work, count(*) FROM ended WHERE work IS NOT NULL GROUP BY at, work
  ), added AS (
    INSERT INTO run_sums (step_s, at, series, bucket, runs)
    SELECT s.step_s, date_bin(s.step, m.at, 'epoch') AS begin, m.series, m.bucket, sum(m.runs)
    FROM minutes m, (VALUES ${steps}) s(step_s, step, kept) WHERE m.at >= now() - s.kept
    GROUP BY s.step_s, begin, m.series, m.bucket ORDER BY s.step_s, begin, m.series, m.bucket
    ON CONFLICT (step_s, at, series, bucket) DO UPDATE SET runs = run_sums.runs + excluded.runs
  ), moved AS (UPDATE run_folds SET until = $2::timestamptz WHERE EXISTS (SELECT FROM state))
  SELECT count(*)::integer AS folded FROM ended`

const foldedRow = z.object({ folded: z.int() })

/**
 * Folds the runs that have ended since the last time.
 *
 * @param portions how many at most
 * @returns how many runs were folded, and whether no more can be now
 */
export async function foldRuns(db: Db, portions: number): Promise<{ folded: number; isDone: boolean }> {
  let folded = 0
  for (let done = 0; done < portions; done += 1) {
    const [span] = await query(db, spanRow, { text: spanText, values: [portion] })
    if (span === undefined || span.until <= span.since) return { folded, isDone: true }
    const [row] = await query(db, foldedRow, { text: foldText, values: [span.since, span.until] })
    folded += row?.folded ?? 0
    if (span.until >= span.most) return { folded, isDone: true }
  }
  return { folded, isDone: false }
}

/** Deletes sums that no plot reads any more. */
export async function deleteOldSums(db: Db): Promise<void> {
  for (const { stepS, days } of kept)
    await execute(db, {
      text: 'DELETE FROM run_sums WHERE step_s = $1::integer AND at < now() - make_interval(days => $2::integer)',
      values: [stepS, days],
    })
}
