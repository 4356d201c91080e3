import { retrying } from '../db/backoff.ts'
import { CommitUnknown, type Db, patient, type Tx, transaction } from '../db/client.ts'
import { type EngineTx, withEngine } from '../db/engine-tx.ts'
import { isCollision, statementProblem } from '../db/errors.ts'
import { ErrorList, Problem } from '../errors.ts'
import { uuid7 } from '../ids.ts'
import { isObject } from '../json-object.ts'
import type { Actor } from '../permissions.ts'
import { compile, type Plan, type Step } from '../plan/compile.ts'
import type { Engine } from '../plan/engine.ts'
import { inspect } from '../plan/inspect.ts'
import { resolveNames } from '../plan/names.ts'
import { openSnapshot } from '../plan/snapshot.ts'
import { actorOfUser, currentActor } from '../rights/actor.ts'
import { forbidden, hasSuperuser, originOf, superuserErrors } from '../rights/policy.ts'
import { recordSettings } from '../rights/settings.ts'
import { audit } from './audit.ts'
import { refuseDenied } from './check.ts'
import { changeOf, execute, lock } from './execute.ts'
import { Refusal } from './refusal.ts'
import { Writes } from './writes.ts'

/** One row as a request writes it. */
export type Write = {
  /** The model's name. */
  readonly model: string
  /** `create` needs a model with UUID keys: integer keys come from the table's sequence. */
  readonly mode: { readonly create: true } | { readonly change: string | number } | { readonly remove: string | number }
  /** The body, of what is not removed. Fields that it omits are kept, or get their defaults in a new row. */
  readonly fields?: unknown
  /** Errors of parsing the body, reported with the others. */
  readonly textErrors?: ErrorList | undefined
  readonly requestId: string
}

/** For writes that collide. */
export const tries = { max: 5, stepMs: 5 }

/** Another transaction took the name or a referenced row since the check, or collided: another try reports the field. */
const canRetry = (error: unknown) => error instanceof Refusal || isCollision(error)

/**
 * Writes or deletes one row, and writes its audit row, in a transaction of its own. The steps are those of a blueprint's
 * entry, so that the same rules apply.
 *
 * @param read reads the answer before the commit, so that a failed read rolls the write back
 * @throws {Problem} `permission_denied`, `invalid` with all fields that have errors, `not_found` for a row to change
 *   or delete that does not exist, `unavailable`
 */
export async function write<Answer>(
  db: Db,
  engine: Engine,
  actor: Actor,
  request: Write,
  read: (tx: Tx, key: string | number) => Promise<Answer>,
): Promise<Answer> {
  const plan = planOf(engine, request)
  const attempt = () =>
    transaction(
      db,
      async (tx) => {
        const key = await withEngine(tx, (engineTx) => attemptOnce(engineTx, engine, actor, request, plan))
        return read(tx, key)
      },
      patient,
    )
  try {
    return await retrying(attempt, { ...tries, canRetry })
  } catch (error) {
    throw canRetry(error) ? busy(error) : asProblem(error)
  }
}

function planOf({ registry }: Engine, { model, mode, fields: body }: Write): Plan {
  const errors = new ErrorList()
  const fields = 'remove' in mode ? {} : body
  const attrs = isObject(fields) ? fields : {}
  if (attrs !== fields) errors.add([], 'wrong_type', 'Must be an object.')
  const pk = 'create' in mode ? uuid7() : 'change' in mode ? mode.change : mode.remove
  const state = 'create' in mode ? 'must_created' : 'remove' in mode ? 'absent' : 'present'
  const entry = { model, state, identifiers: { pk }, attrs } as const
  const plan = compile({ version: 1, metadata: { name: model }, entries: [entry] }, registry, () => [])
  return { steps: plan.steps, errors: errors.include([plan.errors]) }
}

async function attemptOnce(
  tx: EngineTx,
  engine: Engine,
  caller: Actor,
  { mode, textErrors, requestId }: Write,
  plan: Plan,
): Promise<string | number> {
  await lock(tx, plan.steps)
  // Read after the lock: a transaction that held it may have changed the caller's rights.
  const actor = (await currentActor(tx, caller)) ?? (await refuseGone(tx, caller))
  const steps = await resolveNames(tx, engine.registry, plan.steps, actor)
  const [step] = steps
  if (step === undefined) throw new Error(`there is no such model: ${JSON.stringify(plan.errors.tree())}`)
  const snapshot = await openSnapshot(tx, engine.registry, steps, { takesKeys: true })
  const finding = await inspect(tx, engine, snapshot, step, new Map())
  if (!('create' in mode) && finding.row === undefined) throw notFound(step)
  refuseDenied(actor, finding, await forbidden(tx, engine, actor, finding))
  new ErrorList().include([textErrors ?? new ErrorList(), plan.errors, finding.errors]).throwIfAny()
  const hadSuperuser = await hasSuperuser(tx, actor, steps)
  const writes = new Writes(tx, engine.registry)
  const key = execute(writes, engine, finding, originOf(actor, null))
  writes.flush()
  if (key === undefined) throw new Error(`${finding.action} left no row`)
  recordSettings(tx, actor, finding, key)
  const errors = await superuserErrors(tx, engine, actor, [finding], hadSuperuser)
  errors.throwIfAny()
  const change = changeOf(finding, key)
  if (change !== undefined) audit(tx, { actor, action: change.action, changes: [change], requestId })
  return key
}

async function refuseGone(tx: EngineTx, { username, impersonator }: Actor): Promise<never> {
  const realPk = impersonator?.pk ?? null
  if (realPk !== null && (await actorOfUser(tx, { pk: realPk })) !== null)
    throw new Problem('permission_denied', `You may no longer impersonate ${username}.`)
  throw new Problem('not_authenticated', 'The user of this access token is gone, or no longer active.')
}

const notFound = ({ model }: Step) => new Problem('not_found', `There is no such ${model.displayName}.`)

export const busy = (cause: unknown) =>
  new Problem('unavailable', 'Others are writing the same. Nothing was changed; try again shortly.', {
    retryAfterS: 1,
    cause,
  })

export function asProblem(error: unknown): unknown {
  if (!(error instanceof CommitUnknown)) return statementProblem(error)
  const detail = 'The database went away while this was saved. Look whether it was before trying again.'
  return new Problem('unavailable', detail, { retryAfterS: 1, cause: error })
}
