import type { OnProgress } from '../apply/apply.ts'
import { Refusal } from '../apply/refusal.ts'
import { type Pause, retrying } from '../db/backoff.ts'
import { CommitUnknown } from '../db/client.ts'
import { isLockTimeout, isTransient } from '../db/errors.ts'
import { detailOf, Problem } from '../errors.ts'
import { causeOf, type Logger, type SubmissionFields } from '../log.ts'
import { causeClass, causeText } from './cause.ts'
import type { AwaitedRun } from './ended.ts'
import type { RunResult } from './finish.ts'
import { NewerRun, runFormat } from './format.ts'
import type { WorkerRun } from './ledger.ts'
import { afterLockMs, isFinished, NotYet, notItsTurnMs, type RunState } from './life.ts'
import { optionsOf } from './options.ts'
import { outcomeOf } from './outcome.ts'
import type { Tally } from './tally.ts'
import { notItsTurn, stale } from './why.ts'
import type { RunTx, WorkerLedger } from './worker-ledger.ts'

/** The part of the worker in a run: one transaction with the effect and its record. */

export type Worker = {
  readonly ledger: WorkerLedger
  readonly log: Logger
  readonly tally: Tally
  /** Waits between two tries; the default waits in real time. */
  readonly pause?: Pause
}

/** The end of a run, by this job or by an earlier one. */
export type Ended = {
  readonly state: RunState
  readonly applied: boolean
  readonly reason: string | null
  readonly logs: readonly string[]
}

/** A job's part in a run: the contents of its log lines. */
type Task = {
  readonly id: string
  readonly since: number
  readonly onProgress: OnProgress | undefined
  /** Milliseconds since its record, at the time of the last read. */
  ageMs: number
  /** Complete when the run was read. */
  fields: SubmissionFields
  /** Fields for the line about the end, from the run as this job has locked it. */
  locked: Pick<WorkerRun, 'attempts' | 'ageMs' | 'queueMs' | 'kind' | 'mode' | 'options'> | undefined
  /** Whether it was applied, and nothing was to be changed. */
  isUnchanged: boolean
}

/** The reconciler takes over after these tries. */
const tries = { max: 4, stepMs: 20 }

/**
 * Works on one run. A second job for it reports its end and changes nothing. A bug ends the run as failed.
 *
 * @returns undefined when there is no such run
 * @throws when the run has not ended: the database is away, a lock was not given in time, a newer version recorded it
 */
export async function work(worker: Worker, id: string, onProgress?: OnProgress): Promise<Ended | undefined> {
  const fields = { request: null, run: id, title: null, user: null, real_user: null, code: null }
  const task: Task = {
    id,
    since: performance.now(),
    onProgress,
    ageMs: 0,
    fields,
    locked: undefined,
    isUnchanged: false,
  }
  const { log, pause } = worker
  // The wait for a lock that was not given in time takes no slot.
  const canRetry = (error: unknown) => error instanceof CommitUnknown || (isTransient(error) && !isLockTimeout(error))
  const onRetry = (error: unknown, count: number) =>
    log.warn({ ...task.fields, code: 'unavailable', try: count, cause: causeOf(error) }, 'trying the run again')
  try {
    return await retrying(() => attemptOnce(worker, task), { ...tries, canRetry, onRetry, pause })
  } catch (error) {
    if (error instanceof NotYet) {
      log[error instanceof NewerRun ? 'warn' : 'debug']({ ...task.fields, code: 'unavailable' }, error.message)
      throw error
    }
    if (canRetry(error) || isLockTimeout(error)) {
      log.warn({ ...task.fields, code: 'unavailable', cause: causeOf(error) }, 'this attempt failed')
      worker.tally.attemptFailed(causeClass(error))
      const workedMs = performance.now() - task.since
      const afterMs = isLockTimeout(error) ? afterLockMs(task.ageMs) : undefined
      await worker.ledger.attemptFailed(id, causeText(error), { workedMs, afterMs })
      throw afterMs === undefined ? error : new NotYet(causeText(error), afterMs, { cause: error })
    }
    return await recordFailure(worker, task, error)
  }
}

/** Tries once. A commit of unknown outcome may have finished the run: its row shows it. */
async function attemptOnce(worker: Worker, task: Task): Promise<Ended | undefined> {
  try {
    return await applyOrRefuse(worker, task)
  } catch (error) {
    const known = error instanceof CommitUnknown ? await readEnd(worker, task.id) : undefined
    if (known === undefined) throw error
    reportEnd(worker, task, known)
    worker.ledger.notifyEnded(task.id)
    return known
  }
}

/** Applies the run, or records why it was refused. */
async function applyOrRefuse(worker: Worker, task: Task): Promise<Ended | undefined> {
  try {
    return await lockAndFinish(worker, task, (tx, run) => tx.apply(run, task.onProgress))
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    const { reason, logs } = error
    const errors = (error.placed ?? error.errors()).map(detailOf)
    return lockAndFinish(worker, task, async () => ({ state: 'done', applied: false, reason, logs, errors }))
  }
}

/**
 * Locks the run, and records the result that `decide` returns, in one transaction.
 *
 * @param bug the reason why it failed, for the log
 */
async function lockAndFinish(
  worker: Worker,
  task: Task,
  decide: (tx: RunTx, run: WorkerRun) => Promise<RunResult>,
  bug?: unknown,
): Promise<Ended | undefined> {
  const ended = await worker.ledger.transaction(task.id, async (tx): Promise<Ended | NotYet | undefined> => {
    task.locked = undefined
    const run = await tx.lock()
    if (run === undefined) return undefined
    task.fields = fieldsOf(run)
    task.ageMs = run.ageMs
    if (isFinished(run.state)) return endOf(run)
    if (run.isStale) {
      task.locked = run
      tx.cancel(run, stale)
      return { state: 'cancelled', applied: false, reason: 'cancelled', logs: [`not applied: ${stale.sentence}`] }
    }
    const why =
      run.format > runFormat
        ? new NewerRun(run.format)
        : (await tx.takeTurn(run))
          ? null
          : new NotYet(notItsTurn.sentence, notItsTurnMs)
    if (why !== null) {
      tx.leaveQueued(run, why.afterMs)
      return why
    }
    const result = await decide(tx, run)
    tx.finish(run, result)
    task.locked = run
    task.isUnchanged = result.applied && result.audited?.length === 0
    return endOf(result)
  })
  if (ended === undefined) return undefined
  if (ended instanceof NotYet) throw ended
  reportEnd(worker, task, ended, bug)
  return ended
}

const endOf = ({ state, applied, reason, logs }: WorkerRun | AwaitedRun | RunResult): Ended => ({
  state,
  applied: applied === true,
  reason,
  logs,
})

const fieldsOf = (run: WorkerRun): SubmissionFields => ({
  request: run.requestId,
  run: run.id,
  title: run.title,
  user: run.submitterName,
  real_user: optionsOf(run)?.impersonator?.username ?? null,
  code: null,
})

/** Counts a run that this job has ended, and writes the one line about its end. Its earlier lines are about attempts. */
function reportEnd({ log, tally }: Worker, task: Task, ended: Ended, bug?: unknown): void {
  const { state, applied, reason } = ended
  const facts = { ...task.fields, code: reason, state, applied }
  if (task.locked === undefined) {
    log.debug(facts, 'the run had ended before')
    return
  }
  const { attempts, ageMs, queueMs, kind, mode } = task.locked
  const earlierMs = ageMs - queueMs
  const workMs = Math.round(earlierMs + performance.now() - task.since)
  // A plan that was refused counts as that, too.
  const outcome = outcomeOf({ ...ended, mode: reason === null ? mode : 'apply' }, task.isUnchanged)
  tally.ended({ kind, mode, outcome, reason: state === 'cancelled' ? stale.code : reason, queueMs, workMs })
  const { repository, commit } = optionsOf(task.locked)?.pipeline ?? {}
  const times = { outcome, attempts, queue_ms: queueMs, work_ms: workMs, repository, commit }
  if (bug === undefined) {
    log.info({ ...facts, ...times }, 'run ended')
    return
  }
  if (state === 'failed') tally.attemptFailed(causeClass(bug))
  log.error({ ...facts, ...times, err: bug }, 'run ended: it failed unexpectedly')
}

/** @returns undefined while the run is queued, and when its row cannot be read */
async function readEnd({ ledger }: Worker, id: string): Promise<Ended | undefined> {
  const run = await ledger.read(id).catch(() => null)
  return run === null || !isFinished(run.state) ? undefined : endOf(run)
}

/** @throws when it cannot be recorded: the run stays queued, and the reconciler enqueues it again, or fails it */
async function recordFailure(worker: Worker, task: Task, error: unknown): Promise<Ended | undefined> {
  const why = error instanceof Problem ? error.message : 'an error inside the service'
  const logs = [`rolled back: ${why}; nothing was changed. The service's log has the details of run ${task.id}.`]
  const cause = causeText(error)
  const result = { state: 'failed', applied: false, reason: 'server_error', logs, cause } as const
  try {
    return await lockAndFinish(worker, task, async () => result, error)
  } catch (failure) {
    const fields = { ...task.fields, code: 'server_error', cause: causeOf(failure), err: error }
    worker.log.error(fields, 'the run failed unexpectedly, and that could not be recorded')
    throw failure
  }
}
