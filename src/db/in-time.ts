import { Problem } from '../errors.ts'
import { limitTime } from '../time-limit.ts'

/** A caller gets its 503 within a second. */
export const quickMs = 950

let patienceMs = quickMs

/** Milliseconds that an answer may take before its database counts as away. */
export const patience = (): number => patienceMs

/** Raises the limit for a process whose database is slow and not away, as on a machine that does other work. */
export function bePatient(ms: number): void {
  patienceMs = ms
}

export const noAnswer = (): Problem =>
  new Problem('unavailable', 'The database does not answer. Try again shortly.', { retryAfterS: 1 })

/**
 * Waits for a short statement. A server that hangs counts as away. The statement goes on until the time-out of the connection,
 * and may still take effect.
 *
 * @throws {Problem} `unavailable` when there is no answer in time
 */
export const inTime = <Result>(answer: Promise<Result>, withinMs = patienceMs): Promise<Result> =>
  limitTime(answer, withinMs, () => {
    throw noAnswer()
  })

/** The answer, or null when it is late. Other errors are thrown. */
export const ifInTime = <Result>(answer: Promise<Result>, withinMs?: number): Promise<Result | null> =>
  inTime(answer, withinMs).catch((error: unknown) => {
    if (error instanceof Problem && error.code === 'unavailable') return null
    throw error
  })
