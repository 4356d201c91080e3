import type { Actor } from '../permissions.ts'
import type { RequestConditions } from '../plan/engine.ts'
import type { Finding } from '../plan/inspect.ts'
import type { Row } from '../plan/statements.ts'
import { rowName } from './refusal.ts'

/**
 * Who manages a row that is there: the label that an earlier apply put on it, and the user who made it
 * (docs/adr/0032-owners-are-labels.md).
 */

/** What the row's owner means for an entry. */
export type Ownership = {
  /** Why the entry needs `Gatewright-Allow: takeover`; null when it does not, or has it. */
  readonly conflict: string | null
  /** The label that the row gets; undefined when it keeps its own. */
  readonly becomes?: string | null
  /** A sentence for the logs. */
  readonly note?: string
}

const mine: Ownership = { conflict: null }

/** The label and the maker of a row, as the snapshot has them. */
type Origin = {
  readonly owner: string | null
  readonly createdBy: number | null
  readonly made: string
}

export function ownershipOf(finding: Finding, { pk }: Pick<Actor, 'pk'>, conditions: RequestConditions): Ownership {
  const { step, row, isForeign, action } = finding
  if (!step.model.isLabelled || row === undefined || isForeign) return mine
  const what = rowName(finding)
  const { owner, createdBy, made } = originOf(row)
  const label = conditions.owner
  const isMaker = createdBy !== null && createdBy === pk
  if (owner === label) {
    const isNoted = owner === null && createdBy !== null && !isMaker && action !== 'leave'
    return isNoted ? { conflict: null, note: `${what} was made by ${made}` } : mine
  }
  const belongs = label === null ? 'it has no owner now' : `it belongs to owner ${JSON.stringify(label)} now`
  if (owner === null && isMaker) return changed(finding, label, `${what} had no owner: ${belongs}`)
  const held = owner === null ? `has no owner, and was made by ${made}` : `belongs to owner ${JSON.stringify(owner)}`
  if (conditions.allow.takeover)
    return changed(finding, label, `${what} ${owner === null ? held : `${held} (made by ${made})`}: ${belongs}`)
  const asked = label === null ? 'and the request names no owner' : `not to owner ${JSON.stringify(label)}`
  return { conflict: `${what} ${owner === null ? held : `${held} (made by ${made}), ${asked}`}` }
}

/** A deleted row gets no label. */
function changed({ action }: Finding, becomes: string | null, note: string): Ownership {
  return action === 'delete' ? mine : { conflict: null, becomes, note }
}

function originOf({ owner, created_by, created_by_name, created_at }: Row): Origin {
  const createdBy = typeof created_by === 'number' ? created_by : null
  const name = typeof created_by_name === 'string' ? JSON.stringify(created_by_name) : undefined
  const maker = name ?? (createdBy === null ? 'an unknown user' : `user ${createdBy}, deleted since,`)
  const day = new Date(String(created_at)).toISOString().slice(0, 10)
  return { owner: typeof owner === 'string' ? owner : null, createdBy, made: `${maker} on ${day}` }
}
