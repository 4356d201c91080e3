import { failureCode, isCollision, isConnectionLost, refusesWrites } from '../db/errors.ts'
import { causeOf } from '../log.ts'

const longest = 300

/** The cause of a failed attempt: the innermost message and its code, at most 300 characters. */
export function causeText(error: unknown): string {
  const code = failureCode(error)
  const text = causeOf(error)
  if (code === undefined) return text.slice(0, longest)
  const suffix = /^[0-9A-Z]{5}$/.test(code) && !code.startsWith('P1') ? ` (SQLSTATE ${code})` : ` (${code})`
  return `${text.slice(0, longest - suffix.length)}${suffix}`
}

/** `lost`: the worker ended, or the queue lost its job, and neither reported why. */
export const causeClasses = [
  'connection',
  'lock_timeout',
  'statement_timeout',
  'collision',
  'no_writes',
  'lost',
  'other',
] as const

/** The kind of a failure, from a closed list, for the metrics. */
export type CauseClass = (typeof causeClasses)[number]

export function causeClass(error: unknown): CauseClass {
  if (refusesWrites(error)) return 'no_writes'
  if (isCollision(error)) return 'collision'
  const code = failureCode(error)
  if (code === '55P03') return 'lock_timeout'
  if (code === '57014') return 'statement_timeout'
  return isConnectionLost(error) ? 'connection' : 'other'
}
