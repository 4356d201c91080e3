import type { Finding } from '../plan/inspect.ts'
import { Refusal, rowName } from './refusal.ts'

/** The comparison of an apply with the plan that was reviewed. */

/** @throws {Refusal} when an entry looked at something else, or would do something else, than in the reviewed plan */
export function refuseChanged(
  findings: readonly Finding[],
  digests: readonly string[],
  reviewed: readonly string[] | undefined,
): void {
  if (reviewed === undefined) return
  const changed = findings.filter((_, index) => digests[index] !== reviewed[index])
  if (changed.length === 0) return
  const lines = changed.slice(0, maxChangedLines).map((each) => `rolled back: ${rowName(each)} changed after the plan.`)
  const more = changed.length - lines.length
  throw new Refusal('precondition_failed', [
    ...lines,
    ...(more > 0 ? [`rolled back: ${more} more changed after the plan.`] : []),
    'Plan again, and review that plan.',
  ])
}

const maxChangedLines = 20

/** What the plan would have deleted besides its entries is not there, or is in use. */
export const fewer = (count: number): Refusal =>
  new Refusal('precondition_failed', [
    `rolled back: the plan has ${count} more to delete than there is now.`,
    'Plan again, and review that plan.',
  ])
