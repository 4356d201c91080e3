import { TestRunner } from 'vitest'
import type { Sent } from './clients.ts'

/** What one test of a fault has found, for the table of `npm run faults`. */
export type Fault = {
  readonly requests: number
  /** Answers by status; `lost` without one. */
  readonly answers: Readonly<Record<string, number>>
  readonly lost: number
  readonly doubled: number
  readonly half: number
  /** Other broken promises. */
  readonly others: number
}

declare module 'vitest' {
  interface TaskMeta {
    fault?: Fault
    recoveryMs?: number
  }
}

const kinds = {
  lost: / is lost$/,
  doubled: /exists \d+ times$|was applied \d+ times/,
  half: /is half there|is not what/,
}

/** Keeps the result of an audit with the running test. @param complaints of the auditor */
export function recordAudit(log: readonly Sent[], complaints: readonly string[]): void {
  const count = (pattern: RegExp) => complaints.filter((complaint) => pattern.test(complaint)).length
  const [lost, doubled, half] = [count(kinds.lost), count(kinds.doubled), count(kinds.half)]
  recordCalls(log, { lost, doubled, half, others: complaints.length - lost - doubled - half })
}

/**
 * Keeps the answers of a test that has an audit of its own. A broken promise stays broken when the test is tried again.
 *
 * @param broken how many promises were broken
 */
export function recordCalls(
  answers: readonly { readonly status: number | null }[],
  { lost = 0, doubled = 0, half = 0, others = 0 }: Partial<Pick<Fault, 'lost' | 'doubled' | 'half' | 'others'>> = {},
): void {
  const earlier = meta().fault
  const counts = Map.groupBy(answers, ({ status }) => String(status ?? 'lost'))
  meta().fault = {
    requests: answers.length,
    answers: Object.fromEntries([...counts].map(([status, sent]) => [status, sent.length])),
    lost: lost + (earlier?.lost ?? 0),
    doubled: doubled + (earlier?.doubled ?? 0),
    half: half + (earlier?.half ?? 0),
    others: others + (earlier?.others ?? 0),
  }
}

/** Keeps how long it took until the first success after the fault. */
export function recordRecovery(ms: number): void {
  meta().recoveryMs = Math.round(ms)
}

function meta() {
  const test = TestRunner.getCurrentTest()
  if (test === undefined) throw new Error('only a running test keeps what it found')
  return test.meta
}
