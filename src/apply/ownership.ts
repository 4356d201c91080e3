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
  const now = label === null ? 'it has no owner now' : `it belongs to owner ${JSON.stringify(label)} now`
  if (owner === null && isMaker)
    return action === 'delete' ? mine : { conflict: null, becomes: label, note: `${what} had no owner: ${now}` }
  const had = whose({ owner, made }, false)
  if (conditions.allow.takeover)
    return action === 'delete'
      ? { conflict: null, note: `${what} ${had}` }
      : { conflict: null, becomes: label, note: `${what} ${had}: ${now}` }
  const asked = label === null ? 'the request names no owner' : `the request names owner ${JSON.stringify(label)}`
  const has = whose({ owner, made }, true)
  return { conflict: owner === null ? `${what} ${has}` : `${what} ${has}, and ${asked}` }
}

function whose({ owner, made }: Pick<Origin, 'owner' | 'made'>, isNow: boolean): string {
  return owner === null
    ? `${isNow ? 'has' : 'had'} no owner, and was made by ${made}`
    : `${isNow ? 'belongs' : 'belonged'} to owner ${JSON.stringify(owner)} (made by ${made})`
}

function originOf({ owner, created_by, created_by_name, created_at }: Row): Origin {
  const createdBy = typeof created_by === 'number' ? created_by : null
  const name = typeof created_by_name === 'string' ? JSON.stringify(created_by_name) : undefined
  const maker = name ?? (createdBy === null ? 'an unknown user' : `user ${createdBy}, deleted since,`)
  const day = new Date(String(created_at)).toISOString().slice(0, 10)
  return { owner: typeof owner === 'string' ? owner : null, createdBy, made: `${maker} on ${day}` }
}
