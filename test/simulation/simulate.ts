import { newDatabase } from './database.ts'
import type { Flaw } from './flaws.ts'
import type { Stage } from './ledgers.ts'
import { newQueue } from './queue.ts'
import { seeded } from './random.ts'
import { noFaults, planOutages, randomFaults, submitRuns, submittedWithinMs } from './scenario.ts'
import { type Fate, newWatch } from './watch.ts'
import { startWorker } from './worker.ts'
import { newWorld } from './world.ts'

/** One simulation: everything in it follows from its seed. */

export type Outcome = {
  readonly seed: number
  /** Promises that were broken. */
  readonly broken: readonly string[]
  /** How the runs ended, what clients were answered, and where processes crashed: to see that all of it happens. */
  readonly ends: readonly string[]
  readonly answers: readonly string[]
  readonly crashes: ReadonlyMap<string, number>
  /** The time from the end of the faults until every run had ended. */
  readonly endedAfterMs: number
  /** A run killed its workers. */
  readonly isFatal: boolean
}

export type Options = { readonly flaw?: Flaw | undefined; readonly trace?: ((line: string) => void) | undefined }

/**
 * Each run ends within this time after the last fault. A run that kills its workers takes longer: where all workers are
 * dead most of the time, there is hardly one that counts its attempts.
 */
export const endsWithinMs = { usual: 60_000, fatal: 300_000 } as const
/** A simulation goes on after the last run has ended: duplicates must change nothing. */
const aftermathMs = 8_000

export async function simulate(seed: number, { flaw, trace }: Options = {}): Promise<Outcome> {
  const random = seeded(seed)
  const faults = randomFaults(random)
  const world = newWorld(random, faults, trace)
  const watch = newWatch(() => world)
  const database = newDatabase(world, watch, flaw)
  const queue = newQueue(world, watch)
  const heard = new Map<string, () => void>()
  const fates = new Map<string, Fate>()
  let workersStayAwayUntil = 0
  const stage: Stage = {
    world,
    database,
    queue,
    watch,
    flaw,
    fates,
    heard,
    notify: (id) => {
      if (!random.chance(faults.unheard)) world.after(random.between(0.1, 6), () => heard.get(id)?.())
    },
    startLater: (start) => {
      const pauseMs = random.between(100, 2_000)
      world.after(Math.max(pauseMs, workersStayAwayUntil - world.now()), start)
    },
  }
  const concurrency = random.whole(1, 3)
  for (let count = random.whole(1, 3); count > 0; count -= 1)
    stage.startLater(() => startWorker(stage, `worker ${count}`, concurrency))
  const { ids, firstAt } = submitRuns(stage, fates)
  let faultsEndAt = planOutages(stage)
  if (random.chance(0.03)) {
    // Nothing works for an hour: when the workers are back, runs are stale or become so.
    workersStayAwayUntil = firstAt + 3_600_000 - random.between(-1_000, 2_000)
    faultsEndAt = workersStayAwayUntil + 10_000
    world.after(random.between(firstAt, 6_000), world.crashAll)
  }
  world.after(faultsEndAt, () => {
    world.note('from now on, nothing fails')
    Object.assign(faults, noFaults)
  })

  const isFatal = [...fates.values()].includes('fatal')
  const boundMs = endsWithinMs[isFatal ? 'fatal' : 'usual']
  const hasEnded = (id: string) => database.rows.get(id)?.state !== 'queued'
  let endedAt: number | undefined
  let isOver = false
  const inspect = () => {
    const hasAllEnded = world.now() > submittedWithinMs && ids.every(hasEnded)
    endedAt = hasAllEnded ? (endedAt ?? world.now()) : undefined
    if (endedAt !== undefined && world.now() > endedAt + aftermathMs) isOver = true
    if (world.now() > faultsEndAt + boundMs) isOver = true
    world.after(2_000, inspect)
  }
  inspect()
  await world.run(() => isOver || watch.violations.length > 0)

  const ends = watch.violations.length > 0 ? [] : ids.map((id) => watch.check(id, database.rows.get(id), fates.get(id)))
  return {
    ...{ seed, ends, crashes: world.crashes, broken: watch.violations, answers: [...watch.answers.values()] },
    isFatal,
    endedAfterMs: Math.max(0, (endedAt ?? Number.POSITIVE_INFINITY) - faultsEndAt),
  }
}
