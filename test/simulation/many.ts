import type { Flaw } from './flaws.ts'
import { type Outcome, simulate } from './simulate.ts'

type Many = {
  /** Seeds from 1 to this one. */
  readonly count: number
  readonly flaw?: Flaw | undefined
  readonly onEnd?: (outcome: Outcome) => void
}

/** Side by side, because each waits a turn of the event loop after each step. */
const lanes = 32

/** @returns the simulation with the lowest seed in which a promise was broken, as far as they have run by then */
export async function simulateAll({ count, flaw, onEnd = () => {} }: Many): Promise<Outcome | undefined> {
  let next = 1
  const failed: Outcome[] = []
  const lane = async () => {
    while (next <= count && failed.length === 0) {
      const seed = next
      next += 1
      const outcome = await simulate(seed, { flaw })
      onEnd(outcome)
      if (outcome.broken.length > 0) failed.push(outcome)
    }
  }
  // Errors are thrown all the time: whole stacks would take a tenth of it.
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 1
  try {
    await Promise.all(Array.from({ length: lanes }, lane))
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
  return failed.toSorted((one, other) => one.seed - other.seed)[0]
}

/** Counts what happened in many simulations: what never happens is not tested. */
export function addUp() {
  const ends = new Map<string, number>()
  const answers = new Map<string, number>()
  const crashes = new Map<string, number>()
  const endedAfterMs = { usual: 0, fatal: 0 }
  const plus = (counts: Map<string, number>, name: string, count = 1) =>
    counts.set(name, (counts.get(name) ?? 0) + count)
  const line = (counts: Map<string, number>) =>
    [...counts]
      .sort()
      .map(([name, count]) => `${name} ${count}`)
      .join(' · ')
  return {
    ends,
    answers,
    crashes,
    add: (outcome: Outcome) => {
      for (const end of outcome.ends) plus(ends, end)
      for (const answer of outcome.answers) plus(answers, answer)
      for (const [point, count] of outcome.crashes) plus(crashes, point, count)
      const kind = outcome.isFatal ? 'fatal' : 'usual'
      endedAfterMs[kind] = Math.max(endedAfterMs[kind], outcome.endedAfterMs)
    },
    lines: () => [
      `runs: ${line(ends)}`,
      `answers: ${line(answers)}`,
      `crashes: ${line(crashes)}`,
      `every run ended within ${Math.ceil(endedAfterMs.usual / 1_000)} s of the last fault`,
      `where runs killed their workers, within ${Math.ceil(endedAfterMs.fatal / 1_000)} s`,
    ],
  }
}
