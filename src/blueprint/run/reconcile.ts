import { type Db, type Tx, transaction } from '../../db/client.ts'
import { isTransient } from '../../db/failures.ts'
import { addUp } from '../../db/row-counts.ts'
import { sql } from '../../db/sql.ts'
import type { Logger } from '../../log.ts'
import { type Life, live, maxRings, patienceS, type RunEvent } from './life.ts'
import { runFinished } from './record.ts'

/** Rings for one run: a job whose id names the run and the ring, because a queue ignores an id that it has seen. */
export type Ring = (run: { readonly id: string; readonly title: string }, ring: number) => Promise<void>

/** What the reconciler asks of the queue. Both fail while the queue is away. */
export type Doorbell = {
  readonly ring: Ring
  /** Whether the job of this ring waits its turn: its run is not lost, it only stands in a long line. */
  readonly standsInLine: (run: { readonly id: string }, ring: number) => Promise<boolean>
}

/** Any number; it names the election among workers. */
const electionKey = 7_201_455_303
const everyMs = 500
const batch = 100
const erasedAtOnce = 1_000

/** Seconds, by the number of rings: asked in SQL, so that runs that are to be patient do not fill the batch. */
const patience = Array.from({ length: maxRings + 1 }, (_, rings) => patienceS(rings))

type Overdue = { readonly id: string; readonly title: string; readonly rings: number }
/** A run as it was read, and its life after what the queue said of it. */
type Judged = Overdue & { readonly next: Life }

const judge = (run: Overdue, event: RunEvent): Judged => ({
  ...run,
  next: live({ state: 'queued', rings: run.rings }, event),
})

/**
 * Rings again for runs whose doorbell was lost: Redis was wiped, the worker died, the API fell between recording and
 * ringing. A run that only stands in a long line keeps its job, and nothing is counted. One worker at a time looks; the
 * others find the lock taken.
 *
 * @throws when the queue could not be asked, or a bell could not be rung: the other runs got what they needed
 */
export async function reconcile(db: Db, { ring, standsInLine }: Doorbell, log: Logger): Promise<void> {
  const due = await overdue(db)
  // Outside of any transaction: no network while a lock is held. The batch bounds how many are asked about at once.
  const asked = await Promise.allSettled(due.map((run) => standsInLine(run, run.rings)))
  const judged = due.flatMap((run, index) => {
    const answer = asked[index]
    // Of the others nobody knows anything: they stay as they are.
    return answer?.status === 'fulfilled' ? [judge(run, answer.value ? 'stand' : 'ring')] : []
  })
  const lost = await settle(db, judged, log)
  // One bell that fails keeps no other from being rung.
  const rung = await Promise.allSettled(
    lost.map((run) => {
      log.warn({ run: run.id, ring: run.next.rings }, 'ringing again')
      return ring(run, run.next.rings)
    }),
  )
  const missed = lost.filter((_, index) => rung[index]?.status === 'rejected')
  await settle(
    db,
    missed.map((run) => judge({ ...run, rings: run.next.rings }, 'miss')),
    log,
  )
  const failed = [...asked, ...rung].find((outcome) => outcome.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}

/** Queued runs whose patience is over, for the one worker that is elected. */
function overdue(db: Db): Promise<Overdue[]> {
  return transaction(db, async (tx) => {
    const [election] = await tx.query<{ elected: boolean }>(
      sql`SELECT pg_try_advisory_xact_lock(${electionKey}) AS elected`,
    )
    if (election?.elected !== true) return []
    erase(tx)
    // A row that a worker has locked is being worked on: it is skipped, not waited for.
    return tx.query<Overdue>(sql`
      SELECT id, title, rings FROM runs
      WHERE state = 'queued' AND rung_at < now() - make_interval(secs => (${patience}::float8[])[rings + 1])
      ORDER BY rung_at LIMIT ${batch} FOR UPDATE SKIP LOCKED`)
  })
}

/**
 * Secrets that may no longer be read, the oldest first and not all that a long silence left at once. In that order the
 * index is read however little PostgreSQL knows of the table yet.
 */
function erase(tx: Tx): void {
  tx.send(sql`
    WITH old AS (
      SELECT id FROM runs WHERE generated IS NOT NULL AND generated_until < now()
      ORDER BY generated_until LIMIT ${erasedAtOnce} FOR UPDATE SKIP LOCKED
    ) UPDATE runs SET generated = NULL, generated_until = NULL FROM old WHERE runs.id = old.id`)
  tx.send(sql`
    WITH old AS (
      SELECT pk FROM tokens WHERE sealed_key IS NOT NULL AND created_at < now() - interval '24 hours'
      ORDER BY created_at LIMIT ${erasedAtOnce} FOR UPDATE SKIP LOCKED
    ) UPDATE tokens SET sealed_key = NULL FROM old WHERE tokens.pk = old.pk`)
}

/**
 * Writes what was judged. A worker may have a run by now, or have finished it, and another reconciler may have been
 * quicker: such a run stays as it is.
 *
 * @returns those to ring for, counted before they are rung: whoever takes the job finds the count that belongs to it
 */
async function settle(db: Db, runs: readonly Judged[], log: Logger): Promise<Judged[]> {
  if (runs.length === 0) return []
  return transaction(db, async (tx) => {
    const counted = await count(
      tx,
      runs.filter(({ next }) => next.state === 'queued'),
    )
    const given = await giveUp(
      tx,
      runs.filter(({ next }) => next.state === 'failed'),
    )
    for (const { id } of given) {
      tx.announce(runFinished(id))
      log.error({ run: id, rings: maxRings }, 'a run was given up')
    }
    return counted.filter(({ rings, next }) => next.rings > rings)
  })
}

/** Their patience begins anew. */
async function count(tx: Tx, runs: readonly Judged[]): Promise<Judged[]> {
  if (runs.length === 0) return []
  const ids = runs.map(({ id }) => id)
  const before = runs.map(({ rings }) => rings)
  const after = runs.map(({ next }) => next.rings)
  const rows = await tx.query<{ id: string }>(sql`
    WITH still AS (
      SELECT r.id, judged.next FROM runs r
      JOIN unnest(${ids}::uuid[], ${before}::integer[], ${after}::integer[]) AS judged(id, rings, next) USING (id)
      WHERE r.state = 'queued' AND r.rings = judged.rings FOR UPDATE OF r SKIP LOCKED
    ) UPDATE runs SET rings = still.next, rung_at = now() FROM still WHERE runs.id = still.id RETURNING runs.id`)
  const done = new Set(rows.map(({ id }) => id))
  return runs.filter(({ id }) => done.has(id))
}

async function giveUp(tx: Tx, runs: readonly Overdue[]): Promise<{ id: string }[]> {
  if (runs.length === 0) return []
  return tx.query(sql`
    WITH still AS (
      SELECT id FROM runs WHERE id = ANY(${runs.map(({ id }) => id)}::uuid[]) AND state = 'queued' FOR UPDATE SKIP LOCKED
    )
    UPDATE runs SET state = 'failed', applied = false, reason = 'unavailable', finished_at = now(),
      logs = ARRAY['not applied: rung ' || rings || ' times, and no worker finished it']
    FROM still WHERE runs.id = still.id RETURNING runs.id`)
}

/** Reconciles at once and then twice a second, until stopped; and adds up what lists know their size by. */
export function startReconciler(db: Db, doorbell: Doorbell, log: Logger): { stop(): Promise<void> } {
  let stopped = false
  let wake: (() => void) | undefined
  const loop = (async () => {
    while (!stopped) {
      const round = reconcile(db, doorbell, log).then(() => addUp(db))
      await round.catch((error: unknown) => {
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
