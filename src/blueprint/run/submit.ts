import type { Db } from '../../db/client.ts'
import { isConnectionLost, wasNeverSent } from '../../db/failures.ts'
import { Problem } from '../../errors.ts'
import { uuid7 } from '../../ids.ts'
import type { Logger } from '../../log.ts'
import type { Actor } from '../../permissions.ts'
import type { Engine } from '../inspect.ts'
import type { Submission } from '../submission.ts'
import { print } from '../yaml.ts'
import type { Backlog } from './backlog.ts'
import type { Ring } from './reconcile.ts'
import { type Run, record } from './record.ts'
import type { Waiter } from './wait.ts'

/** The API's half of a run: record, ring, wait for the row. */
export type Submitter = {
  readonly db: Db
  readonly engine: Engine
  readonly waiter: Waiter
  readonly backlog: Backlog
  readonly ring: Ring
  readonly log: Logger
  readonly applyWaitMs: number
}

export type Submitted = { readonly id: string; readonly run: Run | 'unknown' }

/**
 * @returns the run when it finished, `unknown` when it may still be applied
 * @throws {Problem} `not_applied` when it certainly was not applied: too many wait already, the queue is away, or no
 *   worker took it in time
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
  submission: Submission,
  actor: Actor,
  requestId: string,
): Promise<Submitted> {
  const { db, engine, waiter, ring, log, applyWaitMs } = submitter
  const { title, conditions, blueprint } = submission
  const id = uuid7()
  const run = { id, title, submitterPk: actor.pk, requestId, blueprint: print(blueprint), conditions }
  try {
    await record(db, engine.keyring, run)
  } catch (error) {
    if (!isConnectionLost(error) || wasNeverSent(error)) throw error
    // The row may be there all the same, and then a worker would find it: it is taken back, or else nobody knows.
    log.warn({ run: id, err: error }, 'the connection was lost while recording')
    return outcome(id, await waiter.takeBack(id), 'the database went away')
  }
  // Waiting begins before the bell is rung: the worker may be faster than this process.
  const collected = waiter.collect(id, applyWaitMs)
  const rung = await ring(run, 1).then(
    () => true,
    (error: unknown) => {
      log.warn({ run: id, err: error }, 'the doorbell could not be rung')
      waiter.giveUp(id)
      return false
    },
  )
  return outcome(id, await collected, rung ? `no worker took it within ${applyWaitMs / 1_000} s` : 'the queue is away')
}

function outcome(id: string, run: Run | 'cancelled' | 'unknown', why: string): Submitted {
  if (run !== 'cancelled') return { id, run }
  throw new Problem('not_applied', `Not applied: ${why}. Nothing was changed; try again shortly.`, { retryAfterS: 1 })
}
