import { Problem } from '../errors.ts'
import { causeOf } from '../log.ts'
import { cancelRun, type NewRun } from '../runs/ledger.ts'
import { awaitEnd, cancelOrRead, longestCancelMs, type WaitResult } from '../runs/subscribe.ts'
import type { Delivery, LeftMs, Submitted, Submitter } from './submission.ts'

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
  lane: number,
  { isAsync }: Delivery,
  leftMs: LeftMs,
): Promise<Submitted> {
  const { db, runs, enqueue, log, whyPaused } = submitter
  const { id, title, requestId: request } = run
  const logFailure = (cause: unknown): Why => {
    log.debug({ request, run: id, title, code: 'unavailable', cause: causeOf(cause) }, 'the run could not be enqueued')
    return { why: 'the queue is away', cause }
  }
  if (isAsync) {
    const failure = await enqueue({ id, title, lane }, 1).then(() => undefined, logFailure)
    if (failure === undefined) return { id, run: 'accepted' }
    const end = await cancelOrRead(db, id, (tx) => cancelRun(tx, id, `not applied: ${failure.why}`))
    return outcome(id, counted(submitter, run, end), failure)
  }
  // The wait begins before the job is added: the worker may finish first.
  const stop = new AbortController()
  const cancelMs = cancelMsOf(submitter)
  const awaited = awaitEnd(db, runs, id, { budgetMs: Math.max(0, leftMs() - cancelMs), cancelMs, stop: stop.signal })
  let failure: Why | undefined
  await enqueue({ id, title, lane }, 1).catch((cause: unknown) => {
    failure = logFailure(cause)
    stop.abort()
  })
  const end = counted(submitter, run, await awaited)
  if (end !== 'cancelled') return outcome(id, end, {})
  return outcome(id, end, failure ?? { why: (await whyPaused()) ?? 'no worker took it in time' })
}

/** Milliseconds that the cancel of a run may take. */
export const cancelMsOf = ({ applyWaitMs }: Submitter): number => Math.min(longestCancelMs, applyWaitMs / 4)

/** Counts the run when it was cancelled here. The worker counts every other end. */
export function counted({ tally }: Submitter, { kind, conditions: { mode } }: NewRun, end: WaitResult): WaitResult {
  if (end === 'cancelled') tally.ended({ kind, mode, outcome: 'cancelled', reason: 'cancelled' })
  return end
}

/** The reason why it was cancelled, for its submitter, and the error behind it, for the log. */
type Why = { readonly why?: string; readonly cause?: unknown }

/** @throws {Problem} `cancelled` when nothing was changed */
export function outcome(id: string, run: WaitResult | 'waiting', { why = 'it was cancelled', cause }: Why): Submitted {
  if (run === 'locked' || run === 'waiting' || run === 'unknown') return { id, run }
  // A cancel by a user is an outcome: a repetition would be against that user's will.
  if (typeof run === 'object' && (run.state !== 'cancelled' || run.cancelledBy !== null)) return { id, run }
  const reasons = { cancelled: why, vanished: 'the database crashed and lost it' }
  const reason = typeof run === 'object' ? 'it was cancelled' : reasons[run]
  throw cancelled(reason, { retryAfterS: 1, cause })
}

export const cancelled = (why: string, facts: { retryAfterS: number; cause?: unknown }): Problem =>
  new Problem('cancelled', `Not applied: ${why}. Nothing was changed; try again shortly.`, facts)
