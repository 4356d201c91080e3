import { apply } from '../apply/apply.ts'
import { Refusal } from '../apply/refusal.ts'
import { retrying } from '../db/backoff.ts'
import { CommitUnknown, type Db } from '../db/client.ts'
import type { EngineTransaction, EngineTx } from '../db/engine-tx.ts'
import { isTransient } from '../db/errors.ts'
import { parse } from '../document/yaml.ts'
import { Problem } from '../errors.ts'
import type { Logger } from '../log.ts'
import { compile, type Plan } from '../plan/compile.ts'
import type { Engine } from '../plan/engine.ts'
import {
  conditionsOf,
  finishRun,
  impersonatorOf,
  lockRun,
  notifyEnded,
  type RunResult,
  runSelect,
  sealedColumn,
  type WorkerRun,
} from './ledger.ts'
import { isFinished, live, type RunState } from './life.ts'

/** The part of the worker in a run: one transaction with the effect and its record. */

export type Worker = {
  readonly db: Db
  readonly transaction: EngineTransaction
  readonly engine: Engine
  readonly log: Logger
  readonly runSecretsHours: number
}

/** The end of a run, by this job or by an earlier one. */
export type Ended = { readonly state: RunState; readonly applied: boolean; readonly logs: readonly string[] }

/** After these tries, the reconciler takes over. */
const tries = { max: 4, stepMs: 20 }

/**
 * Works on one run. A second job for it reports its end and changes nothing.
 *
 * @returns undefined when there is no such run
 * @throws for a bug: the run is recorded as failed, and the job fails, which the dashboard shows
 */
export async function work(worker: Worker, id: string): Promise<Ended | undefined> {
  const canRetry = (error: unknown) => error instanceof CommitUnknown || isTransient(error)
  const onRetry = (err: unknown, attempt: number) => worker.log.warn({ run: id, attempt, err }, 'trying the run again')
  try {
    return await retrying(() => attemptOnce(worker, id), { ...tries, canRetry, onRetry })
  } catch (error) {
    if (!canRetry(error)) await recordFailure(worker, id, error)
    throw error
  }
}

/** A commit of unknown outcome may have finished the run: its row says so. */
async function attemptOnce(worker: Worker, id: string): Promise<Ended | undefined> {
  try {
    return await applyOrRefuse(worker, id)
  } catch (error) {
    const known = error instanceof CommitUnknown ? await readEnd(worker.db, id) : undefined
    if (known === undefined) throw error
    notifyEnded(worker.db, id)
    return known
  }
}

/** Applies the run, or records why it was refused. */
async function applyOrRefuse(worker: Worker, id: string): Promise<Ended | undefined> {
  try {
    return await finishing(worker, id, (tx, run) => resultOf(tx, worker.engine, run))
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    const { reason, logs } = error
    return finishing(worker, id, async () => ({ ...nothingApplied, event: 'finish', reason, logs }))
  }
}

const nothingApplied = { applied: false, changes: [], generated: {}, actorName: '' } as const

/** Locks the run, and records the result that `decide` returns, in one transaction. */
async function finishing(
  worker: Worker,
  id: string,
  decide: (tx: EngineTx, run: WorkerRun) => Promise<RunResult>,
): Promise<Ended | undefined> {
  const { db, engine, transaction, runSecretsHours } = worker
  const ended = await transaction(async (tx): Promise<Ended | undefined> => {
    const run = await lockRun(tx, id)
    if (run === undefined) return undefined
    const running = live(run, 'lock')
    if (running === run) return { state: run.state, applied: run.applied === true, logs: run.logs }
    const result = await decide(tx, run)
    finishRun(tx, { keyring: engine.keyring, runSecretsHours }, run, result)
    return { state: live(running, result.event).state, applied: result.applied, logs: result.logs }
  })
  // Also when an earlier job finished the run: its worker may have died before it notified.
  if (ended !== undefined) notifyEnded(db, id)
  return ended
}

async function resultOf(tx: EngineTx, engine: Engine, run: WorkerRun): Promise<RunResult> {
  const submitter = { pk: run.submitterPk, impersonator: impersonatorOf(run) }
  const { actor, ...applied } = await apply(tx, engine, planOf(engine, run), submitter, conditionsOf(run))
  return { ...applied, event: 'finish', applied: true, reason: null, actorName: actor.username }
}

function planOf({ keyring, registry }: Engine, run: WorkerRun): Plan {
  const text = keyring.open(run.blueprint, sealedColumn(run.id, 'blueprint'))
  return compile(parse(text), registry, (entry, index) => (entry.id === undefined ? ['entries', index] : [entry.id]))
}

/** @returns undefined while the run is queued, and when its row cannot be read */
async function readEnd(db: Db, id: string): Promise<Ended | undefined> {
  const run = await db.run.findUnique({ where: { id }, select: runSelect }).catch(() => null)
  if (run === null || !isFinished(run.state)) return undefined
  return { state: run.state, applied: run.applied === true, logs: run.logs }
}

async function recordFailure(worker: Worker, id: string, error: unknown): Promise<void> {
  worker.log.error({ run: id, err: error }, 'a run failed unexpectedly')
  const why = error instanceof Problem ? error.message : 'an error inside the service'
  const logs = [`rolled back: ${why}; nothing was changed. The service's log has the details of run ${id}.`]
  await finishing(worker, id, async () => ({ ...nothingApplied, event: 'fail', reason: 'server_error', logs })).catch(
    (failure: unknown) => {
      // The run stays queued: the reconciler enqueues it again, or fails it.
      worker.log.error({ run: id, err: failure }, 'the failure could not be recorded')
    },
  )
}
