import type { EngineTx } from '../db/engine-tx.ts'
import type { Actor } from '../permissions.ts'
import type { Plan } from '../plan/compile.ts'
import type { Conditions, Engine } from '../plan/engine.ts'
import { entryKey, type Finding, inspect } from '../plan/inspect.ts'
import type { Keys } from '../plan/resolve.ts'
import { openSnapshot } from '../plan/snapshot.ts'
import { setOwner } from '../plan/statements.ts'
import { type ActorKeys, currentActor } from '../rights/actor.ts'
import { forbidden, hasSuperuser, originOf, superuserErrors } from '../rights/policy.ts'
import { recordSettings } from '../rights/settings.ts'
import type { AuditedChange } from './audit.ts'
import { conflictsOf } from './conflicts.ts'
import { changeOf, execute, lock } from './execute.ts'
import { ownershipOf } from './ownership.ts'
import { addKeyError, alreadyExists, denied, errorLines, Refusal, rowName } from './refusal.ts'

export type ApplyResult = {
  /** The submitter, with the rights at the time of the apply. */
  readonly actor: Actor
  /** One sentence for each entry, in document order. */
  readonly logs: readonly string[]
  readonly changes: readonly AuditedChange[]
  /** Values that the service generated, by entry id and field. */
  readonly generated: Readonly<Record<string, Readonly<Record<string, string>>>>
}

/**
 * Applies a plan in the caller's transaction, entry by entry, in document order.
 *
 * @param submitter read again after the locks are taken: a transaction that held them may have changed the submitter's
 *   rights
 * @throws {Refusal} when an entry has an error, or the submitter may not execute it
 */
export async function apply(
  tx: EngineTx,
  engine: Engine,
  plan: Plan,
  submitter: Actor | ActorKeys,
  conditions: Conditions,
): Promise<ApplyResult> {
  if (plan.errors.any) throw new Refusal('invalid', errorLines(plan.errors))
  lock(tx, plan.steps)
  const [snapshot, actor] = await Promise.all([
    openSnapshot(tx, engine.registry, plan.steps, { takesKeys: true }),
    currentActor(tx, submitter),
  ])
  if (actor === null) throw new Refusal('permission_denied', ['rolled back: the submitter is gone or no longer active'])
  const hadSuperuser = await hasSuperuser(tx, actor, plan.steps)
  const origin = originOf(actor, conditions.owner)
  const keys: Keys = new Map()
  const logs: string[] = []
  const changes: AuditedChange[] = []
  const findings: Finding[] = []
  const generated: Record<string, Readonly<Record<string, string>>> = {}
  for (const step of plan.steps) {
    const finding = await inspect(tx, engine, snapshot, step, keys)
    findings.push(finding)
    addKeyError(finding, conditions)
    refuse(finding, actor, await forbidden(tx, engine, actor, finding), conditions)
    const ownership = ownershipOf(finding, actor, conditions)
    const conflicts = await conflictsOf(tx, finding, plan.steps, ownership, conditions)
    if (conflicts.length > 0)
      throw new Refusal(
        'conflict',
        conflicts.map((conflict) => `rolled back: ${conflict}`),
      )
    const key = await execute(tx, engine, finding, origin)
    recordSettings(tx, actor, finding, key)
    const { becomes, note } = ownership
    if (becomes !== undefined && finding.row !== undefined) tx.send(setOwner(step.model, finding.row.pk, becomes))
    if (step.id !== undefined && key !== undefined) keys.set(step.id, entryKey(finding, key, finding.row === undefined))
    if (step.id !== undefined && Object.keys(finding.generated).length > 0) generated[step.id] = finding.generated
    logs.push(sentence(finding, key), ...(note === undefined ? [] : [note]))
    const change = changeOf(finding, key, becomes !== undefined)
    if (change !== undefined) changes.push(change)
  }
  const errors = await superuserErrors(tx, engine, actor, findings, hadSuperuser)
  if (errors.any) throw new Refusal('invalid', errorLines(errors))
  return { actor, logs, changes, generated }
}

/** In the order of `check`: a denial hides everything else, and `If-None-Match: *` goes before other errors. */
function refuse(finding: Finding, actor: Actor, why: string | null, { createOnly }: Conditions): void {
  if (why !== null) throw new Refusal('permission_denied', [`rolled back: ${denied(actor.username, finding, why)}`])
  if (createOnly && finding.row !== undefined)
    throw new Refusal('precondition_failed', [`rolled back: ${alreadyExists(finding)}`])
  if (finding.errors.any) throw new Refusal('invalid', errorLines(finding.errors))
}

function sentence(finding: Finding, key: string | number | undefined): string {
  const { step, action, changed } = finding
  const what = rowName(finding)
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
