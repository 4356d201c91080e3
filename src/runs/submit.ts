import { setTimeout as delay } from 'node:timers/promises'
import type { Db } from '../db/client.ts'
import { didNotHappen, isConnectionLost, refusesWrites, statementProblem } from '../db/errors.ts'
import { inTime } from '../db/in-time.ts'
import { type Blueprint, ownersIn } from '../document/document.ts'
import { print } from '../document/yaml.ts'
import { Problem } from '../errors.ts'
import { causeOf, type Logger } from '../log.ts'
import { type Actor, mayWriteAnything } from '../permissions.ts'
import type { Conditions, Engine } from '../plan/engine.ts'
import { tracing } from '../tracing.ts'
import { alone } from '../turns.ts'
import { type Admission, type Backlog, queuedEntriesOf } from './backlog.ts'
import type { Run } from './ended.ts'
import { isKeyTaken, type RetryKey, requestDigest, runUnderKey } from './idempotency.ts'
import { cancelRun, type NewRun, recordCancelled, recordRun } from './ledger.ts'
import { refuseReader } from './readers.ts'
import type { Enqueue } from './reconcile.ts'
import { awaitEnd, awaitOther, cancelOrRead, longestCancelMs, type Runs, type WaitResult } from './subscribe.ts'
import type { Tally } from './tally.ts'

/** The part of the API in a run: record it, enqueue it, wait for its end. */
export type Submitter = {
  readonly db: Db
  readonly engine: Engine
  readonly runs: Runs
  readonly backlog: Backlog
  readonly enqueue: Enqueue
  readonly log: Logger
  readonly tally: Tally
  readonly applyWaitMs: number
  /** Entries that one user may have queued in submissions that are not waited for. */
  readonly queuedEntries: number
  /** The reason why no worker takes jobs, when the queue is paused; null when it is not, and when that is not known. */
  readonly whyPaused: () => Promise<string | null>
}

/** A document that was checked and has no error. */
export type Submission = Pick<NewRun, 'id' | 'title' | 'kind' | 'slug' | 'former'> & {
  readonly blueprint: Blueprint
  readonly conditions: Conditions
}

/**
 * Why the outcome is not known yet: a worker has locked the run, none has it, the database went away, or the answer does not
 * wait.
 */
export type Undecided = Extract<WaitResult, 'locked' | 'unknown'> | 'waiting' | 'accepted'

/** The way in which the submitter wants it delivered. */
export type Delivery = {
  /** `Idempotency-Key`; null without one. */
  readonly key: string | null
  /** `Prefer: respond-async`: the answer does not wait for the run. */
  readonly isAsync: boolean
  /** `Gatewright-Message`: the reason for it; null without one. */
  readonly message: string | null
}

export type Submitted = { readonly id: string; readonly run: Run | Undecided }

/** An admitted submission, with the rest of the time in which it must be answered. */
export type Turn = {
  readonly admission: Admission
  /** Milliseconds that are left of `applyWaitMs`. */
  leftMs(): number
}

/**
 * Admits a submission, and limits the time of all its work before the answer.
 *
 * @property elapsedMs milliseconds since the request arrived
 * @property waits whether it waits for the end of its run
 * @param work checks the document, and submits it
 * @throws {Problem} `unavailable` or `cancelled` at once when it would not be applied in time
 */
export async function inTurn<Result>(
  { backlog, applyWaitMs }: Submitter,
  { elapsedMs, waits }: { readonly elapsedMs: number; readonly waits: boolean },
  work: (turn: Turn) => Promise<Result>,
): Promise<Result> {
  const endsAt = performance.now() - elapsedMs + applyWaitMs
  const admission = await backlog.enter({ waits })
  let isKnown = false
  try {
    const result = await work({ admission, leftMs: () => Math.max(0, endsAt - performance.now()) })
    isKnown = true
    return result
  } finally {
    admission.leave(isKnown)
  }
}

/**
 * Finds the run that was submitted under the same key, and its end. This comes before all refusals of the submission: a refusal
 * says that nothing was changed.
 *
 * @returns undefined when there is none
 * @throws {Problem} `idempotency_key_reused`
 */
export async function joinRun(
  { db, engine, runs, applyWaitMs }: Submitter,
  submission: Omit<Submission, 'id'>,
  { pk }: Actor,
  elapsedMs: number,
  { key, isAsync, message }: Delivery,
): Promise<Submitted | undefined> {
  if (key === null || pk === null) return undefined
  const retryKey = retryKeyOf(engine, submission, print(submission.blueprint), { key, message })
  const first = await inTime(runUnderKey(db, pk, retryKey))
  if (first === undefined) return undefined
  const leftMs = isAsync ? 0 : Math.max(0, applyWaitMs - elapsedMs)
  return outcome(first, await awaitOther(db, runs, first, leftMs), {})
}

/** @param text the blueprint as it is recorded */
const retryKeyOf = (
  { keyring }: Engine,
  { conditions }: Pick<Submission, 'conditions'>,
  text: string,
  { key, message }: { readonly key: string; readonly message: string | null },
): RetryKey => {
  // A message and a reset are left out when they are absent, as version 0.2.0 has it.
  const { reset, ...usual } = conditions
  const others = { ...usual, ...(reset && { reset }), ...(message !== null && { message }) }
  return { key, request: requestDigest(keyring, text, JSON.stringify(others)) }
}

/**
 * Submits, or joins a run that another request submits under the same key at the same time.
 *
 * @param check checks the document before it is recorded. A submission that joins is not checked again
 * @throws {Problem} `idempotency_key_reused`, and what `submit` and `check` throw
 */
export async function submitOnce(
  submitter: Submitter,
  submission: Submission,
  actor: Actor,
  requestId: string,
  turn: Turn,
  { delivery, check }: { readonly delivery: Delivery; readonly check: () => Promise<unknown> },
): Promise<Submitted> {
  const { engine, applyWaitMs } = submitter
  const { pk } = actor
  const { blueprint, ...rest } = submission
  const { key, isAsync, message } = delivery
  await check()
  const count = blueprint.entries.length
  const isLarge = count > fewEntries
  if (isAsync && pk !== null) await refuseTooMany(submitter, pk, Math.max(count, fewEntries))
  if (pk !== null && !mayWriteAnything(actor)) await refuseReader(submitter.db, pk)
  const text = isLarge ? await alone(pk, () => print(blueprint)) : print(blueprint)
  const run = { ...rest, blueprint: text, owners: ownersIn(blueprint), entries: isLarge ? count : undefined, message }
  if (key === null || pk === null) return submit(submitter, run, actor, requestId, turn, isAsync)
  const retryKey = retryKeyOf(engine, submission, text, { key, message })
  for (let tries = 1; ; tries += 1) {
    try {
      return await submit(submitter, { ...run, retryKey }, actor, requestId, turn, isAsync)
    } catch (error) {
      if (!isKeyTaken(error) || tries === maxKeyTries) throw error
      const joined = await joinRun(submitter, submission, actor, applyWaitMs - turn.leftMs(), delivery)
      if (joined !== undefined) return joined
    }
  }
}

/** A run of more entries does not go before those of few. */
const fewEntries = 100

const maxKeyTries = 3

/** @throws {Problem} `too_many_requests`: nothing else limits submissions that are not waited for */
async function refuseTooMany(
  { db, queuedEntries: most }: Submitter,
  submitter: number,
  entries: number,
): Promise<void> {
  const waiting = await inTime(queuedEntriesOf(db, submitter, fewEntries))
  if (waiting === 0 || waiting + entries <= most) return
  const detail = `Your runs that wait have ${waiting} entries already, where each counts as ${fewEntries} at least, and with these ${entries} there would be more than the ${most} of QUEUED_ENTRIES. Nothing was changed: try again when some have ended.`
  throw new Problem('too_many_requests', detail, { retryAfterS: 5 })
}

/**
 * @throws {Problem} `cancelled` when it certainly was not applied: the queue is away, no worker took it in time, or a
 *   crash of the database lost it
 */
async function submit(
  submitter: Submitter,
  submission: Omit<NewRun, 'submitterPk' | 'impersonator' | 'ceiling' | 'authors' | 'requestId' | 'trace'>,
  { pk: submitterPk, username, impersonator, ceiling, authors }: Actor,
  requestId: string,
  { admission, leftMs }: Turn,
  isAsync: boolean,
): Promise<Submitted> {
  const { db, engine, runs, enqueue, log, applyWaitMs, whyPaused } = submitter
  const { id, title } = submission
  const fields = { request: requestId, run: id, title, user: username, real_user: impersonator?.username ?? null }
  const cancelMs = Math.min(longestCancelMs, applyWaitMs / 4)
  if (leftMs() < cancelMs) throw cancelled('its check took too long', { retryAfterS: 1 })
  const run: NewRun = {
    ...submission,
    submitterPk,
    impersonator,
    ceiling,
    authors,
    requestId,
    trace: tracing()?.headers(),
  }
  const recordedFrom = performance.now()
  let lane: number | null
  try {
    const notAfterMs = admission.databaseNow() + recordWithinMs
    lane = await inTime(recordRun(db, engine.keyring, run, { notAfterMs, isFlushed: isAsync }))
    if (lane === null) throw cancelled('the database was too slow', { retryAfterS: 1 })
  } catch (error) {
    if (isKeyTaken(error)) throw error
    const finalAt = recordedFrom + recordWithinMs + commitsWithinMs
    const lastTryAt = Math.max(finalAt, performance.now() + leftMs() - cancelMs)
    return await cancelUnrecorded(submitter, run, fields, { error: statementProblem(error), lastTryAt })
  }
  const logFailure = (cause: unknown): Why => {
    log.debug({ ...fields, code: 'unavailable', cause: causeOf(cause) }, 'the run could not be enqueued')
    return { why: 'the queue is away', cause }
  }
  if (isAsync) {
    const failure = await enqueue({ id, title, lane }, 1).then(() => undefined, logFailure)
    if (failure === undefined) return { id, run: 'accepted' }
    const end = await cancelOrRead(db, id, (tx) => cancelRun(tx, id, `not applied: ${failure.why}`))
    return outcome(id, counted(submitter, run, end), failure)
  }
  // Subscribes before the job is added: the worker may finish first.
  const stop = new AbortController()
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

/** The reason why it was cancelled, for its submitter, and the error behind it, for the log. */
type Why = { readonly why?: string; readonly cause?: unknown }

/** Milliseconds by the clock of the database; more than the API waits for the statement. */
const recordWithinMs = 2_000
/** A statement that began in time may wait for a lock (`apiLockMs`) before it commits. */
const commitsWithinMs = 1_000
const tryAgainMs = 200

/**
 * Cancels a run that may exist all the same, or arrive later, so that no worker applies it. Without an answer of the database the
 * outcome is unknown; it is reported when the record can no longer arrive, so that a 404 is final.
 */
async function cancelUnrecorded(
  submitter: Submitter,
  run: NewRun,
  fields: object,
  { error, lastTryAt }: { readonly error: unknown; readonly lastTryAt: number },
): Promise<Submitted> {
  const { db, engine, log } = submitter
  if (refusesWrites(error)) throw cancelled('the database accepts no changes', { retryAfterS: 5, cause: error })
  if (!isConnectionLost(error) || didNotHappen(error)) throw error
  log.debug({ ...fields, code: 'unavailable', cause: causeOf(error) }, 'the connection was lost while recording')
  const why = 'the database went away'
  for (;;) {
    const isLast = performance.now() > lastTryAt
    const awaited = await cancelOrRead(db, run.id, (tx) =>
      recordCancelled(tx, engine.keyring, run, `not applied: ${why}`),
    )
    if (awaited !== 'unknown' || isLast) return outcome(run.id, counted(submitter, run, awaited), { why, cause: error })
    await delay(tryAgainMs)
  }
}

/** Counts the run when it was cancelled here. The worker counts every other end. */
function counted({ tally }: Submitter, { kind, conditions: { mode } }: NewRun, end: WaitResult): WaitResult {
  if (end === 'cancelled') tally.ended({ kind, mode, outcome: 'cancelled', reason: 'cancelled' })
  return end
}

function outcome(id: string, run: WaitResult | 'waiting', { why = 'it was cancelled', cause }: Why): Submitted {
  if (run === 'locked' || run === 'waiting' || run === 'unknown') return { id, run }
  // A cancel by a user is an outcome: a repetition would be against that user's will.
  if (typeof run === 'object' && (run.state !== 'cancelled' || run.cancelledBy !== null)) return { id, run }
  const reasons = { cancelled: why, vanished: 'the database crashed and lost it' }
  const reason = typeof run === 'object' ? 'it was cancelled' : reasons[run]
  throw cancelled(reason, { retryAfterS: 1, cause })
}

const cancelled = (why: string, facts: { retryAfterS: number; cause?: unknown }): Problem =>
  new Problem('cancelled', `Not applied: ${why}. Nothing was changed; try again shortly.`, facts)
