import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { execute, query, type Statement } from '../db/raw.ts'
import { errorCodeNames } from '../error-codes.ts'

/** Runs as the waiting clients get them, and the notification of their end. */

const entryError = z.looseObject({ code: z.enum(errorCodeNames), message: z.string(), pointer: z.string().optional() })

/** A run as a waiting client gets it. Raw SQL reads times as dates, and JSON holds their texts. */
const awaitedRun = z.object({
  /** The user who cancelled it. Null in all other runs; earlier versions leave it out. */
  cancelledBy: z.string().nullable().default(null),
  id: z.guid(),
  state: z.enum(['queued', 'done', 'failed', 'cancelled']),
  applied: z.boolean().nullable(),
  reason: z.string().nullable(),
  logs: z.array(z.string()),
  errors: z.array(entryError).nullish(),
  planTag: z.string().nullable(),
  createdAt: z.coerce.date(),
  startedAt: z.coerce.date().nullable(),
})

export type AwaitedRun = z.output<typeof awaitedRun>

const columnsToRead = `id, state::text AS state, applied, reason, coalesce(logs, '{}') AS logs, errors,
  created_at AS "createdAt", started_at AS "startedAt", plan_tag AS "planTag", options->>'cancelled_by' AS "cancelledBy"`

/** Reads runs by their ids. Raw SQL, because Prisma's list of keys is planned anew for each length. */
export const readRuns = (db: Db, ids: readonly string[]): Promise<AwaitedRun[]> =>
  query(db, awaitedRun, { text: `SELECT ${columnsToRead} FROM runs WHERE id = ANY($1::uuid[])`, values: [ids] })

/** The channel for `LISTEN`. The payload is a run that ended, as JSON, or only its id when it is too long. */
export const runChannel = 'gatewright_run'

/** PostgreSQL refuses a longer payload. */
const longestPayload = 7_999

/**
 * Notifies the clients that wait for a run of its end, which PostgreSQL takes from the committed row; it does nothing for a run that
 * has not ended. It is never inside the transaction that ends it: commits that notify wait for each other. A notification may get
 * lost: they also poll (docs/adr/0052-a-notification-carries-the-end.md).
 */
export const notification = (id: string): Statement => ({
  text: `SELECT pg_notify($2, CASE WHEN octet_length(run) <= ${longestPayload} THEN run ELSE id::text END)
    FROM (SELECT id, to_jsonb(ended)::text AS run
      FROM (SELECT ${columnsToRead} FROM runs WHERE id = $1::uuid AND state <> 'queued') ended) notified`,
  values: [id, runChannel],
})

/** Notifies in the background. */
export function notifyEnded(db: Db, id: string): void {
  execute(db, notification(id)).catch(() => {})
}

/** @returns the run in a payload; its id alone when the payload has no more; undefined for any other payload */
export function notifiedRun(payload: string): AwaitedRun | string | undefined {
  if (z.guid().safeParse(payload).success) return payload
  try {
    return awaitedRun.parse(JSON.parse(payload))
  } catch {
    return undefined
  }
}
