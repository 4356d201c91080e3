import type { ErrorList } from '../errors.ts'
import type { Model } from '../models/define.ts'
import {
  type Actor,
  allows,
  allowsFor,
  allowsRow,
  allowsSome,
  isOfOthers,
  type Permission,
  permissionsOf,
} from '../permissions.ts'
import type { Diff } from './diff.ts'
import { columnOf, type Row } from './statements.ts'
import type { Step } from './step.ts'

export type Effect = Diff & {
  readonly step: Step
  readonly row: Row | undefined
  /** The fields that the entry names, with tags replaced by keys. */
  readonly sent: ReadonlyMap<string, unknown>
  /** Whether the row belongs to another model: later entries may not refer to it by this entry's id. */
  readonly isForeign: boolean
  /** The row's name in messages. */
  readonly label: string
  /** The key that the entry chooses for a new row. */
  readonly pk: string | undefined
  readonly errors: ErrorList
  /** Whether the caller may not view the row: no report shows its values. */
  readonly isHidden: boolean
  /** Existing rows that the entry's row claims and did not claim before. Nothing else changes in them. */
  readonly takes: readonly Effect[]
  /** The secrets that the entry keeps by the mask of older clients. */
  readonly masks: readonly string[]
}

function permissionFor({ action, step }: Effect): Permission {
  switch (action) {
    case 'create':
      return `add_${step.model.resource}`
    case 'update':
    case 'unchanged':
      return `change_${step.model.resource}`
    case 'delete':
      return `delete_${step.model.resource}`
    case 'leave':
      // Its log shows whether the row exists: that needs the permission too.
      return `${step.state === 'absent' ? 'delete' : step.state === 'present' ? 'change' : 'add'}_${step.model.resource}`
    default:
      return action satisfies never
  }
}

/** The action in messages. An unchanged row is an update with nothing to write. */
export const verbOf = ({ action }: Effect): string => (action === 'unchanged' ? 'update' : action)

/**
 * The labels of a row before and after: the actor needs the permission for rows of each of them. Undefined in a model without
 * labels; none for a row that does not exist and will not.
 */
export type Owners = readonly (string | null)[] | undefined

/**
 * Whether a name of a row may be reported to the actor: any permission to view or write the row is enough.
 *
 * @param owner its label, in a model that has labels
 */
export const mayKnow = (actor: Actor, model: Model, owner: unknown): boolean =>
  permissionsOf(model.resource).some((each) => allowsRow(actor, each, model, owner))

/**
 * A user needs no permission for rows that the user owns. A caller who impersonates the owner needs it: such a row
 * outlasts the impersonation.
 *
 * @returns the permission that the actor lacks for this effect, if any
 */
export function lacking(actor: Actor, effect: Effect, owners: Owners): Permission | null {
  const needed = permissionFor(effect)
  const { impersonator } = actor
  const isImpersonated = effect.step.model.owner !== undefined && impersonator !== undefined
  if (isImpersonated && !allows(impersonator, needed)) return needed
  const isAllowed =
    owners === undefined || owners.length === 0
      ? allowsSome(actor, needed)
      : owners.every((owner) => allowsFor(actor, needed, owner))
  return isAllowed || isOwn(actor, effect) ? null : needed
}

/**
 * Whether the actor owns the row: an existing one before the change, a new one after it. A new row whose owner has errors counts
 * as owned: it is refused for those errors.
 */
export function isOwn(actor: Actor, { step: { model }, row, values }: Effect): boolean {
  const { pk } = actor
  if (model.owner === undefined || pk === null || isOfOthers(actor)) return false
  if (row !== undefined) return row[columnOf(model, model.owner)] === pk
  return values[model.owner] === pk || values[model.owner] === undefined
}
