import { failureCode, isCollision, isConnectionLost, refusesWrites } from '../db/errors.ts'
import { causeOf } from '../log.ts'
import { type Blocker, blockerSentence } from './at-work.ts'

const longest = 300

/** A lock that was not given in time, and the session that holds it. */
export class LockNotGiven extends Error {
  constructor(blocker: Blocker, cause: unknown) {
    super(`a lock was not given in time: ${blockerSentence(blocker)}`, { cause })
  }
}

/** The cause of a failed attempt: the innermost message and its code, at most 300 characters. */
export function causeText(error: unknown): string {
  const code = failureCode(error)
  const text = error instanceof LockNotGiven ? error.message : causeOf(error)
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

export type CauseClass = (typeof causeClasses)[number]

export function causeClass(error: unknown): CauseClass {
  if (refusesWrites(error)) return 'no_writes'
  if (isCollision(error)) return 'collision'
  const code = failureCode(error)
  if (code === '55P03') return 'lock_timeout'
  if (code === '57014') return 'statement_timeout'
  return isConnectionLost(error) ? 'connection' : 'other'
}

/** The kind of a failure that was recorded as `causeText` writes it. */
export function recordedClass(text: string): CauseClass {
  if (text === lostCause) return 'lost'
  const [, code] = /\((?:SQLSTATE )?([0-9A-Z_]+)\)$/.exec(text) ?? []
  return causeClass(Object.assign(new Error(text), code !== undefined && { code }))
}

/** The cause of an attempt whose worker recorded no other. */
export const lostCause = 'its worker ended, or the queue lost its job'
