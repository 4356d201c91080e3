import type { Conditions } from './engine.ts'
import type { Step } from './step.ts'

/** The labels under which a document manages rows (docs/adr/0073-entries-have-owners.md). */

/** The label under which the submitter manages the row of an entry: its own, or that of the request; null without one. */
export const ownerFor = ({ owner }: Pick<Step, 'owner'>, request: Pick<Conditions, 'owner'>): string | null =>
  owner === undefined ? request.owner : owner

/** The owners whose rows are deleted where no entry names them. */
export function prunedOwners({ prune, owner }: Pick<Conditions, 'prune' | 'owner'>): readonly string[] {
  if (typeof prune !== 'boolean') return [...new Set(prune)]
  return prune && owner !== null ? [owner] : []
}
