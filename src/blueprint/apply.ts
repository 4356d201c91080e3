import type { Tx } from '../db/client.ts'
import { own } from '../json-object.ts'
import { type Acting, stillActing } from '../models/actor.ts'
import type { Actor } from '../permissions.ts'
import { lookAhead } from './ahead.ts'
import type { Plan } from './compile.ts'
import { decidesRights, forbidden, superuserFaults } from './escalation.ts'
import { type Engine, type Finding, inspect, verbOf } from './inspect.ts'
import { type Drawn, suppose } from './outright.ts'
import { type Change, changeOf, lock, perform } from './perform.ts'
import { faultLines, Refusal } from './refusal.ts'
import type { Keys } from './resolve.ts'

export type ApplyResult = {
  /** Who submitted it, with what he may do by now. */
  readonly actor: Actor
  /** Sentences in order, one for each thing that happened. */
  readonly logs: readonly string[]
  readonly changes: readonly Change[]
  /** Values that the service made up, by entry and member. */
  readonly generated: Readonly<Record<string, Readonly<Record<string, string>>>>
}

/** What must hold beside the document. */
export type Conditions = {
  /** `If-None-Match: *`: nothing that the document names may be there yet. */
  readonly createOnly: boolean
  /** Keys that entries must turn out to have, by entry id. */
  readonly expectedKeys: Readonly<Record<string, number>>
}

/**
 * How much of what the check saw a moment ago is taken for true. What comes of trust is either right or refused, and a
 * refusal has to be asked for again, without trust.
 *
 * - `looking`: nothing; everything is looked at.
 * - `trusting`: references and unique values are left to the database's constraints, which know less of what to say.
 * - `drawn`: nothing is there yet, and these are the keys that rows will have. Nothing is asked: whoever sends it sees to
 *   the names' locks, and that the submitter still may.
 */
export type Way = 'looking' | 'trusting' | { readonly drawn: Drawn }

/**
 * Applies a plan inside the caller's transaction, entry by entry, in document order.
 *
 * @param submitter by his key alone: what he may do is read here
 * @throws {Refusal} when an entry has a fault that only the database could show, or the actor may not
 */
export async function apply(
  tx: Tx,
  engine: Engine,
  plan: Plan,
  submitter: Actor | Acting,
  conditions: Conditions,
  way: Way = 'looking',
): Promise<ApplyResult> {
  if (plan.faults.any) throw new Refusal('invalid', faultLines(plan.faults))
  const isOutright = typeof way === 'object'
  if (!isOutright) lock(tx, plan.steps)
  // Asked behind the locks: those for whom he waited to decide about rights may have decided about his.
  const isKnown = 'permissions' in submitter && (submitter.pk === null || !plan.steps.some(decidesRights))
  const acting = isKnown ? submitter : stillActing(tx, submitter)
  const ahead = isOutright
    ? suppose(plan.steps, way.drawn)
    : lookAhead(tx, engine.registry, plan.steps, { draw: true, trusting: way === 'trusting' })
  const [looks, actor] = await Promise.all([ahead, acting])
  if (actor === null) throw new Refusal('permission_denied', ['rolled back: the submitter is gone or no longer active'])
  const keys: Keys = new Map()
  const logs: string[] = []
  const changes: Change[] = []
  const findings: Finding[] = []
  const generated: Record<string, Readonly<Record<string, string>>> = {}
  for (const step of plan.steps) {
    const finding = await inspect(tx, engine, step, keys, looks.get(step))
    findings.push(finding)
    refuse(finding, actor, await forbidden(tx, engine, actor, finding), conditions)
    const key = await perform(tx, engine, finding)
    checkKey(finding, key, conditions)
    if (step.id !== undefined && key !== undefined) keys.set(step.id, { key, isNew: finding.row === undefined })
    if (step.id !== undefined && Object.keys(finding.generated).length > 0) generated[step.id] = finding.generated
    logs.push(sentence(finding, key))
    const change = changeOf(finding, key)
    if (change !== undefined) changes.push(change)
  }
  const lost = await superuserFaults(tx, findings)
  if (lost.any) throw new Refusal('invalid', faultLines(lost))
  return { actor, logs, changes, generated }
}

/** In the order in which `check` refuses: who may not is told nothing else, and a taken name goes before other faults. */
function refuse(finding: Finding, actor: Actor, why: string | null, { createOnly }: Conditions): void {
  const { faults, step, label } = finding
  const what = `${step.model.noun} ${JSON.stringify(label)}`
  if (why !== null)
    throw new Refusal('permission_denied', [
      `rolled back: ${actor.username} may not ${verbOf(finding)} ${what}: ${why}`,
    ])
  if (createOnly && finding.row !== undefined) {
    throw new Refusal('precondition_failed', [
      `rolled back: ${what} is there already, and If-None-Match: * allows only to create`,
    ])
  }
  if (faults.any) throw new Refusal('invalid', faultLines(faults))
}

function checkKey({ step }: Finding, key: string | number | undefined, { expectedKeys }: Conditions): void {
  const expected = own(expectedKeys, step.id)
  if (expected !== undefined && expected !== key) {
    throw new Refusal('invalid', [
      `rolled back: ${step.model.noun} has the key ${key}, but the submission says ${expected}`,
    ])
  }
}

function sentence({ step, action, label, changed }: Finding, key: string | number | undefined): string {
  const what = `${step.model.noun} ${JSON.stringify(label)}`
  switch (action) {
    case 'create':
      return `${what} created (pk ${key})`
    case 'update':
      return `${what} updated: ${changed.join(', ')}`
    case 'unchanged':
      return `${what} unchanged`
    case 'delete':
      return `${what} deleted (pk ${key})`
    case 'leave':
      return step.state === 'absent' ? `${what} was not there` : `${what} left as it is`
    default:
      return action satisfies never
  }
}
