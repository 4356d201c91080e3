import type { Actor } from '../permissions.ts'
import { maxLabelled } from '../plan/claims.ts'
import { mayKnow } from '../plan/effect.ts'
import type { Conditions } from '../plan/engine.ts'
import type { Loader } from '../plan/load.ts'
import { ownerFor, prunedOwners } from '../plan/owners.ts'
import type { Finding } from './finding.ts'
import { unnamedBy } from './follow.ts'

/** An object of an owner of the document that the document does not name. */
export type Unnamed = {
  readonly model: string
  readonly displayName: string
  /** The identifiers, like those in changes. */
  readonly key: Readonly<Record<string, string>>
  readonly name: string
  readonly owner: string
}

/**
 * The objects that the owners of the entries manage beside the document, for a plan with `reset`, whose document shall name all.
 * An apply does not change them, and a document that prunes deletes them.
 *
 * @returns those that the submitter may know, as many as a document may prune at most; none for a document that prunes; undefined
 *   when they were not requested
 */
export async function readUnnamed(
  loader: Loader,
  findings: readonly Finding[],
  actor: Actor,
  conditions: Conditions,
): Promise<readonly Unnamed[] | undefined> {
  if (conditions.mode !== 'plan' || !conditions.reset) return undefined
  const named = findings.flatMap(({ cause, step }) => (cause === 'entry' ? ownerFor(step, conditions) : null))
  const owners = new Set([...named, conditions.owner].filter((owner) => owner !== null))
  if (owners.size === 0) return undefined
  const pruned = prunedOwners(conditions)
  const left = [...owners].filter((owner) => !pruned.includes(owner))
  const rows = await unnamedBy(loader, findings, left)
  return rows
    .filter((row) => mayKnow(actor, row.model, row.owner))
    .slice(0, maxLabelled)
    .map(({ model, name, owner }) => {
      const [[identifier = 'name'] = []] = model.identifiers
      const key = { [identifier]: name }
      return { model: model.name, displayName: model.displayName, key, name, owner: String(owner) }
    })
}
