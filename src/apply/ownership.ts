import type { Model } from '../models/define.ts'
import { type Actor, allowsFor, isBound, mayNameUser, ownersFor, permissionsOf } from '../permissions.ts'
import type { Effect, Owners } from '../plan/effect.ts'
import { ownerFor, type RequestConditions } from '../plan/engine.ts'
import type { Row } from '../plan/statements.ts'
import type { Step } from '../plan/step.ts'

/**
 * The manager of an existing row: the label that an earlier apply put on it, and the user who made it
 * (docs/adr/0032-owners-are-labels.md).
 */
export type Ownership = {
  /** The label that it has. */
  readonly owner: string | null
  /** Its maker and time: `by "ada" on 2026-11-23`; `by another user` for a caller who may not view users. */
  readonly made: string
  /**
   * `ours`: the entry, or the request, names the same owner, or the submitter made the row and it has no owner. `made by
   * another`: neither has an owner, and another user made it. `taken over`: another owner had it, which the submitter
   * acknowledges. `another's`: another owner has it, and that is a conflict.
   */
  readonly is: 'ours' | 'made by another' | 'taken over' | "another's"
  /** The label that the row gets; undefined when it keeps its own. */
  readonly becomes?: string | null
}

/** @returns undefined for a new row, and for one of a model without owners */
export function ownershipOf(
  { step, row, isForeign, action }: Effect,
  actor: Actor,
  { allow, ...request }: RequestConditions,
): Ownership | undefined {
  if (!step.model.isLabelled || row === undefined || isForeign) return undefined
  const label = ownerFor(step, request)
  const { createdBy, ...origin } = originOf(row, actor)
  const isMaker = createdBy !== null && createdBy === actor.pk
  const becomes = action === 'delete' || origin.owner === label ? {} : { becomes: label }
  if (origin.owner === label) {
    const isNoted = label === null && createdBy !== null && !isMaker
    return { ...origin, is: isNoted ? 'made by another' : 'ours' }
  }
  if (origin.owner === null && isMaker) return { ...origin, ...becomes, is: 'ours' }
  return allow.takeover ? { ...origin, ...becomes, is: 'taken over' } : { ...origin, is: "another's" }
}

/** The owners for whose rows the submitter needs the permission: the present owner of a row, and the next one. */
export function ownersConcerned(effect: Effect, actor: Actor, request: RequestConditions): Owners {
  const { step, action } = effect
  if (!step.model.isLabelled) return undefined
  const ownership = ownershipOf(effect, actor, request)
  if (ownership === undefined) return action === 'leave' ? [] : [ownerFor(step, request)]
  const { owner, becomes } = ownership
  return becomes === undefined ? [owner] : [owner, becomes]
}

/** The label of a row afterwards. @param label that of a new row */
export const ownerAfter = (ownership: Ownership | undefined, label: string | null): string | null =>
  ownership === undefined ? label : ownership.becomes === undefined ? ownership.owner : ownership.becomes

/** A label for whose rows the actor may not write, with the owners for whose rows it may. */
type Claim = {
  readonly owner: string
  readonly owners: readonly string[]
  /** The first entry that names it; undefined for the label of the request. */
  readonly step?: Step
}

/**
 * The owners that a request names, itself or by an entry, for whose rows its caller, whose rights are bound to owners, may write
 * nothing.
 */
export function claimedWithout(
  actor: Actor,
  conditions: Pick<RequestConditions, 'owner'>,
  steps: readonly Step[],
  models: readonly Pick<Model, 'resource' | 'isLabelled'>[],
): Claim[] {
  if (!isBound(actor)) return []
  const named = new Map<string, { readonly step?: Step }>()
  if (conditions.owner !== null) named.set(conditions.owner, {})
  for (const step of steps) if (typeof step.owner === 'string') named.getOrInsert(step.owner, { step })
  const needed = models.flatMap(({ resource, isLabelled }) =>
    isLabelled === true ? permissionsOf(resource).filter((each) => !each.startsWith('view_')) : [],
  )
  const mayWriteFor = (owner: string) => needed.some((permission) => allowsFor(actor, permission, owner))
  const owners = [...new Set(needed.flatMap((permission) => ownersFor(actor, permission)))].sort()
  return [...named].flatMap(([owner, by]) => (mayWriteFor(owner) ? [] : [{ owner, owners, ...by }]))
}

function originOf({ owner, created_by, created_by_name, created_at }: Row, actor: Actor) {
  const createdBy = typeof created_by === 'number' ? created_by : null
  const name = typeof created_by_name === 'string' ? JSON.stringify(created_by_name) : undefined
  const maker = name ?? (createdBy === null ? 'an unknown user' : `user ${createdBy}, deleted since,`)
  const day = new Date(String(created_at)).toISOString().slice(0, 10)
  const made = mayNameUser(actor, createdBy) ? `by ${maker} on ${day}` : 'by another user'
  return { owner: typeof owner === 'string' ? owner : null, createdBy, made }
}
