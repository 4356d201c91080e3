import { Problem } from '../errors.ts'
import { causeOf } from '../log.ts'
import { queueFailed } from '../queue/accepts-jobs.ts'
import { cancelRun, type NewRun } from '../runs/ledger.ts'
import { cancelOrRead, longestCancelMs, type WaitResult } from '../runs/subscribe.ts'
import { notApplied, ofPart, unknown, type Why } from '../runs/why.ts'
import type { Delivery, LeftMs, Submitted, Submitter } from './submission.ts'
import { whyWithinMs } from './why-not.ts'

/** The way of a run from its record to its outcome. */

/**
 * Enqueues a recorded run, and waits for its end, unless the answer does not wait.
 *
 * @throws {Problem} `cancelled` when it certainly was not applied: the queue is away, no worker took it in time, or a crash of the
 *   database lost it
 */
export async function enqueueAndWait(
  submitter: Submitter,
  run: NewRun,
  priority: number,
  { isAsync }: Delivery,
  leftMs: LeftMs,
): Promise<Submitted> {
  const { db, runs, enqueue, log, whyNot } = submitter
  const { id, title } = run
  const whyMs = Math.min(whyWithinMs, submitter.applyWaitMs / 6)
  const stop = new AbortController()
  let failure: unknown
  const add = () =>
    enqueue({ id, title, priority }, 1).catch((cause: unknown) => {
      failure = cause
      log.debug(fieldsOf(run, cause), 'the run could not be enqueued')
      stop.abort()
    })
  if (isAsync) {
    await add()
    if (failure === undefined) return { id, run: 'accepted' }
  } else {
    const budgetMs = Math.max(0, leftMs() - cancelMsOf(submitter) - whyMs)
    // The wait begins before the job is added: the worker may finish first.
    const awaited = runs.untilEnd(id, { budgetMs, isQueued: true, stop: stop.signal })
    await add()
    const end = await awaited
    if (end !== undefined) return outcome(id, end, unknown)
  }
  const why = failure === undefined ? ((await whyNot.runs([id], whyMs)).get(id) ?? unknown) : ofQueue(failure)
  const end = await cancelOrRead(db, id, (tx) => cancelRun(tx, id, why), cancelMsOf(submitter))
  return ended(submitter, run, end, why, failure)
}

/** The members of a log line about a run that met an outage. */
export function fieldsOf({ id, title, requestId: request }: NewRun, cause: unknown) {
  return { request, run: id, title, code: 'unavailable', cause: causeOf(cause) }
}

/** Milliseconds that the cancel of a run may take. */
export const cancelMsOf = ({ applyWaitMs }: Submitter): number => Math.min(longestCancelMs, applyWaitMs / 4)

/** The outcome of a run that may have been cancelled here, which counts it. The worker counts every other end. */
export function ended(
  { tally }: Submitter,
  { id, kind, conditions: { mode } }: NewRun,
  end: WaitResult,
  why: Why,
  cause: unknown,
): Submitted {
  if (end === 'cancelled') tally.ended({ kind, mode, outcome: end, reason: why.code })
  return outcome(id, end, why, cause)
}

/**
 * @param why the reason, where it was cancelled
 * @param cause the error behind it, for the log
 * @throws {Problem} `cancelled` when nothing was changed
 */
export function outcome(id: string, run: WaitResult | 'waiting', why: Why, cause?: unknown): Submitted {
  if (run === 'locked' || run === 'waiting' || run === 'unknown') return { id, run }
  // A cancel by a user is an outcome: a repetition would be against that user's will.
  if (typeof run === 'object' && (run.state !== 'cancelled' || run.cancelledBy !== null)) return { id, run }
  if (typeof run === 'object') throw cancelled({ sentence: ofLog(run.logs) }, { retryAfterS: 1, cause })
  throw cancelled(run === 'vanished' ? crashed : why, { retryAfterS: 1, cause })
}

const crashed = { sentence: 'the database crashed and lost it' }

/** A queue that took no job has been waited for already: it is not asked again. */
const ofQueue = (failure: unknown): Why =>
  ofPart('queue', queueFailed(failure instanceof Problem ? failure.cause : failure))

/** The sentence that another request, or a worker, has recorded. */
const ofLog = ([line = 'it was cancelled']: readonly string[]): string => line.replace(/^not applied: /, '')

export const cancelled = (
  why: Pick<Why, 'sentence'>,
  facts: { readonly retryAfterS: number; readonly cause?: unknown },
): Problem => new Problem('cancelled', notApplied(why), facts)
