import type { Db } from '../db/client.ts'
import { didNotHappen, isConnectionLost, refusesWrites, statementProblem } from '../db/errors.ts'
import { inTime } from '../db/in-time.ts'
import type { Blueprint } from '../document/document.ts'
import { print } from '../document/yaml.ts'
import { Problem } from '../errors.ts'
import { causeOf, type Logger } from '../log.ts'
import type { Actor } from '../permissions.ts'
import type { Conditions, Engine } from '../plan/engine.ts'
import type { Backlog } from './backlog.ts'
import { type NewRun, type Run, recordCancelled, recordRun } from './ledger.ts'
import type { Enqueue } from './reconcile.ts'
import { awaitEnd, cancelOrRead, type Runs, type WaitResult } from './subscribe.ts'

/** The part of the API in a run: record it, enqueue it, wait for its end. */
export type Submitter = {
  readonly db: Db
  readonly engine: Engine
  readonly runs: Runs
  readonly backlog: Backlog
  readonly enqueue: Enqueue
  readonly log: Logger
  readonly applyWaitMs: number
  /** Why no worker takes anything, when the queue is paused; null when it is not, and when that is not known. */
  readonly whyPaused: () => Promise<string | null>
}

/** A document that was checked and has no error. */
export type Submission = Pick<NewRun, 'id' | 'title' | 'kind' | 'slug'> & {
  readonly blueprint: Blueprint
  readonly conditions: Conditions
}

/** Why the outcome is not known yet: a worker has locked the run, or the database went away. */
export type Undecided = Extract<WaitResult, 'locked' | 'unknown'>

export type Submitted = { readonly id: string; readonly run: Run | Undecided }

/**
 * @throws {Problem} `cancelled` when it certainly was not applied: the queue is away, no worker took it in time, or a
 *   crash of the database lost it; `unavailable` when too many runs wait already
 */
export async function submit(
  submitter: Submitter,
  submission: Submission,
  actor: Actor,
  requestId: string,
): Promise<Submitted> {
  const leave = submitter.backlog.enter()
  try {
    return await recordAndWait(submitter, submission, actor, requestId)
  } finally {
    leave()
  }
}

async function recordAndWait(
  submitter: Submitter,
  { blueprint, ...submission }: Submission,
  { pk: submitterPk, username, impersonator, ceiling }: Actor,
  requestId: string,
): Promise<Submitted> {
  const { db, engine, runs, enqueue, log, applyWaitMs, whyPaused } = submitter
  const { id, title } = submission
  const fields = { request: requestId, run: id, title, user: username, real_user: impersonator?.username ?? null }
  const run: NewRun = { ...submission, submitterPk, impersonator, ceiling, requestId, blueprint: print(blueprint) }
  try {
    await inTime(recordRun(db, engine.keyring, run))
  } catch (error) {
    return await cancelUnrecorded(submitter, run, fields, statementProblem(error))
  }
  // Subscribes before the job is added: the worker may finish first.
  const stop = new AbortController()
  const awaited = awaitEnd(db, runs, id, { budgetMs: applyWaitMs, stop: stop.signal })
  let failure: Why | undefined
  await enqueue(run, 1).catch((cause: unknown) => {
    log.debug({ ...fields, code: 'unavailable', cause: causeOf(cause) }, 'the run could not be enqueued')
    failure = { why: 'the queue is away', cause }
    stop.abort()
  })
  const end = await awaited
  if (end !== 'cancelled') return outcome(id, end, {})
  return outcome(
    id,
    end,
    failure ?? { why: (await whyPaused()) ?? `no worker took it within ${applyWaitMs / 1_000} s` },
  )
}

/** Why it was cancelled, for its submitter, and the error behind it, for the log. */
type Why = { readonly why?: string; readonly cause?: unknown }

/** The row may exist all the same, or arrive later. It is cancelled, so that no worker applies it. */
async function cancelUnrecorded(
  { db, engine, log }: Submitter,
  run: NewRun,
  fields: object,
  error: unknown,
): Promise<Submitted> {
  if (refusesWrites(error)) throw cancelled('the database accepts no changes', { retryAfterS: 5, cause: error })
  if (!isConnectionLost(error) || didNotHappen(error)) throw error
  log.debug({ ...fields, code: 'unavailable', cause: causeOf(error) }, 'the connection was lost while recording')
  const why = 'the database went away'
  const awaited = await cancelOrRead(db, run.id, (tx) =>
    recordCancelled(tx, engine.keyring, run, `not applied: ${why}`),
  )
  return outcome(run.id, awaited, { why, cause: error })
}

function outcome(id: string, run: WaitResult, { why = 'it was cancelled', cause }: Why): Submitted {
  if (run === 'locked' || run === 'unknown') return { id, run }
  if (typeof run === 'object' && run.state !== 'cancelled') return { id, run }
  const reasons = { cancelled: why, vanished: 'the database crashed and lost it' }
  const reason = typeof run === 'object' ? 'it was cancelled' : reasons[run]
  throw cancelled(reason, { retryAfterS: 1, cause })
}

const cancelled = (why: string, facts: { retryAfterS: number; cause?: unknown }): Problem =>
  new Problem('cancelled', `Not applied: ${why}. Nothing was changed; try again shortly.`, facts)
