import { CommitUnknown, type Db, type Tx, transaction } from '../../db/client.ts'
import { isTransient, isValueMissing } from '../../db/failures.ts'
import { Problem } from '../../errors.ts'
import type { Logger } from '../../log.ts'
import type { Acting } from '../../models/actor.ts'
import { type ApplyResult, apply } from '../apply.ts'
import { compile, type Plan } from '../compile.ts'
import type { Engine } from '../inspect.ts'
import { draft, Unforeseen } from '../outright.ts'
import { pauseBeforeRetry } from '../pause.ts'
import { lock } from '../perform.ts'
import { Refusal } from '../refusal.ts'
import { parse } from '../yaml.ts'
import { type End, endFree, endLocked, refusedColumn } from './end.ts'
import { isFinished, live, type RunEvent } from './life.ts'
import {
  claimRun,
  impersonatorOf,
  lockRun,
  readOptions,
  readRuns,
  runFinished,
  sealedColumn,
  seeRun,
  type WorkerRun,
} from './record.ts'

/** The worker's half of a run: one transaction that holds the effect and the record of it. */

export type Worker = {
  readonly db: Db
  readonly engine: Engine
  readonly log: Logger
  readonly runSecretsHours: number
}

/** How the job ends: what the queue's dashboard shows as its return value. */
export type Outcome = 'applied' | 'refused' | 'duplicate' | 'gone'

/** A transient failure is tried again at once, this often; what is left is the reconciler's. */
const maxTries = 4

/**
 * Works on one run, however often it was rung and whoever else was rung for it.
 *
 * @throws when something surprising happened: the run is then recorded as failed, and the job fails where operators look
 */
export async function work(worker: Worker, id: string): Promise<Outcome> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await attemptTwice(worker, id)
    } catch (error) {
      if (error instanceof Refusal) return await finishRefused(worker, id, error)
      if (error instanceof CommitUnknown && (await isFinishedNow(worker.db, id))) {
        worker.db.announce(runFinished(id))
        return 'applied'
      }
      const retriable = error instanceof CommitUnknown || isTransient(error)
      if (!retriable) {
        await finishFailed(worker, id, error)
        throw error
      }
      if (attempt === maxTries) throw error
      worker.log.warn({ run: id, attempt, err: error }, 'trying the run again')
      await pauseBeforeRetry(attempt, 20)
    }
  }
}

async function isFinishedNow(db: Db, id: string): Promise<boolean> {
  const [run] = await readRuns(db, [id]).catch(() => [])
  return run !== undefined && isFinished(run.state)
}

/**
 * What the API has checked a moment ago holds nearly always, so the first attempt does not ask again. Where it did not
 * hold, a second one finds out all that is wrong, in the same words as the check.
 */
async function attemptTwice(worker: Worker, id: string): Promise<Outcome> {
  const seen = await see(worker, id)
  if (seen === undefined) return attemptLooking(worker, id)
  try {
    return await (seen.outright === undefined
      ? attemptTrusting(worker, seen)
      : attemptOutright(worker, seen, seen.outright))
  } catch (error) {
    if (!(error instanceof Refusal || error instanceof Unforeseen)) throw error
    return attemptLooking(worker, id)
  }
}

/** A run that waits, with what is needed to work on it. */
type Seen = { readonly run: WorkerRun; readonly plan: Plan } & ReturnType<typeof readOptions>

/** @returns undefined when only whoever has locked the run can say what becomes of it */
async function see({ db, engine }: Worker, id: string): Promise<Seen | undefined> {
  const run = await seeRun(db, id).catch((error: unknown) => {
    // It shares a connection, which is given up sooner than that of a transaction.
    if (isTransient(error)) return undefined
    throw error
  })
  return run?.state === 'queued' ? { run, plan: planOf(engine, run), ...readOptions(run) } : undefined
}

function planOf({ keyring, registry }: Engine, run: WorkerRun): Plan {
  const text = keyring.open(run.blueprint, sealedColumn(run.id, 'blueprint'))
  return compile(parse(text), registry, (entry, index) => (entry.id === undefined ? ['entries', index] : [entry.id]))
}

/**
 * In one round trip: the names' locks; the run's end, if nobody else has it and the submitter may still do this; the
 * rows, if nobody else has made them.
 */
async function attemptOutright(
  worker: Worker,
  { run, plan, conditions }: Seen,
  { drawn, rights }: NonNullable<Seen['outright']>,
): Promise<Outcome> {
  const permissions = new Set(rights.permissions)
  const submitter = { pk: run.submitterPk, username: '', isSuperuser: rights.superuser, permissions }
  const { tx: paper, sendTo } = draft()
  const result = await apply(paper, worker.engine, plan, submitter, conditions, { drawn })
  return transaction<Outcome>(worker.db, async (tx) => {
    lock(tx, plan.steps)
    tx.send(endFree(run, applied(worker, run, result), rights), (error) =>
      isValueMissing(error, refusedColumn)
        ? new Unforeseen('the run is not free, or the submitter may no longer do this', { cause: error })
        : error,
    )
    sendTo(tx)
    tx.announce(runFinished(run.id))
    return 'applied'
  })
}

function attemptTrusting(worker: Worker, { run, plan, conditions }: Seen): Promise<Outcome> {
  return transaction<Outcome>(worker.db, async (tx) => {
    const [isFree, result] = await Promise.all([
      claimRun(tx, run.id),
      apply(tx, worker.engine, plan, submitterOf(run), conditions, 'trusting'),
    ])
    if (!isFree) throw new Unforeseen('the run is not free')
    finish(tx, run, applied(worker, run, result), result.actor.username)
    return 'applied'
  })
}

function attemptLooking(worker: Worker, id: string): Promise<Outcome> {
  return transaction(worker.db, async (tx) => {
    const run = await lockRun(tx, id)
    if (run === undefined) return 'gone'
    if (live(run, 'lock') === run) {
      // Whoever finished it may have died before he told anybody.
      tx.announce(runFinished(id))
      return 'duplicate'
    }
    const { conditions } = readOptions(run)
    const result = await apply(tx, worker.engine, planOf(worker.engine, run), submitterOf(run), conditions)
    finish(tx, run, applied(worker, run, result), result.actor.username)
    return 'applied'
  })
}

const submitterOf = (run: WorkerRun): Acting => ({ pk: run.submitterPk, impersonator: impersonatorOf(run) })

const applied = (
  { engine, runSecretsHours }: Worker,
  run: WorkerRun,
  { logs, changes, ...result }: ApplyResult,
): End => ({
  state: live(live(run, 'lock'), 'finish').state,
  applied: true,
  reason: null,
  logs,
  changes,
  generated: sealGenerated(engine, run, result.generated),
  runSecretsHours,
})

function sealGenerated({ keyring }: Engine, run: WorkerRun, generated: ApplyResult['generated']): string | null {
  if (Object.keys(generated).length === 0) return null
  return keyring.seal(JSON.stringify(generated), sealedColumn(run.id, 'generated'))
}

function finish(tx: Tx, run: WorkerRun, end: End, actorName: string): void {
  tx.send(endLocked(run, end, actorName))
  tx.announce(runFinished(run.id))
}

/** A refusal completes the run: it is an answer, not an accident. */
async function finishRefused(worker: Worker, id: string, refusal: Refusal): Promise<Outcome> {
  return finishWithout(worker, id, { event: 'finish', reason: refusal.reason, logs: refusal.logs }, 'refused')
}

async function finishFailed(worker: Worker, id: string, error: unknown): Promise<void> {
  worker.log.error({ run: id, err: error }, 'a run failed by surprise')
  const why = error instanceof Problem ? error.message : 'an error inside the service'
  const logs = [`rolled back: ${why}; nothing was changed. The service's log has the details of run ${id}.`]
  await finishWithout(worker, id, { event: 'fail', reason: 'server_error', logs }, 'refused').catch(
    (failure: unknown) => {
      // The run stays queued; the reconciler rings again or gives it up.
      worker.log.error({ run: id, err: failure }, 'the failure could not be recorded')
    },
  )
}

function finishWithout(
  { db, runSecretsHours }: Worker,
  id: string,
  { event, ...end }: Pick<End, 'reason' | 'logs'> & { event: RunEvent },
  outcome: Outcome,
): Promise<Outcome> {
  return transaction(db, async (tx) => {
    const run = await lockRun(tx, id)
    if (run === undefined) return 'gone'
    const running = live(run, 'lock')
    if (running === run) return 'duplicate'
    const { state } = live(running, event)
    finish(tx, run, { ...end, state, applied: false, changes: [], generated: null, runSecretsHours }, '')
    return outcome
  })
}
