import type { Db } from '../../db/client.ts'
import { didNotHappen, isConnectionLost } from '../../db/failures.ts'
import { Problem } from '../../errors.ts'
import { uuid7 } from '../../ids.ts'
import type { Logger } from '../../log.ts'
import type { Actor } from '../../permissions.ts'
import type { Engine, Finding } from '../inspect.ts'
import { outrightFor } from '../outright.ts'
import type { Submission } from '../submission.ts'
import { print } from '../yaml.ts'
import type { Backlog } from './backlog.ts'
import type { Ring } from './reconcile.ts'
import { type NewRun, type Run, record, recordCancelled } from './record.ts'
import { type Collected, cancelOrCollect, type Waiter } from './wait.ts'

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

/** Why nobody can say yet whether it is applied: a worker holds it, or the database went away, perhaps with its record. */
export type Unknown = 'unfinished' | 'away'

export type Submitted = { readonly id: string; readonly run: Run | Unknown }

/**
 * @param findings of the check, which has found no fault
 * @throws {Problem} `not_applied` when it certainly was not applied: too many wait already, the queue is away, no
 *   worker took it in time, or a crash of the database took it away
 */
export async function submit(
  submitter: Submitter,
  submission: Submission,
  findings: readonly Finding[],
  actor: Actor,
  requestId: string,
): Promise<Submitted> {
  const leave = submitter.backlog.enter()
  try {
    return await recordAndWait(submitter, submission, findings, actor, requestId)
  } finally {
    leave()
  }
}

async function recordAndWait(
  submitter: Submitter,
  submission: Submission,
  findings: readonly Finding[],
  actor: Actor,
  requestId: string,
): Promise<Submitted> {
  const { db, engine, waiter, ring, log, applyWaitMs } = submitter
  const { title, conditions, blueprint } = submission
  const id = uuid7()
  const { pk: submitterPk, impersonator } = actor
  const outright = outrightFor(findings, actor)
  const run = { id, title, submitterPk, impersonator, requestId, blueprint: print(blueprint), conditions, outright }
  try {
    await record(db, engine.keyring, run)
  } catch (error) {
    return await takeBack(submitter, run, error)
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

/** The row may be there all the same, or arrive yet, and then a worker would find it: it is taken back, or else nobody knows. */
async function takeBack({ db, engine, log }: Submitter, run: NewRun, error: unknown): Promise<Submitted> {
  if (!isConnectionLost(error) || didNotHappen(error)) throw error
  log.warn({ run: run.id, err: error }, 'the connection was lost while recording')
  const why = 'the database went away'
  const collected = await cancelOrCollect(db, run.id, (tx) =>
    recordCancelled(tx, engine.keyring, run, `not applied: ${why}`),
  )
  return outcome(run.id, collected, why)
}

function outcome(id: string, run: Collected, why: string): Submitted {
  if (typeof run === 'object') return { id, run }
  if (run === 'held') return { id, run: 'unfinished' }
  if (run === 'unknown') return { id, run: 'away' }
  const reason = run === 'lost' ? 'the database crashed and lost it' : why
  throw new Problem('not_applied', `Not applied: ${reason}. Nothing was changed; try again shortly.`, {
    retryAfterS: 1,
  })
}
