import { CommitUnknown, type Db, type Tx, transaction } from '../../db/client.ts'
import { isTransient } from '../../db/failures.ts'
import { sql } from '../../db/sql.ts'
import { Problem } from '../../errors.ts'
import type { Logger } from '../../log.ts'
import { stillActing } from '../../models/actor.ts'
import type { Actor } from '../../permissions.ts'
import { type ApplyResult, apply } from '../apply.ts'
import { compile } from '../compile.ts'
import type { Engine } from '../inspect.ts'
import { pauseBeforeRetry } from '../pause.ts'
import { Refusal } from '../refusal.ts'
import { parse } from '../yaml.ts'
import { live, type RunEvent, type RunState } from './life.ts'
import {
  conditionsOf,
  impersonatorOf,
  type LockedRun,
  lockFreeRun,
  lockRun,
  readFinished,
  runFinished,
  sealedColumn,
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
  const runs = await readFinished(db, [id]).catch(() => [])
  return runs.length > 0
}

/**
 * What the API has checked a moment ago holds nearly always, so the first attempt does not ask again. Where it did not
 * hold, a second one finds out all that is wrong, in the same words as the check.
 */
async function attemptTwice(worker: Worker, id: string): Promise<Outcome> {
  try {
    return await attemptOnce(worker, id, { trusting: true })
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return attemptOnce(worker, id, { trusting: false })
  }
}

function attemptOnce(
  { db, engine, runSecretsHours }: Worker,
  id: string,
  how: { readonly trusting: boolean },
): Promise<Outcome> {
  return transaction(db, async (tx) => {
    const taken = await take(tx, id)
    if (taken === undefined) return 'gone'
    const { run, actor } = taken
    const running = live(run, 'lock')
    if (running === run) {
      // Whoever finished it may have died before he told anybody.
      tx.announce(runFinished(id))
      return 'duplicate'
    }
    const result = await applyRun(tx, engine, run, actor, how)
    finish(tx, run, {
      state: live(running, 'finish').state,
      applied: true,
      reason: null,
      logs: result.logs,
      changes: result.changes,
      actorName: actor?.username ?? '',
      ...sealGenerated(engine, run, result),
      runSecretsHours,
    })
    return 'applied'
  })
}

type Taken = { readonly run: LockedRun; readonly actor: Actor | null }

/** @returns the run, locked, and its submitter as he is by now: null when he is gone, or may no longer act as another */
async function take(tx: Tx, id: string): Promise<Taken | undefined> {
  const free = await lockFreeRun(tx, id)
  const run = free?.run ?? (await lockRun(tx, id))
  if (run === undefined) return undefined
  const impersonator = impersonatorOf(run)
  // After waiting for the lock, what he may do is read anew.
  const isKnown = free !== undefined && impersonator === undefined
  return { run, actor: isKnown ? free.submitter : await stillActing(tx, { pk: run.submitterPk, impersonator }) }
}

async function applyRun(
  tx: Tx,
  engine: Engine,
  run: LockedRun,
  actor: Actor | null,
  how: { readonly trusting: boolean },
): Promise<ApplyResult> {
  if (actor === null) throw new Refusal('permission_denied', ['rolled back: the submitter is gone or no longer active'])
  const text = engine.keyring.open(run.blueprint, sealedColumn(run.id, 'blueprint'))
  const plan = compile(parse(text), engine.registry, (entry, index) =>
    entry.id === undefined ? ['entries', index] : [entry.id],
  )
  return apply(tx, engine, plan, actor, conditionsOf(run), how)
}

function sealGenerated({ keyring }: Engine, run: LockedRun, { generated }: ApplyResult): { generated: string | null } {
  if (Object.keys(generated).length === 0) return { generated: null }
  return { generated: keyring.seal(JSON.stringify(generated), sealedColumn(run.id, 'generated')) }
}

type Finish = {
  state: RunState
  applied: boolean
  reason: string | null
  logs: readonly string[]
  changes: ApplyResult['changes']
  actorName: string
  generated: string | null
  runSecretsHours: number
}

/** Result and audit row in one statement: they are in the database together or not at all. */
function finish(
  tx: Tx,
  run: LockedRun,
  { state, applied, reason, logs, changes, actorName, generated, runSecretsHours }: Finish,
): void {
  const real = impersonatorOf(run)
  tx.send(sql`
    WITH finished AS (
      UPDATE runs SET state = ${state}::run_state, applied = ${applied}, reason = ${reason}, logs = ${logs},
        generated = ${generated}, generated_until = CASE WHEN ${generated}::text IS NULL THEN NULL ELSE now() + make_interval(hours => ${runSecretsHours}) END,
        started_at = now(), finished_at = clock_timestamp()
      WHERE id = ${run.id} RETURNING id
    )
    INSERT INTO audit_rows (actor_pk, actor_name, real_pk, real_name, action, changes, request_id, run_id)
    SELECT ${run.submitterPk}::integer, ${actorName}, ${real?.pk ?? null}::integer, ${real?.username ?? null}, 'apply', ${JSON.stringify(changes)}::jsonb, ${run.requestId}, id
    FROM finished WHERE ${applied}`)
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
  { event, ...end }: Pick<Finish, 'reason' | 'logs'> & { event: RunEvent },
  outcome: Outcome,
): Promise<Outcome> {
  return transaction(db, async (tx) => {
    const run = await lockRun(tx, id)
    if (run === undefined) return 'gone'
    const running = live(run, 'lock')
    if (running === run) return 'duplicate'
    const { state } = live(running, event)
    finish(tx, run, { ...end, state, applied: false, changes: [], actorName: '', generated: null, runSecretsHours })
    return outcome
  })
}
