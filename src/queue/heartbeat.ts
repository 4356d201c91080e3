import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { execute, query } from '../db/raw.ts'
import { applyQueue } from './define.ts'

/**
 * Records that a worker consumed a job just now. Readiness depends on it, because a connected worker may still be stuck.
 * Raw SQL, for the clock of the database.
 */
export async function beat(db: Db): Promise<void> {
  await execute(db, {
    text: `INSERT INTO queue_heartbeats (queue, consumed_at) VALUES ($1, now())
      ON CONFLICT (queue) DO UPDATE SET consumed_at = excluded.consumed_at`,
    values: [applyQueue.name],
  })
}

/** Workers that are busy take probes late: other jobs count as well, but not each of them writes. */
const beatEveryMs = 2_000

/** @returns call it when a job was taken; beats at most every two seconds, in the background */
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
