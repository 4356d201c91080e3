import { apply } from '../apply/apply.ts'
import type { Db } from '../db/client.ts'
import type { EngineTransaction, EngineTx } from '../db/engine-tx.ts'
import { parse } from '../document/yaml.ts'
import { compile, type Plan } from '../plan/compile.ts'
import type { Engine } from '../plan/engine.ts'
import {
  cancelLocked,
  conditionsOf,
  digestOf,
  finishRun,
  leaveQueued,
  lockRun,
  notifyEnded,
  type Run,
  type RunResult,
  runSelect,
  sealedColumn,
  submitterOf,
  type WorkerRun,
} from './ledger.ts'
import type { RunState } from './life.ts'

/** What a worker does with a run in one transaction, in this order. */
export type RunTx = {
  /** Locks the row for the rest of the transaction, so that only one worker works on the run. */
  lock(id: string): Promise<WorkerRun | undefined>
  /** @throws {Refusal} which rolls the transaction back */
  apply(run: WorkerRun): Promise<RunResult>
  /** Writes the result of a locked run, and the audit row when it was applied. */
  finish(run: WorkerRun, state: RunState, result: RunResult): void
  cancel(run: WorkerRun, why: string): void
  /** Leaves the run to another worker, and gives that one time. */
  leaveQueued(run: WorkerRun): void
}

/** The ledger as a worker uses it. The simulation of runs has a second one, in memory (test/simulation/). */
export type WorkerLedger = {
  /**
   * Runs `work` in one transaction and commits it; an error rolls it back and reaches the caller.
   *
   * @throws {CommitUnknown} when it may be committed or not
   */
  transaction<Result>(work: (tx: RunTx) => Promise<Result>): Promise<Result>
  /** Reads the run without a lock. */
  read(id: string): Promise<Run | null>
  /** Notifies the subscribers of a run, in the background. */
  notifyEnded(id: string): void
}

export type WorkerDatabase = {
  readonly db: Db
  readonly transaction: EngineTransaction
  readonly engine: Engine
  readonly runSecretsHours: number
}

export const workerLedger = ({ db, transaction, engine, runSecretsHours }: WorkerDatabase): WorkerLedger => ({
  transaction: (work) =>
    transaction((tx) =>
      work({
        lock: (id) => lockRun(tx, id),
        apply: (run) => resultOf(tx, engine, run),
        finish: (run, state, result) => finishRun(tx, { keyring: engine.keyring, runSecretsHours }, run, state, result),
        cancel: (run, why) => cancelLocked(tx, run.id, why),
        leaveQueued: (run) => leaveQueued(tx, run.id),
      }),
    ),
  read: (id) => db.run.findUnique({ where: { id }, select: runSelect }),
  notifyEnded: (id) => notifyEnded(db, id),
})

async function resultOf(tx: EngineTx, engine: Engine, run: WorkerRun): Promise<RunResult> {
  const submitter = { pk: run.submitterPk, ...submitterOf(run) }
  const text = engine.keyring.open(run.blueprint ?? '', sealedColumn(run.id, 'blueprint'))
  const { actor, ...applied } = await apply(tx, engine, planOf(engine, text), submitter, conditionsOf(run))
  const document = digestOf(engine.keyring, text)
  return { ...applied, event: 'finish', applied: true, reason: null, actorName: actor.username, document }
}

function planOf({ registry }: Engine, text: string): Plan {
  return compile(parse(text), registry, (entry, index) => (entry.id === undefined ? ['entries', index] : [entry.id]))
}
