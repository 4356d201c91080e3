import { CommitUnknown, type Db, type Tx, transaction } from '../db/client.ts'
import { isCollision, lonelyProblem } from '../db/failures.ts'
import { Faults, Problem } from '../errors.ts'
import { uuid7 } from '../ids.ts'
import { isObject } from '../json-object.ts'
import { actorOfUser, stillActing } from '../models/actor.ts'
import type { Actor } from '../permissions.ts'
import { audit } from './audit.ts'
import { refuseActor } from './check.ts'
import { compile, type Plan, type Step } from './compile.ts'
import { forbidden, superuserFaults } from './escalation.ts'
import { type Engine, inspect } from './inspect.ts'
import { pauseBeforeRetry } from './pause.ts'
import { changeOf, lock, perform } from './perform.ts'
import { Refusal } from './refusal.ts'

/** One row as a request writes it. */
export type Write = {
  /** The model's name. */
  readonly model: string
  /** `create` needs a model with uuid keys; a number would be the database's to give. */
  readonly mode: { readonly create: true } | { readonly change: string | number }
  /** The body. Members that it does not have stay as they are, or get their defaults. */
  readonly members: unknown
  /** What reading the body showed already: told with the others. */
  readonly textFaults?: Faults | undefined
  readonly requestId: string
}

/** Those that collide are tried again this often, each time a little later. */
const maxTries = 5

/**
 * Writes one row in a transaction of its own, with its audit row, by the same steps as a blueprint's entry: what holds
 * there holds here.
 *
 * @param read what to answer of the row, read before the commit: whoever gets no answer knows that nothing is certain
 * @throws {Problem} `permission_denied`, `invalid` naming all members that are wrong, `not_found` for a change of
 *   nothing, `unavailable`
 */
export async function write<Answer>(
  db: Db,
  engine: Engine,
  actor: Actor,
  request: Write,
  read: (tx: Tx, key: string | number) => Promise<Answer>,
): Promise<Answer> {
  const plan = planOf(engine, request)
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await transaction(db, async (tx) => read(tx, await attemptOnce(tx, engine, actor, request, plan)))
    } catch (error) {
      // Somebody else took the name, or what was referred to, in between: another look tells the member.
      const isTold = error instanceof Refusal || isCollision(error)
      if (!isTold) throw asProblem(error)
      if (attempt === maxTries) throw busy(error)
      await pauseBeforeRetry(attempt, 5)
    }
  }
}

function planOf({ registry }: Engine, { model, mode, members }: Write): Plan {
  const faults = new Faults()
  const attrs = isObject(members) ? members : {}
  if (attrs !== members) faults.add([], 'Must be an object.')
  const identifiers = { pk: 'create' in mode ? uuid7() : mode.change }
  const entry = { model, state: 'present', identifiers, attrs } as const
  const plan = compile({ version: 1, metadata: { name: model }, entries: [entry] }, registry, () => [])
  return { steps: plan.steps, faults: faults.include([plan.faults]) }
}

async function attemptOnce(
  tx: Tx,
  engine: Engine,
  caller: Actor,
  { mode, textFaults, requestId }: Write,
  plan: Plan,
): Promise<string | number> {
  const [step] = plan.steps
  if (step === undefined) throw new Error(`there is no such model: ${JSON.stringify(plan.faults.tree())}`)
  lock(tx, plan.steps)
  // Sent together, run in order: what the caller may do is read after the lock was granted.
  const acting = caller.pk === null ? caller : stillActing(tx, caller)
  const [still, finding] = await Promise.all([acting, inspect(tx, engine, step, new Map())])
  const actor = still ?? (await refuseGone(tx, caller))
  if ('change' in mode && finding.row === undefined) throw nothingThere(step)
  refuseActor(finding, await forbidden(tx, engine, actor, finding))
  new Faults().include([textFaults ?? new Faults(), plan.faults, finding.faults]).throwIfAny()
  const key = await perform(tx, engine, finding)
  if (key === undefined) throw new Error(`${finding.action} left no row`)
  const lost = await superuserFaults(tx, [finding])
  lost.throwIfAny()
  const change = changeOf(finding, key)
  if (change !== undefined) audit(tx, actor, change.action, [change], requestId)
  return key
}

async function refuseGone(tx: Tx, { username, impersonator }: Actor): Promise<never> {
  const realPk = impersonator?.pk ?? null
  if (realPk !== null && (await actorOfUser(tx, { pk: realPk })) !== null)
    throw new Problem('permission_denied', `You may no longer act as ${username}.`)
  throw new Problem('not_authenticated', 'The user of this access token is gone, or no longer active.')
}

const nothingThere = ({ model }: Step) => new Problem('not_found', `There is no such ${model.noun}.`)

const busy = (cause: unknown) =>
  new Problem('unavailable', 'Others are writing the same. Nothing was changed; try again shortly.', {
    retryAfterS: 1,
    cause,
  })

function asProblem(error: unknown): unknown {
  if (!(error instanceof CommitUnknown)) return lonelyProblem(error)
  const detail = 'The database went away while this was saved. Look whether it was before trying again.'
  return new Problem('unavailable', detail, { retryAfterS: 1, cause: error })
}
