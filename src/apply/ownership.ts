import type { Actor } from '../permissions.ts'
import type { Effect } from '../plan/effect.ts'
import type { RequestConditions } from '../plan/engine.ts'
import type { Row } from '../plan/statements.ts'

/**
 * Who manages a row that is there: the label that an earlier apply put on it, and the user who made it
 * (docs/adr/0032-owners-are-labels.md).
 */
export type Ownership = {
  /** The label that it has. */
  readonly owner: string | null
  /** The user who made it: a name in quotes, or what is known of the user. */
  readonly maker: string
  /** The day on which it was made: `2026-11-23`. */
  readonly day: string
  /**
   * `ours`: the request names the same owner, or the submitter made the row and it has none. `made by another`: neither
   * has an owner, and another user made it. `taken over`: it was another's, which the submitter acknowledges.
   * `another's`: it is another's, and that is a conflict.
   */
  readonly is: 'ours' | 'made by another' | 'taken over' | "another's"
  /** The label that the row gets; undefined when it keeps its own. */
  readonly becomes?: string | null
}

/** @returns undefined for a new row, and for one of a model without owners */
export function ownershipOf(
  { step, row, isForeign, action }: Pick<Effect, 'step' | 'row' | 'isForeign' | 'action'>,
  { pk }: Pick<Actor, 'pk'>,
  { owner: label, allow }: RequestConditions,
): Ownership | undefined {
  if (!step.model.isLabelled || row === undefined || isForeign) return undefined
  const { createdBy, ...origin } = originOf(row)
  const isMaker = createdBy !== null && createdBy === pk
  const becomes = action === 'delete' || origin.owner === label ? {} : { becomes: label }
  if (origin.owner === label) {
    const isNoted = label === null && createdBy !== null && !isMaker && action !== 'leave'
    return { ...origin, is: isNoted ? 'made by another' : 'ours' }
  }
  if (origin.owner === null && isMaker) return { ...origin, ...becomes, is: 'ours' }
  return allow.takeover ? { ...origin, ...becomes, is: 'taken over' } : { ...origin, is: "another's" }
}

function originOf({ owner, created_by, created_by_name, created_at }: Row) {
  const createdBy = typeof created_by === 'number' ? created_by : null
  const name = typeof created_by_name === 'string' ? JSON.stringify(created_by_name) : undefined
  const maker = name ?? (createdBy === null ? 'an unknown user' : `user ${createdBy}, deleted since,`)
  const day = new Date(String(created_at)).toISOString().slice(0, 10)
  return { owner: typeof owner === 'string' ? owner : null, createdBy, maker, day }
}
