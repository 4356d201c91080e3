import { z } from 'zod'
import type { Db } from '../db/client.ts'
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

/** Counts the entries of a submitter's queued runs. @param least the number that a run counts at least */
export async function queuedEntriesOf(db: Db, submitter: number, least: number): Promise<number> {
  const [row] = await query(db, z.object({ entries: z.int() }), {
    text: `SELECT coalesce(sum(coalesce((options->>'entries')::integer, $2::integer)), 0)::integer AS entries
      FROM runs WHERE state = 'queued' AND submitter_pk = $1::integer`,
    values: [submitter, least],
  })
  return row?.entries ?? 0
}
