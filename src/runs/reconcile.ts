import { z } from 'zod'
import { type Db, type Tx, transaction } from '../db/client.ts'
import { isTransient } from '../db/errors.ts'
import { locks } from '../db/locks.ts'
import { query } from '../db/raw.ts'
import { addUp } from '../db/row-counts.ts'
import type { Logger, SubmissionFields } from '../log.ts'
import { readBacklog } from './backlog.ts'
import { notifyEnded } from './ledger.ts'
import { type Life, live, maxAttempts, patienceS, type RunEvent } from './life.ts'
import { cancelStale, eraseExpired } from './retention.ts'
import { repeat } from './rounds.ts'

/** Adds a job for a run. Its id names the run and the attempt, because a queue ignores an id that it has seen. */
export type Enqueue = (run: { readonly id: string; readonly title: string }, attempt: number) => Promise<void>

/** The queue as the reconciler uses it. Both calls fail while the queue is away. */
export type RunQueue = {
  readonly enqueue: Enqueue
  /** Whether the job of this attempt still waits for a worker. */
  readonly isQueued: (run: { readonly id: string }, attempt: number) => Promise<boolean>
}

/** Between two rounds: while runs are queued, and while none is. */
const everyMs = { busy: 500, idle: 2_000 } as const
/** Between two rounds of maintenance: expired secrets and row counts. */
const maintenanceEveryMs = 10_000
const batch = 100

/** Seconds by the number of attempts. SQL compares them, so that runs that must wait longer do not fill the batch. */
const patience = Array.from({ length: maxAttempts + 1 }, (_, attempts) => patienceS(attempts))

const overdueRow = z.object({
  id: z.guid(),
  title: z.string(),
  attempts: z.int(),
  request: z.string(),
  user: z.string().nullable(),
  realUser: z.string().nullable(),
})
const idRow = z.object({ id: z.guid() })

type Overdue = z.output<typeof overdueRow>
/** A run as it was read, and its life after the answer of the queue. */
type Decided = Overdue & { readonly next: Life }

const decide = (run: Overdue, event: RunEvent): Decided => ({
  ...run,
  next: live({ state: 'queued', attempts: run.attempts }, event),
})

/**
 * Enqueues runs again whose job is gone: Redis was wiped, the worker died, or the API died between recording and
 * enqueueing. A run whose job is still queued keeps it. One worker at a time does this.
 *
 * @throws when the queue did not answer, or a job could not be added; the other runs are enqueued all the same
 */
export async function reconcile(db: Db, { enqueue, isQueued }: RunQueue, log: Logger): Promise<void> {
  const due = await overdue(db)
  // Outside of any transaction, so that no lock waits for the network.
  const asked = await Promise.allSettled(due.map((run) => isQueued(run, run.attempts)))
  const decided = due.flatMap((run, index) => {
    const answer = asked[index]
    // The others stay as they are: nothing is known about their jobs.
    return answer?.status === 'fulfilled' ? [decide(run, answer.value ? 'wait' : 'enqueue')] : []
  })
  const toEnqueue = await save(db, decided, log)
  // All are tried, although one may fail.
  const added = await Promise.allSettled(
    toEnqueue.map((run) => {
      log.warn({ ...fieldsOf(run), code: null, attempt: run.next.attempts }, 'enqueueing a run again')
      return enqueue(run, run.next.attempts)
    }),
  )
  const failed = toEnqueue.filter((_, index) => added[index]?.status === 'rejected')
  await save(
    db,
    failed.map((run) => decide({ ...run, attempts: run.next.attempts }, 'unqueue')),
    log,
  )
  const failure = [...asked, ...added].find((outcome) => outcome.status === 'rejected')
  if (failure !== undefined) throw failure.reason
}

const fieldsOf = ({ request, id, title, user, realUser }: Overdue): Omit<SubmissionFields, 'code'> => ({
  request,
  run: id,
  title,
  user,
  real_user: realUser,
})

/** Queued runs that have waited for long. None for a worker that is not elected. */
function overdue(db: Db): Promise<Overdue[]> {
  return transaction(db, async (tx) => {
    if (!(await isElected(tx))) return []
    // SKIP LOCKED: a worker works on a locked run.
    return query(tx, overdueRow, {
      text: `SELECT id, title, attempts, request_id AS request,
          (SELECT username FROM users WHERE pk = submitter_pk) AS "user",
          options -> 'impersonator' ->> 'username' AS "realUser" FROM runs
        WHERE state = 'queued' AND enqueued_at < now() - make_interval(
          secs => ($1::float8[])[greatest(0, least(attempts, cardinality($1::float8[]) - 1)) + 1])
        ORDER BY enqueued_at LIMIT $2 FOR UPDATE SKIP LOCKED`,
      values: [patience, batch],
    })
  })
}

async function isElected(tx: Tx): Promise<boolean> {
  const [election] = await query(tx, z.object({ elected: z.boolean() }), {
    text: 'SELECT pg_try_advisory_xact_lock($1) AS elected',
    values: [locks.reconciler],
  })
  return election?.elected === true
}

/**
 * Writes what was decided. A run that a worker has locked or finished by now, or that another reconciler has changed,
 * stays as it is.
 *
 * @returns the runs to enqueue. Their attempts are already counted, so that the worker finds the number of its job
 */
async function save(db: Db, runs: readonly Decided[], log: Logger): Promise<Decided[]> {
  if (runs.length === 0) return []
  const [counted, failed] = await transaction(db, async (tx) => [
    await count(
      tx,
      runs.filter(({ next }) => next.state === 'queued'),
    ),
    await fail(
      tx,
      runs.filter(({ next }) => next.state === 'failed'),
    ),
  ])
  const ended = new Set(failed.map(({ id }) => id))
  for (const run of runs.filter(({ id }) => ended.has(id))) {
    notifyEnded(db, run.id)
    const outcome = { code: 'unavailable', state: 'failed', applied: false, attempts: run.attempts }
    log.error({ ...fieldsOf(run), ...outcome }, 'run ended: no worker finished it')
  }
  return counted.filter(({ attempts, next }) => next.attempts > attempts)
}

/** Stores the number of attempts, and starts the waiting time again. */
async function count(tx: Tx, runs: readonly Decided[]): Promise<Decided[]> {
  if (runs.length === 0) return []
  const rows = await query(tx, idRow, {
    text: `WITH still AS (
        SELECT r.id, decided.next FROM runs r
        JOIN unnest($1::uuid[], $2::integer[], $3::integer[]) AS decided(id, attempts, next) USING (id)
        WHERE r.state = 'queued' AND r.attempts = decided.attempts FOR UPDATE OF r SKIP LOCKED
      ) UPDATE runs SET attempts = still.next, enqueued_at = now() FROM still WHERE runs.id = still.id
      RETURNING runs.id`,
    values: [runs.map(({ id }) => id), runs.map(({ attempts }) => attempts), runs.map(({ next }) => next.attempts)],
  })
  const done = new Set(rows.map(({ id }) => id))
  return runs.filter(({ id }) => done.has(id))
}

async function fail(tx: Tx, runs: readonly Overdue[]): Promise<{ id: string }[]> {
  if (runs.length === 0) return []
  return query(tx, idRow, {
    text: `WITH still AS (
        SELECT id FROM runs WHERE id = ANY($1::uuid[]) AND state = 'queued' FOR UPDATE SKIP LOCKED
      )
      UPDATE runs SET state = 'failed', applied = false, reason = 'unavailable', finished_at = now(),
        logs = ARRAY['not applied: enqueued ' || attempts || ' times, and no worker finished it']
      FROM still WHERE runs.id = still.id RETURNING runs.id`,
    values: [runs.map(({ id }) => id)],
  })
}

/** Reconciles at once and then at intervals, until it is stopped: often while runs are queued, rarely while none is. */
export function startReconciler(db: Db, queue: RunQueue, log: Logger): { stop(): Promise<void> } {
  let maintainedAt = Number.NEGATIVE_INFINITY
  let isFailing = false

  /** @returns milliseconds until the next round */
  async function round(): Promise<number> {
    const { waiting } = await readBacklog(db)
    if (waiting > 0) {
      await cancelStale(db, log)
      await reconcile(db, queue, log)
    }
    if (performance.now() - maintainedAt > maintenanceEveryMs) {
      await eraseExpired(db)
      await addUp(db)
      maintainedAt = performance.now()
    }
    return waiting > 0 ? everyMs.busy : everyMs.idle
  }

  return repeat(() =>
    round().then(
      (nextMs) => {
        isFailing = false
        return nextMs
      },
      (error: unknown) => {
        // An outage is logged once.
        if (!isFailing || !isTransient(error))
          log[isTransient(error) ? 'warn' : 'error']({ err: error }, 'reconciling failed; trying again shortly')
        isFailing = true
        return everyMs.busy
      },
    ),
  )
}
