import { z } from 'zod'
import { retrying } from '../db/backoff.ts'
import { CommitUnknown, type Db, patient, type Tx, transaction } from '../db/client.ts'
import { type EngineTx, withEngine } from '../db/engine-tx.ts'
import { isCollision, statementProblem } from '../db/errors.ts'
import { ErrorList, Problem } from '../errors.ts'
import { uuid7 } from '../ids.ts'
import { isObject } from '../json-object.ts'
import type { Actor } from '../permissions.ts'
import { compile, type Plan } from '../plan/compile.ts'
import { type Acknowledgements, type Conditions, type Engine, nothingAllowed, unconditional } from '../plan/engine.ts'
import { columnOf, quoted } from '../plan/statements.ts'
import { actorOfUser } from '../rights/actor.ts'
import { apply } from './apply.ts'
import { audit } from './audit.ts'
import type { Objection } from './finding.ts'
import { Overtaken, Refusal } from './refusal.ts'

/** Writes one row for a request: the apply of one entry, in a transaction of its own. */

export type Write = {
  readonly model: string
  /** `create` needs a model with UUID keys: integer keys come from the table's sequence. `remove` has the fields that name the row. */
  readonly mode:
    | { readonly create: true }
    | { readonly change: string | number }
    | { readonly remove: Readonly<Record<string, string | number>> }
  /** The body, unless the row is removed. Fields that it omits are kept, or get their defaults in a new row. */
  readonly fields?: unknown
  /** Errors of the body's text and of headers, reported with the others. */
  readonly textErrors?: ErrorList | undefined
  /** The effects on other rows that the request acknowledges. It names the row that it takes over. */
  readonly allow?: Pick<Acknowledgements, 'grants'> | undefined
  /** All conditions, in place of these. */
  readonly conditions?: Conditions
  readonly requestId: string
  readonly precondition?: Precondition | undefined
}

/** @returns the reason why the row, which is locked, is not as the caller has seen it; null when it is */
type Precondition = (tx: Tx) => Promise<string | null>

/**
 * Writes or deletes one row, and deletes the rows that follow from it.
 *
 * @param read reads the answer before the commit, so that a failed read rolls the write back
 * @throws {Problem} `permission_denied`, `not_found` for a row to change or delete that does not exist,
 *   `precondition_failed`, `invalid` with all fields that have errors, `conflict` for a row of another owner or one that others
 *   refer to, `unavailable`
 */
export async function write<Answer>(
  db: Db,
  engine: Engine,
  caller: Actor,
  { allow, ...request }: Write,
  read: (tx: Tx, key: string | number) => Promise<Answer>,
): Promise<Answer> {
  const acknowledged = { ...nothingAllowed, takeover: true, ...allow }
  const { requestId, precondition, conditions = { ...unconditional, allow: acknowledged } } = request
  const plan = planOf(engine, request)
  const attempt = () =>
    transaction(
      db,
      async (tx) => {
        const key = await withEngine(tx, async (engineTx) => {
          const objecting = async (): Promise<Objection[]> => {
            // The judge reports a missing row.
            const isThere = !('create' in request.mode) && (await lockRow(engineTx, plan))
            const text = isThere && precondition !== undefined ? await precondition(tx) : null
            return text === null ? [] : [{ is: 'stated', reason: 'precondition_failed', text }]
          }
          const applying = apply(engineTx, engine, plan, caller, conditions, { objecting })
          const { audited, actor, key } = await applying.catch((error) => explainGone(engineTx, caller, error))
          const [first] = audited
          if (first !== undefined) audit(engineTx, { actor, action: first.action, changes: audited, requestId })
          return key
        })
        if (key === undefined) throw new Error('a write left no row')
        return read(tx, key)
      },
      patient,
    )
  try {
    return await retrying(attempt, { ...tries, canRetry })
  } catch (error) {
    if (canRetry(error)) throw busy(error)
    throw error instanceof Refusal ? error.problem : asProblem(error)
  }
}

/** The plan of one entry, whose row must exist unless the entry creates it. */
function planOf({ registry }: Engine, { model, mode, fields: body, textErrors = new ErrorList() }: Write): Plan {
  const fields = 'remove' in mode ? {} : body
  const attrs = isObject(fields) ? fields : {}
  const errors = new ErrorList().include([textErrors])
  if (attrs !== fields) errors.add([], 'wrong_type', 'Must be an object.')
  const state = 'create' in mode ? 'must_created' : 'remove' in mode ? 'absent' : 'present'
  const identifiers = 'remove' in mode ? mode.remove : { pk: 'create' in mode ? uuid7() : mode.change }
  const entries = [{ model, state, identifiers, attrs } as const]
  const compiled = compile({ version: 1, metadata: { name: model }, entries }, registry, () => [])
  // No row can have such a name.
  if ('remove' in mode && compiled.errors.any)
    throw new Problem('not_found', `There is no such ${registry.byName(model)?.displayName ?? model}.`)
  const steps = compiled.steps.map((step) => ('create' in mode ? step : { ...step, mustExist: true as const }))
  return { steps, errors: errors.include([compiled.errors]) }
}

const tries = { max: 5, stepMs: 5 }

/** Whether another transaction took the name or a referenced row since it was judged, or collided: a retry reports the field. */
const canRetry = (error: unknown) => error instanceof Overtaken || isCollision(error)

/**
 * Locks the row to change or delete. A document may delete it by another name, and holds no lock of this one.
 *
 * @returns whether there is such a row
 */
async function lockRow(tx: EngineTx, { steps: [step] }: Plan): Promise<boolean> {
  if (step === undefined) return false
  const { model, identifiers } = step
  const where = [...identifiers.keys()].map((name, index) => `${quoted(columnOf(model, name))} = $${index + 1}`)
  const text = `SELECT pk FROM ${quoted(model.table)} WHERE ${where.join(' AND ')} FOR UPDATE`
  return (await tx.query(z.object({}), { text, values: [...identifiers.values()] })).length > 0
}

/** The actor with the rights of this moment. A caller whose rights are gone is not authenticated any more. */
async function explainGone(tx: EngineTx, { username, impersonator }: Actor, error: unknown): Promise<never> {
  if (!(error instanceof Refusal) || error.objections[0]?.is !== 'gone') throw error
  const realPk = impersonator?.pk ?? null
  if (realPk !== null && (await actorOfUser(tx, { pk: realPk })) !== null)
    throw new Problem('permission_denied', `You may no longer impersonate ${username}.`)
  throw new Problem('not_authenticated', 'The user of this access token is gone, or no longer active.')
}

const busy = (cause: unknown) =>
  new Problem('unavailable', 'Others are writing the same. Nothing was changed; try again shortly.', {
    retryAfterS: 1,
    cause,
  })

function asProblem(error: unknown): unknown {
  if (!(error instanceof CommitUnknown)) return statementProblem(error)
  const detail = 'The database went away while this was saved. Look whether it was before trying again.'
  return new Problem('unavailable', detail, { retryAfterS: 1, cause: error })
}
