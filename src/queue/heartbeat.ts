import type { Queryable } from '../db/client.ts'
import { sql } from '../db/sql.ts'
import { applyQueue } from './define.ts'

/** A worker consumed a job just now: what readiness is judged by, because a connected worker may still be stuck. */
export async function beat(db: Queryable): Promise<void> {
  await db.query(sql`
    INSERT INTO queue_heartbeats (queue, consumed_at) VALUES (${applyQueue.name}, now())
    ON CONFLICT (queue) DO UPDATE SET consumed_at = excluded.consumed_at`)
}

/** Seconds since a worker last consumed; null when none ever did. */
export async function sinceConsumptionS(db: Queryable): Promise<number | null> {
  const [row] = await db.query<{ seconds: number }>(sql`
    SELECT extract(epoch FROM now() - consumed_at)::float8 AS seconds FROM queue_heartbeats WHERE queue = ${applyQueue.name}`)
  return row?.seconds ?? null
}
