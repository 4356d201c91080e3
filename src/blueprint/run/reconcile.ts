import { type Db, transaction } from '../../db/client.ts'
import { isTransient } from '../../db/failures.ts'
import { sql } from '../../db/sql.ts'
import type { Logger } from '../../log.ts'
import { live, maxRings, patienceS } from './life.ts'
import { runChannel } from './record.ts'

/** Rings for one run: a job whose id names the run and the ring, because a queue ignores an id that it has seen. */
export type Ring = (run: { readonly id: string; readonly title: string }, ring: number) => Promise<void>

/** Any number; it names the election among workers. */
const electionKey = 7_201_455_303
const everyMs = 500
const batch = 100

/** Seconds, by the number of rings: asked in SQL, so that runs that are to be patient do not fill the batch. */
const patience = Array.from({ length: maxRings + 1 }, (_, rings) => patienceS(rings))

type Overdue = { id: string; title: string; rings: number }

/**
 * Rings again for runs whose doorbell was lost: Redis was wiped, the worker died, the API fell between recording and
 * ringing. One worker at a time does it; the others find the lock taken.
 */
export async function reconcile(db: Db, ring: Ring, log: Logger): Promise<void> {
  const again = await transaction(db, async (tx) => {
    const [election] = await tx.query<{ elected: boolean }>(
      sql`SELECT pg_try_advisory_xact_lock(${electionKey}) AS elected`,
    )
    if (election?.elected !== true) return []
    // A row that a worker has locked is being worked on: it is skipped, not waited for.
    const due = await tx.query<Overdue>(sql`
      SELECT id, title, rings FROM runs
      WHERE state = 'queued' AND rung_at < now() - make_interval(secs => (${patience}::float8[])[rings + 1])
      ORDER BY rung_at LIMIT ${batch} FOR UPDATE SKIP LOCKED`)
    await tx.query(
      sql`UPDATE runs SET generated = NULL, generated_until = NULL WHERE generated IS NOT NULL AND generated_until < now()`,
    )
    if (due.length === 0) return []
    const given = due.filter(({ rings }) => live({ state: 'queued', rings }, 'ring').state === 'failed')
    const rung = due.filter((run) => !given.includes(run))
    await tx.query(
      sql`UPDATE runs SET rings = rings + 1, rung_at = now() WHERE id = ANY(${rung.map(({ id }) => id)}::uuid[])`,
    )
    await tx.query(sql`
      WITH given AS (
        UPDATE runs SET state = 'failed', applied = false, reason = 'unavailable', finished_at = now(),
          logs = ARRAY['not applied: rung ' || rings || ' times, and no worker finished it']
        WHERE id = ANY(${given.map(({ id }) => id)}::uuid[]) RETURNING id
      ) SELECT pg_notify(${runChannel}, id::text) FROM given`)
    for (const { id } of given) log.error({ run: id, rings: maxRings }, 'a run was given up')
    return rung
  })
  // Outside the transaction: no network while a lock is held. One bell that fails keeps no other from being rung.
  const rung = await Promise.allSettled(
    again.map((run) => {
      log.warn({ run: run.id, ring: run.rings + 1 }, 'ringing again')
      return ring(run, run.rings + 1)
    }),
  )
  const failed = rung.find((outcome) => outcome.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}

/** Reconciles at once and then twice a second, until stopped. */
export function startReconciler(db: Db, ring: Ring, log: Logger): { stop(): Promise<void> } {
  let stopped = false
  let wake: (() => void) | undefined
  const loop = (async () => {
    while (!stopped) {
      await reconcile(db, ring, log).catch((error: unknown) => {
        log[isTransient(error) ? 'warn' : 'error']({ err: error }, 'reconciling failed; trying again shortly')
      })
      if (stopped) break
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, everyMs)
        wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  })()
  return {
    stop: async () => {
      stopped = true
      wake?.()
      await loop
    },
  }
}
