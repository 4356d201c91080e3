import type { EngineTx } from '../db/engine-tx.ts'
import type { Actor } from '../permissions.ts'
import type { Plan, Step } from '../plan/compile.ts'
import { dueStep, skippedStep } from '../plan/conditions.ts'
import type { Conditions, Engine, Mode } from '../plan/engine.ts'
import { orphansOf } from '../plan/holders.ts'
import { entryKey, type Finding, inspect } from '../plan/inspect.ts'

import { hasNames, resolveNames } from '../plan/names.ts'
import { renamed } from '../plan/rename.ts'

import type { Keys } from '../plan/resolve.ts'
import { openSnapshot } from '../plan/snapshot.ts'
import { type ActorKeys, currentActor } from '../rights/actor.ts'
import { forbidden, hasSuperuser, originOf, superuserErrors } from '../rights/policy.ts'
import { recordSettings } from '../rights/settings.ts'
import { turns } from '../turns.ts'
import type { AuditedChange } from './audit.ts'
import { type Change, describeChange, digestOfEntry, fieldsAsText } from './changes.ts'
import { conflictsOf } from './conflicts.ts'
import { changeOf, execute, lock } from './execute.ts'
import { Losses, orphanLines, pruneConflict, prunedBy, removal, replacedOf, rowId } from './follow.ts'
import { ownershipOf } from './ownership.ts'
import { addKeyError, alreadyExists, bothThere, denied, errorLines, Refusal, rowName } from './refusal.ts'
import { fewer, refuseChanged } from './reviewed.ts'
import { shortSecrets } from './warnings.ts'
import { Writes } from './writes.ts'

export type ApplyResult = {
  /** The submitter, with the rights at the time of the apply. */
  readonly actor: Actor
  /** A sentence for each entry, in document order, then what follows from them. */
  readonly logs: readonly string[]
  /** One for each entry, and for each deletion that follows from them. */
  readonly changes: readonly Change[]
  /** Of each entry, in a plan and in the apply of a reviewed one: what it looked at, and what it does. */
  readonly digests: readonly string[]
  /** Of the entries that wrote something. */
  readonly audited: readonly AuditedChange[]
  /** Values that the service generated, by field, and by entry: its id, or the name of its row. */
  readonly generated: Readonly<Record<string, Readonly<Record<string, string>>>>
}

/** Entries that were applied, of all that the document has. */
export type Progress = { readonly done: number; readonly total: number }
export type OnProgress = (progress: Progress) => void

type Options = {
  /** The digests of the plan that was reviewed: anything else is refused. */
  readonly reviewed?: readonly string[] | undefined
  /** Called after each entry. */
  readonly onProgress?: OnProgress | undefined
}

/**
 * Applies a plan in the caller's transaction, entry by entry, in document order. In the mode `plan` it does the same, and
 * the caller rolls back: only what a rollback does not undo is left out (docs/adr/0040-a-plan-is-an-apply-that-is-rolled-back.md).
 *
 * @param submitter read again after the locks are taken: a transaction that held them may have changed the submitter's
 *   rights
 * @throws {Refusal} when an entry has an error, or the submitter may not execute it
 */
export async function apply(
  outer: EngineTx,
  engine: Engine,
  plan: Plan,
  submitter: Actor | ActorKeys,
  conditions: Conditions,
  { reviewed, onProgress = () => {} }: Options = {},
): Promise<ApplyResult> {
  if (plan.errors.any) throw new Refusal('invalid', errorLines(plan.errors))
  const { mode } = conditions
  const { registry } = engine
  const losses = new Losses(registry)
  const writes = new Writes(outer, registry, losses.read)
  const { tx } = writes
  await lock(tx, plan.steps)
  // Without names, nothing is awaited before the snapshot: it shares its round trip.
  const early = hasNames(plan.steps) ? { actor: await currentActor(tx, submitter) } : undefined
  const steps = early ? await resolveNames(tx, registry, plan.steps, early.actor) : plan.steps
  const [snapshot, actor] = await Promise.all([
    openSnapshot(tx, registry, steps, { takesKeys: mode === 'apply' }),
    early ? early.actor : currentActor(tx, submitter),
  ])
  if (actor === null) throw new Refusal('permission_denied', ['rolled back: the submitter is gone or no longer active'])
  const hadSuperuser = await hasSuperuser(tx, actor, steps)
  const origin = originOf(actor, conditions.owner)
  const keys: Keys = new Map()
  const tags: Map<unknown, string> = new Map()
  const logs: string[] = [...(plan.skipped ?? [])]
  const changes: Change[] = []
  const digests: string[] = []
  const audited: AuditedChange[] = []
  const findings: Finding[] = []
  const generated: Record<string, Readonly<Record<string, string>>> = {}
  const made = new Set<string>()
  const isCompared = mode === 'plan' || reviewed !== undefined
  const review = () => refuseChanged(findings, digests, reviewed)
  const takeTurns = turns()
  const applyStep = async (step: Step, conditions: Conditions) => {
    const finding = await inspect(tx, engine, snapshot, await renamed(tx, step), keys)
    findings.push(finding)
    const ownership = ownershipOf(finding, actor, conditions)
    const change = describeChange(finding, tags, ownership.becomes)
    changes.push(change)
    if (isCompared) digests.push(digestOfEntry(finding, change, engine.keyring))
    try {
      addKeyError(finding, conditions)
      refuse(finding, actor, await forbidden(tx, engine, actor, finding), conditions)
      const conflicts = await conflictsOf(tx, finding, steps, ownership, conditions)
      if (conflicts.length > 0)
        throw new Refusal(
          'conflict',
          conflicts.map((conflict) => `rolled back: ${conflict}`),
        )
    } catch (error) {
      // What changed since the review goes before the errors that follow from it.
      if (error instanceof Refusal && error.reason !== 'permission_denied') review()
      throw error
    }
    losses.expect(finding)
    const key = execute(writes, engine, finding, origin, { mode, owner: ownership.becomes })
    snapshot.wrote(finding)
    recordSettings(tx, actor, finding, key)
    if (finding.action === 'create' && key !== undefined) made.add(rowId(step.model, key))
    if (step.id !== undefined && key !== undefined) {
      const isNew = finding.row === undefined
      keys.set(step.id, entryKey(finding, key, isNew))
      if (isNew) tags.set(key, `!KeyOf ${step.id}`)
    }
    if (Object.keys(finding.generated).length > 0) {
      const entry = step.id ?? rowName(finding)
      generated[entry] = { ...generated[entry], ...finding.generated }
    }
    const { becomes, note } = ownership
    logs.push(sentence(finding, change, key, mode), ...shortSecrets(finding), ...(note === undefined ? [] : [note]))
    const written = changeOf(finding, key, becomes !== undefined)
    if (written !== undefined) audited.push(written)
    onProgress({ done: findings.length, total: steps.length })
    await takeTurns()
  }
  for (const step of steps) {
    const due = await dueStep(snapshot.unwritten, registry, step, keys)
    if (due === null) logs.push(skippedStep(step))
    else await applyStep(due, conditions)
  }
  const pruned = await prunedBy(tx, registry, findings, conditions, made)
  const conflict = pruneConflict(pruned, conditions)
  if (conflict !== null) {
    review()
    throw new Refusal('conflict', [`rolled back: ${conflict}`])
  }
  if (pruned.length > 0) await lock(tx, pruned.map(removal))
  for (const row of pruned) await applyStep(removal(row), conditions)
  if (mode === 'plan' && pruned.length > 0)
    logs.push(`prune would delete ${pruned.length}: apply it with Gatewright-Allow: deletes=${pruned.length}`)
  const orphansNow = () => orphansOf(tx, registry, findings)
  const replaced = replacedOf(await orphansNow(), findings, conditions)
  if (replaced.length > 0) {
    await lock(tx, replaced.map(removal))
    // Another transaction may have taken one of them before it was locked.
    const still = new Set(replacedOf(await orphansNow(), findings, conditions).map(({ pk }) => pk))
    for (const row of replaced.filter(({ pk }) => still.has(pk)))
      await applyStep(removal(row), { ...conditions, createOnly: false })
  }
  logs.push(...orphanLines(await orphansNow(), conditions))
  writes.flush()
  logs.push(...(await losses.lines(tx, mode)))
  review()
  if (reviewed !== undefined && reviewed.length > digests.length) throw fewer(reviewed.length - digests.length)
  const errors = await superuserErrors(tx, engine, actor, findings, hadSuperuser)
  if (errors.any) throw new Refusal('invalid', errorLines(errors))
  return { actor, logs, changes, digests, audited, generated }
}

/** In the order of `check`: a denial hides everything else, and `If-None-Match: *` goes before other errors. */
function refuse(finding: Finding, actor: Actor, why: string | null, { createOnly }: Conditions): void {
  if (why !== null)
    throw new Refusal('permission_denied', [`rolled back: ${denied(actor.username, actor, finding, why)}`])
  const both = bothThere(finding)
  if (both !== null) throw new Refusal('conflict', [`rolled back: ${both}`])
  if (createOnly && finding.row !== undefined)
    throw new Refusal('precondition_failed', [`rolled back: ${alreadyExists(finding)}`])
  if (finding.errors.any) throw new Refusal('invalid', errorLines(finding.errors))
}

function sentence(finding: Finding, change: Change, key: string | number | undefined, mode: Mode): string {
  const { step, action } = finding
  const [[identifier = ''] = []] = step.identifiers
  const what =
    step.rename === 'old' ? `${step.model.displayName} ${JSON.stringify(step.attrs.get(identifier))}` : rowName(finding)
  const [done, withKey] = mode === 'plan' ? ['would be ', ''] : ['', ` (pk ${key})`]
  switch (action) {
    case 'create':
      return `${what} ${done}created${withKey}`
    case 'update':
      return `${what} ${done}updated: ${fieldsAsText(change, finding, mode)}`
    case 'unchanged':
      return `${what} unchanged`
    case 'delete':
      return `${what} ${done}deleted${withKey}`
    case 'leave':
      if (step.state !== 'absent') return `${what} left as it is`
      return mode === 'plan' ? `${what} is not there` : `${what} was not there`
    default:
      return action satisfies never
  }
}
