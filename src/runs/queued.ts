import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { silentAfterS } from '../db/presence.ts'
import { query } from '../db/raw.ts'

/** The runs that wait for a worker. */

/** @property postponed runs that come back later */
const backlogRow = z.object({ waiting: z.int(), postponed: z.int(), oldestS: z.number().nullable() })

/**
 * The number of queued runs, and the age of the oldest in seconds. Raw SQL: the state must stand in the text, or PostgreSQL
 * reads all runs instead of the index of those that are queued.
 */
export async function readBacklog(db: Db): Promise<z.output<typeof backlogRow>> {
  const [row] = await query(db, backlogRow, {
    text: `SELECT count(*)::integer AS waiting, count(*) FILTER (WHERE enqueued_at > now())::integer AS postponed, extract(epoch FROM now() - min(created_at))::float8 AS "oldestS"
      FROM runs WHERE state = 'queued'`,
    values: [],
  })
  return row ?? { waiting: 0, postponed: 0, oldestS: null }
}

/** @param least the number that a run counts at least */
export async function queuedEntriesOf(db: Db, submitter: number, least: number): Promise<number> {
  const [row] = await query(db, z.object({ entries: z.int() }), {
    text: `SELECT coalesce(sum(coalesce((options->>'entries')::integer, $2::integer)), 0)::integer AS entries
      FROM runs WHERE state = 'queued' AND submitter_pk = $1::integer`,
    values: [submitter, least],
  })
  return row?.entries ?? 0
}

/** A set has this priority or a higher one, and so have the runs that its submitter sends while it waits. */
export const priorityOfSets = 4

/**
 * @property cause that of the last failed attempt; null when none failed
 * @property isYoung whether it waits for so short a time that nothing is to be said about that
 * @property isBehind whether it waits for its turn behind sets
 * @property free slots of the workers that are heard; null when none is
 * @property heardS seconds since the last heartbeat of any worker
 */
const waitingRow = z.object({
  id: z.guid(),
  cause: z.string().nullable(),
  isYoung: z.boolean(),
  isBehind: z.boolean(),
  free: z.int().nullable(),
  heardS: z.int().nullable(),
})
export type Waiting = z.output<typeof waitingRow>

/** Seconds; a run that waits for longer is late. */
export const youngS = 2

/** Reads those of the runs that wait: they have not ended, and no worker holds their lock. */
export const readWaiting = (db: Db, ids: readonly string[]): Promise<Waiting[]> =>
  query(db, waitingRow, {
    text: `SELECT r.id, (SELECT a.cause FROM run_attempts a WHERE a.run_id = r.id ORDER BY a.attempt DESC LIMIT 1) AS cause,
        r.created_at > now() - make_interval(secs => ${youngS}) AS "isYoung", r.enqueued_at > now() AND coalesce((r.options->>'lane')::integer, 0) >= ${priorityOfSets} AS "isBehind",
        (SELECT sum(slots - busy)::integer FROM workers WHERE seen_at > now() - make_interval(secs => $2)) AS free,
        (SELECT extract(epoch FROM now() - max(seen_at))::integer FROM workers) AS "heardS"
      FROM runs r WHERE r.id = ANY ($1::uuid[]) AND r.state = 'queued' FOR KEY SHARE OF r SKIP LOCKED`,
    values: [ids, silentAfterS],
  })
