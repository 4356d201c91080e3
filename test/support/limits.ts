import { variableOf } from '../../src/config.ts'
import type { RateLimits } from '../../src/http/rate-limit.ts'

/** Limits that tests of other things do not reach: all of their requests come from one address, many with one token. */
export const wide: RateLimits = {
  rateLimitRequestsPerSecond: 1_000_000,
  rateLimitLongAnswers: 1_000,
  rateLimitWaitingRuns: 100_000,
}

/** The same for a process. */
export const wideEnv: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(wide).map(([setting, value]) => [variableOf(setting), String(value)]),
)
