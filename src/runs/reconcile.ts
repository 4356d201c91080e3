import type { Db } from '../db/client.ts'
import { isTransient } from '../db/errors.ts'
import { repeat } from '../db/rounds.ts'
import { addUp } from '../db/row-counts.ts'
import type { SubmissionFields } from '../log.ts'
import { maxAttempts } from './life.ts'
import { readBacklog } from './queued.ts'
import { type Decided, type Overdue, type ReconcilerLedger, reconcilerLedger } from './reconciler-ledger.ts'
import { cancelStale, eraseExpired } from './retention.ts'
import type { Worker } from './work.ts'

/**
 * Adds a job for a run. Its id names the run and the attempt, because a queue ignores an id that it has seen.
 *
 * @property priority jobs with a lower number go first; the default is 0
 * @property trace is continued by its job; the default is the span at work
 */
export type Enqueue = (
  run: Pick<Overdue, 'id' | 'title'> & { readonly priority?: number; readonly trace?: Overdue['trace'] },
  attempt: number,
) => Promise<void>

/** The interface of the queue for the reconciler. Both calls fail while the queue is away. */
export type RunQueue = {
  readonly enqueue: Enqueue
  /** Whether the job of this attempt still waits for a worker. */
  readonly isQueued: (run: { readonly id: string }, attempt: number) => Promise<boolean>
  /** Makes the job of this attempt ready, if it was to come back later. */
  readonly wake: (run: { readonly id: string }, attempt: number) => Promise<void>
}

/** Milliseconds between two rounds: while runs are queued, and while none is. */
const everyMs = { busy: 500, idle: 2_000 } as const
/** Milliseconds between two rounds of maintenance: expired secrets and row counts. */
const maintenanceEveryMs = 10_000

type Reporting = Pick<Worker, 'log' | 'tally'>

const queuedAs = (run: Overdue, attempts: number): Decided => ({ ...run, next: { state: 'queued', attempts } })

/** A new attempt; after the last one it has failed. */
const enqueuedAgain = (run: Overdue): Decided =>
  run.attempts < maxAttempts
    ? queuedAs(run, run.attempts + 1)
    : { ...run, next: { state: 'failed', attempts: run.attempts } }

/**
 * Enqueues runs again whose job has vanished: Redis was wiped, the worker died, or the API died between recording and enqueueing.
 * A run whose job is still queued keeps it. When several workers do this at once, one of them decides on a run.
 *
 * @throws when the queue did not answer, or a job could not be added; the other runs are enqueued all the same
 */
export async function reconcile(
  ledger: ReconcilerLedger,
  { enqueue, isQueued }: RunQueue,
  worker: Reporting,
): Promise<void> {
  const overdue = await ledger.overdue()
  // This is outside of any transaction, so that no lock waits for the network.
  const asked = await Promise.allSettled(overdue.map((run) => isQueued(run, run.attempts)))
  const decided = overdue.flatMap((run, index) => {
    const answer = asked[index]
    // The other runs stay as they are: nothing is known about their jobs.
    return answer?.status === 'fulfilled' ? [answer.value ? queuedAs(run, run.attempts) : enqueuedAgain(run)] : []
  })
  const toEnqueue = await save(ledger, decided, worker)
  // All are tried, although one may fail.
  const added = await Promise.allSettled(
    toEnqueue.map((run) => {
      worker.log.warn({ ...fieldsOf(run), code: null, attempt: run.next.attempts }, 'enqueueing a run again')
      return enqueue(run, run.next.attempts)
    }),
  )
  const failed = toEnqueue.filter((_, index) => added[index]?.status === 'rejected')
  await save(
    ledger,
    failed.map((run) => queuedAs({ ...run, attempts: run.next.attempts }, run.attempts)),
    worker,
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

/** @returns the runs to enqueue. Their attempts are already counted, so that the worker finds the number of its job */
async function save(ledger: ReconcilerLedger, runs: readonly Decided[], { log, tally }: Reporting): Promise<Decided[]> {
  if (runs.length === 0) return []
  const written = await ledger.save(runs)
  const saved = runs.filter(({ id }) => written.has(id))
  const isOver = ({ attempts, next }: Decided) => next.state === 'failed' || next.attempts > attempts
  for (const { isExplained } of saved.filter(isOver)) if (!isExplained) tally.attemptFailed('lost')
  for (const run of saved.filter(({ next }) => next.state === 'failed')) {
    ledger.notifyEnded(run.id)
    tally.ended({ kind: run.kind, mode: run.mode, outcome: 'failed', reason: 'unavailable' })
    const outcome = { code: 'unavailable', state: 'failed', outcome: 'failed', applied: false, attempts: run.attempts }
    log.error({ ...fieldsOf(run), ...outcome }, 'run ended: no worker finished it')
  }
  return saved.filter(({ attempts, next }) => next.attempts > attempts)
}

/** Reconciles at once and then at intervals, until it is stopped: often while runs are queued, rarely while none is. */
export function startReconciler(db: Db, queue: RunQueue, worker: Reporting): { stop(): Promise<void> } {
  const ledger = reconcilerLedger(db)
  let maintainedAt = Number.NEGATIVE_INFINITY

  /** @returns milliseconds until the next round */
  async function round(): Promise<number> {
    const { waiting, postponed } = await readBacklog(db)
    if (postponed > 0) for (const run of await ledger.due()) await queue.wake(run, run.attempts)
    if (waiting > 0) {
      await cancelStale(db, worker)
      await reconcile(ledger, queue, worker)
    }
    if (performance.now() - maintainedAt > maintenanceEveryMs) {
      await eraseExpired(db)
      await addUp(db)
      maintainedAt = performance.now()
    }
    return waiting > 0 ? everyMs.busy : everyMs.idle
  }

  return repeat(round, (error, again) => {
    // An outage is logged once.
    if (!again || !isTransient(error))
      worker.log[isTransient(error) ? 'warn' : 'error']({ err: error }, 'reconciling failed; trying again shortly')
    return everyMs.busy
  })
}
