import type { Tx } from '../db/client.ts'
import { stillActing } from '../models/actor.ts'
import type { Actor } from '../permissions.ts'
import { lookAhead } from './ahead.ts'
import type { Plan } from './compile.ts'
import { decidesRights, forbidden, superuserFaults } from './escalation.ts'
import { type Engine, type Finding, inspect, verbOf } from './inspect.ts'
import { type Change, changeOf, lock, perform } from './perform.ts'
import { faultLines, Refusal } from './refusal.ts'
import type { Keys } from './resolve.ts'

export type ApplyResult = {
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
 * Applies a plan inside the caller's transaction, entry by entry, in document order.
 *
 * @param how whoever is `trusting` knows that `check` found nothing a moment ago: references and unique values are left to
 *   the database's constraints, which know less of what to say. A refusal is then to be asked for again, without trust
 * @throws {Refusal} when an entry has a fault that only the database could show, or the actor may not
 */
export async function apply(
  tx: Tx,
  engine: Engine,
  plan: Plan,
  submitter: Actor,
  conditions: Conditions,
  { trusting }: { readonly trusting: boolean } = { trusting: false },
): Promise<ApplyResult> {
  if (plan.faults.any) throw new Refusal('invalid', faultLines(plan.faults))
  lock(tx, plan.steps)
  // Those for whom he waited to decide about rights may have decided about his.
  const acting = submitter.pk !== null && plan.steps.some(decidesRights) ? stillActing(tx, submitter) : submitter
  const ahead = lookAhead(tx, engine.registry, plan.steps, { draw: true, trusting })
  const [looks, actor] = await Promise.all([ahead, acting])
  if (actor === null)
    throw new Refusal('permission_denied', [`rolled back: ${submitter.username} may no longer do this, or is gone`])
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
  return { logs, changes, generated }
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
  const expected = step.id === undefined ? undefined : expectedKeys[step.id]
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
