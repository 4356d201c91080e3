import { failureCode } from '../db/errors.ts'
import { causeOf } from '../log.ts'

const longest = 300

/** Why an attempt ended without a result: the innermost message and its code, at most 300 characters. */
export function causeText(error: unknown): string {
  const code = failureCode(error)
  const text = causeOf(error)
  if (code === undefined) return text.slice(0, longest)
  const suffix = /^[0-9A-Z]{5}$/.test(code) && !code.startsWith('P1') ? ` (SQLSTATE ${code})` : ` (${code})`
  return `${text.slice(0, longest - suffix.length)}${suffix}`
}
