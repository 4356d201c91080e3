import type { EngineReader } from '../db/engine-tx.ts'
import { ErrorList, Problem } from '../errors.ts'
import { sentence } from '../messages.ts'
import type { Actor } from '../permissions.ts'
import type { Plan, Step } from '../plan/compile.ts'
import { dueStep } from '../plan/conditions.ts'
import type { Conditions, Engine } from '../plan/engine.ts'
import { orphansOf } from '../plan/holders.ts'
import { entryKey, type Finding, inspect } from '../plan/inspect.ts'

import { resolveNames } from '../plan/names.ts'
import { renamed } from '../plan/rename.ts'

import { type Keys, pending } from '../plan/resolve.ts'
import { openSnapshot } from '../plan/snapshot.ts'
import { forbidden } from '../rights/policy.ts'
import { turns } from '../turns.ts'
import { conflictsOf } from './conflicts.ts'
import { pruneConflict, prunedBy, removal, replacedOf } from './follow.ts'
import { ownershipOf } from './ownership.ts'
import { addKeyError, alreadyExists, bothThere, denied } from './refusal.ts'

/**
 * What the API does before it enqueues: the reads and decisions of the worker, without writing. It reports all errors
 * that the submitter can fix at once. The worker repeats the checks, because rows may change in between.
 *
 * @throws {Problem} `permission_denied`, `invalid`, `precondition_failed` or `conflict`
 */
export async function check(
  reader: EngineReader,
  engine: Engine,
  plan: Plan,
  actor: Actor,
  conditions: Conditions,
): Promise<readonly Finding[]> {
  const keys: Keys = new Map()
  const findings: Finding[] = []
  const steps = await resolveNames(reader, engine.registry, plan.steps, actor)
  const snapshot = await openSnapshot(reader, engine.registry, steps, { takesKeys: false })
  const takeTurns = turns()
  for (const named of steps) {
    await takeTurns()
    const step = await dueStep(snapshot.unwritten, engine.registry, named, keys)
    if (step === null) {
      // The apply may find what an earlier entry writes, so that its conditions are true there.
      if (named.id !== undefined) keys.set(named.id, { key: pending, isNew: true, columnValue: () => undefined })
      continue
    }
    const finding = await inspect(reader, engine, snapshot, await renamed(reader, step), keys)
    findings.push(finding)
    const own = finding.isForeign ? undefined : finding.row
    if (step.id !== undefined) keys.set(step.id, entryKey(finding, own?.pk ?? pending, own === undefined))
  }
  const pruned = await prunedBy(reader, engine.registry, findings, conditions)
  const following: Finding[] = []
  for (const row of pruned) following.push(await inspect(reader, engine, snapshot, removal(row), keys))
  const orphans = conditions.replaceProvider
    ? await orphansOf(reader, engine.registry, [...findings, ...following])
    : []
  const follow = replacedOf(orphans, findings, conditions).map(removal)
  for (const step of follow) following.push(await inspect(reader, engine, snapshot, step, keys))
  for (const finding of [...findings, ...following])
    refuseDenied(actor, finding, await forbidden(reader, engine, actor, finding))
  const both = findings.map(bothThere).filter((each) => each !== null)
  if (both.length > 0) throw new Problem('conflict', both.slice(0, maxConflicts).map(sentence).join(' '))
  for (const finding of findings) addKeyError(finding, conditions)
  const errors = new ErrorList().include([plan.errors, ...findings.map((finding) => finding.errors)])
  // `If-None-Match: *` is checked only for a document without errors of its own.
  if (!plan.errors.any) refuseExisting(findings, conditions)
  errors.throwIfAny()
  await refuseConflicts(reader, steps, [...findings, ...following], actor, conditions)
  const conflict = pruneConflict(pruned, conditions)
  if (conflict !== null) throw new Problem('conflict', sentence(conflict))
  return findings
}

export function refuseDenied(actor: Actor, finding: Finding, why: string | null): void {
  if (why !== null) throw new Problem('permission_denied', sentence(denied('You', actor, finding, why)))
}

function refuseExisting(findings: readonly Finding[], { createOnly }: Conditions): void {
  const existing = createOnly ? findings.find(({ row }) => row !== undefined) : undefined
  if (existing !== undefined) throw new Problem('precondition_failed', sentence(alreadyExists(existing)))
}

/** What the submitter has to acknowledge, of all entries at once. */
async function refuseConflicts(
  reader: EngineReader,
  steps: readonly Step[],
  findings: readonly Finding[],
  actor: Actor,
  conditions: Conditions,
): Promise<void> {
  const conflicts: string[] = []
  for (const finding of findings) {
    const ownership = ownershipOf(finding, actor, conditions)
    conflicts.push(...(await conflictsOf(reader, finding, steps, ownership, conditions)))
  }
  if (conflicts.length === 0) return
  const more = conflicts.length - maxConflicts
  const sentences = conflicts.slice(0, maxConflicts).map(sentence)
  throw new Problem('conflict', [...sentences, ...(more > 0 ? [`${more} more are not listed.`] : [])].join(' '))
}

/** An answer lists at most this many. */
const maxConflicts = 20
