import { Problem } from '../errors.ts'
import { limitTime } from '../time-limit.ts'

/** A caller gets its 503 within a second. */
const quickMs = 950

/**
 * Waits for a short statement. A server that hangs counts as away. The statement goes on until the time-out of the
 * connection, and may still take effect.
 *
 * @throws {Problem} `unavailable` when there is no answer in time
 */
export const inTime = <Result>(answer: Promise<Result>, withinMs = quickMs): Promise<Result> =>
  limitTime(answer, withinMs, () => {
    throw new Problem('unavailable', 'The database does not answer. Try again shortly.', { retryAfterS: 1 })
  })
