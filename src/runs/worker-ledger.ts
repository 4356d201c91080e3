import { apply, type OnProgress } from '../apply/apply.ts'
import { Refusal } from '../apply/refusal.ts'
import type { Db } from '../db/client.ts'
import type { EngineTransaction, EngineTx } from '../db/engine-tx.ts'
import { isLockTimeout } from '../db/errors.ts'
import { execute } from '../db/raw.ts'
import type { Keyring } from '../db/seal.ts'
import { stackOf } from '../document/document.ts'
import { withPlaces } from '../document/places.ts'
import { parse } from '../document/yaml.ts'
import { compileInTurns } from '../plan/compile.ts'
import type { Conditions, Engine } from '../plan/engine.ts'
import { watchBlocker } from './at-work.ts'
import { LockNotGiven } from './cause.ts'
import { pathsOf } from './documents.ts'
import { type AwaitedRun, notification, notifyEnded, readRuns } from './ended.ts'
import { finishRun, type Interruption, interruption, type RunResult } from './finish.ts'
import { cancellation, lockRun, postponement, sealedColumn, takeTurn, type WorkerRun } from './ledger.ts'
import { conditionsOf, submitterOf } from './options.ts'
import { digestOf, planTagOf, readPlan } from './plans.ts'
import { standsLine, withCauses } from './since-plan.ts'
import type { Why } from './why.ts'

/** The steps of a worker with a run in one transaction, in this order. */
export type RunTx = {
  /** Locks the row for the rest of the transaction, so that only one worker works on the run. */
  lock(): Promise<WorkerRun | undefined>
  /** @throws {Refusal} which rolls the transaction back */
  apply(run: WorkerRun, onProgress?: OnProgress): Promise<RunResult>
  /** Writes the result of a locked run, and the audit row when it was applied. */
  finish(run: WorkerRun, result: RunResult): void
  cancel(run: WorkerRun, why: Why): void
  /** Whether the run may go on now: a set waits for others of its submitter, and for a slot. */
  takeTurn(run: WorkerRun): Promise<boolean>
  /** Leaves the run in the queue, for this time. */
  leaveQueued(run: WorkerRun, afterMs: number): void
}

/** The interface of the ledger for a worker. The simulation of runs has a second one, in memory (test/simulation/). */
export type WorkerLedger = {
  /**
   * Runs `work` on the run in one transaction and commits it; an error rolls it back and reaches the caller. Notifies the
   * clients that wait for the run, in the background, when this transaction or an earlier one has ended it.
   *
   * @throws {CommitUnknown} when it may be committed or not
   */
  transaction<Result>(id: string, work: (tx: RunTx) => Promise<Result>): Promise<Result>
  /** Reads the run without a lock. */
  read(id: string): Promise<AwaitedRun | null>
  /** Records that an attempt of a queued run failed, or was not given a lock, if the database takes it. Never fails. */
  attemptFailed(id: string, cause: string, interruption: Interruption): Promise<void>
  /** Notifies the clients that wait for a run, in the background. */
  notifyEnded(id: string): void
}

export type WorkerDatabase = {
  readonly db: Db
  readonly transaction: EngineTransaction
  readonly engine: Engine
  readonly runSecretsHours: number
}

export const workerLedger = ({ db, transaction, engine, runSecretsHours }: WorkerDatabase): WorkerLedger => ({
  transaction: async (id, work) => {
    const watch = watchBlocker(db, id)
    try {
      return await transaction(
        (tx) =>
          work({
            lock: () => lockRun(tx, id),
            apply: (run, onProgress) => resultOf(tx, engine, run, onProgress),
            finish: (run, result) =>
              finishRun(tx, { keyring: engine.keyring, runSecretsHours }, run, withDocument(engine, run, result)),
            cancel: (run, why) => tx.send(cancellation(run.id, why)),
            takeTurn: (run) => takeTurn(tx, run),
            leaveQueued: (run, afterMs) => tx.send(postponement(run.id, afterMs)),
          }),
        notification(id),
      )
    } catch (error) {
      const blocker = watch.last()
      throw isLockTimeout(error) && blocker !== null ? new LockNotGiven(blocker, error) : error
    } finally {
      watch.stop()
    }
  },
  attemptFailed: async (id, cause, interrupted) => {
    await execute(db, interruption(id, cause, interrupted)).catch(() => {})
  },
  read: async (id) => (await readRuns(db, [id]))[0] ?? null,
  notifyEnded: (id) => notifyEnded(db, id),
})

/** A failure keeps the digest of its document, so that a later apply of the same document is known to repair it. */
function withDocument({ keyring }: Engine, run: WorkerRun, result: RunResult): RunResult {
  if (result.state !== 'failed') return result
  try {
    return { ...result, document: digestOf(keyring, documentIn(keyring, run)) }
  } catch {
    // The run failed because the document cannot be opened.
    return result
  }
}

/** The text of the document. @throws when it was sealed under another key */
const documentIn = (keyring: Keyring, { id, blueprint }: WorkerRun): string =>
  keyring.open(blueprint ?? '', sealedColumn(id, 'blueprint'))

async function resultOf(tx: EngineTx, engine: Engine, run: WorkerRun, onProgress?: OnProgress): Promise<RunResult> {
  const text = documentIn(engine.keyring, run)
  const document = digestOf(engine.keyring, text)
  const blueprint = await parse(text)
  const sent = conditionsOf(run)
  // Version 0.2.0 records no stack.
  const conditions = { ...sent, stack: sent.stack ?? stackOf(blueprint, sent.owner) }
  const plan =
    conditions.reviewed === null ? undefined : await reviewedPlan(tx, conditions.reviewed, document, conditions)
  const submitter = { pk: run.submitterPk, ...submitterOf(run) }
  const isPlan = conditions.mode === 'plan'
  if (isPlan) {
    tx.send({ text: 'SAVEPOINT planned', values: [] })
    // Triggers leave out effects that a rollback does not undo.
    tx.send({ text: "SELECT set_config('gatewright.mode', 'plan', true)", values: [] })
  }
  const compiled = await compileInTurns(blueprint, engine.registry, pathsOf(run), conditions)
  const options = { reviewed: plan?.digests, onProgress }
  const applied = apply(tx, engine, compiled, submitter, conditions, options)
  const result = await applied.catch(async (error: unknown) => {
    if (!(error instanceof Refusal)) throw error
    const refusal = plan === undefined ? error : await withCauses(tx, error, submitter, plan.at)
    refusal.placed = withPlaces(refusal.errors(), { value: blueprint, text: undefined, registry: engine.registry })
    throw refusal
  })
  const { actor, stands, ...rest } = result
  const standing = stands && plan ? [await standsLine(tx, stands, submitter, plan.at)] : []
  const outcome = { ...rest, state: 'done', reason: null, actorName: actor.username, document } as const
  if (!isPlan)
    return { ...outcome, stack: conditions.stack, applied: true, digests: [], logs: [...result.logs, ...standing] }
  tx.send({ text: 'ROLLBACK TO SAVEPOINT planned', values: [] })
  const planTag = planTagOf(engine.keyring, document, result.digests, conditions)
  return { ...outcome, applied: false, audited: [], generated: {}, planTag }
}

/**
 * @throws {Refusal} when there is no such plan, when it was of another document or another stack, and when it was made with
 * `reset` and this apply was not
 */
async function reviewedPlan(tx: EngineTx, tag: string, document: Buffer, { reset, stack }: Conditions) {
  const plan = await readPlan(tx, tag)
  if (plan === undefined) throw noPlan('there is no such plan: plan again, and review that')
  if (plan.document === null || !document.equals(plan.document))
    throw noPlan('the plan is of another document: plan this one')
  if (plan.reset !== reset)
    throw noPlan(
      reset
        ? 'the plan was made without reset=true: apply it without, or plan with it'
        : 'the plan was made with reset=true: apply it with reset=true, too, or plan without it',
    )
  if (plan.stack !== stack) {
    const text = (name: string | null) => (name === null ? 'no stack' : `stack ${JSON.stringify(name)}`)
    throw noPlan(`the plan is of ${text(plan.stack)}, and this apply of ${text(stack)}: plan this one`)
  }
  return plan
}

const noPlan = (text: string) => new Refusal([{ is: 'stated', reason: 'precondition_failed', text }])
