import type { Db } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'
import type { ApplyQueue } from './backend.ts'
import { applyQueue } from './define.ts'
import { answered } from './enqueue.ts'

/**
 * The pause of the queue: who paused it on the dashboard, when and why. Null: it was paused by other means, or that is not known.
 */
export type Pause = {
  readonly by: { readonly name: string; readonly since: Date; readonly reason: string | null } | null
}

/**
 * @returns null when the queue is not paused
 * @throws {Problem} `unavailable` when the queue is away
 */
export async function readPause(queue: ApplyQueue, db: Db): Promise<Pause | null> {
  if (!(await answered(queue.isPaused()))) return null
  const row = await inTime(db.queuePause.findUnique({ where: { queue: applyQueue.name } })).catch(() => null)
  return { by: row === null ? null : { name: row.pausedBy, since: row.pausedAt, reason: row.reason } }
}

/** `The queue is paused, by alice since 2026-11-22T12:00:00.000Z ("new disks for Redis")` */
export const describePause = ({ by }: Pause): string =>
  by === null
    ? 'The queue is paused, by other means than the dashboard'
    : `The queue is paused, by ${by.name} since ${by.since.toISOString()}${by.reason === null ? '' : ` ("${by.reason}")`}`
