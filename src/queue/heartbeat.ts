import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { execute, query } from '../db/raw.ts'
import { runFormat } from '../runs/format.ts'
import { applyQueue } from './define.ts'

/**
 * Records that a worker has just consumed a job, and the format that it executes. Readiness depends on it, because a connected
 * worker may still be stuck. The statement is raw SQL, because the clock of the database counts. `marked_at` distinguishes it
 * from the heartbeat of version 0.1.0, which a trigger records as format 1.
 */
export async function beat(db: Db): Promise<void> {
  await execute(db, {
    text: `WITH known AS (
        INSERT INTO worker_formats (format, consumed_at) VALUES ($2::smallint, now())
        ON CONFLICT (format) DO UPDATE SET consumed_at = excluded.consumed_at
      ) INSERT INTO queue_heartbeats (queue, consumed_at, marked_at) VALUES ($1, now(), now())
      ON CONFLICT (queue) DO UPDATE SET consumed_at = excluded.consumed_at, marked_at = excluded.marked_at`,
    values: [applyQueue.name, runFormat],
  })
}

/** Records that a worker of this format waits for the migrations of its version. */
export async function reportWaiting(db: Db): Promise<void> {
  await execute(db, {
    text: `INSERT INTO worker_formats (format, waiting_at) VALUES ($1::smallint, now())
      ON CONFLICT (format) DO UPDATE SET waiting_at = excluded.waiting_at`,
    values: [runFormat],
  })
}

/** Busy workers take probes late: other jobs count as well, but not each of them writes. */
const beatEveryMs = 2_000

/** @returns a function to call when a job was taken; it writes a heartbeat at most every two seconds, in the background */
export function beatNowAndThen(db: Db): () => void {
  let beatAt = Number.NEGATIVE_INFINITY
  return () => {
    if (performance.now() - beatAt < beatEveryMs) return
    beatAt = performance.now()
    beat(db).catch(() => {})
  }
}

/** Seconds since a worker last consumed a job; null when none ever did. */
export async function sinceConsumptionS(db: Db): Promise<number | null> {
  const [row] = await query(db, z.object({ seconds: z.number() }), {
    text: 'SELECT extract(epoch FROM now() - consumed_at)::float8 AS seconds FROM queue_heartbeats WHERE queue = $1',
    values: [applyQueue.name],
  })
  return row?.seconds ?? null
}

const seenRow = z.object({ format: z.int(), consumedS: z.number().nullable(), waitingS: z.number().nullable() })

/** Seconds since workers of a format last took a job, and since one last waited for migrations; null: never. */
export type SeenFormat = z.output<typeof seenRow>

/** Reads one row for each format that workers of this installation ever had. */
export const seenFormats = (db: Db): Promise<SeenFormat[]> =>
  query(db, seenRow, {
    text: `SELECT format::integer AS format, extract(epoch FROM now() - consumed_at)::float8 AS "consumedS",
      extract(epoch FROM now() - waiting_at)::float8 AS "waitingS" FROM worker_formats ORDER BY format`,
    values: [],
  })
