import { submit } from './client.ts'
import type { Stage } from './ledgers.ts'
import type { Random } from './random.ts'
import type { Fate } from './watch.ts'
import type { Faults, Process } from './world.ts'

/** What happens in one simulation, and how often something fails in it. */

export const noFaults: Faults = {
  ...{ crash: 0, lost: 0, slow: 0, limbo: 0, silent: 0 },
  ...{ duplicate: 0, drop: 0, delay: 0, unheard: 0 },
}

/** Each kind of fault is missing in some simulations, so that it does not hide what others do. */
export const randomFaults = (random: Random): Faults => ({
  crash: random.pick([0, 0, 0.003, 0.01, 0.03]),
  lost: random.pick([0, 0.003, 0.02]),
  slow: random.pick([0, 0.003, 0.02]),
  limbo: random.pick([0, 0.1, 0.4]),
  silent: random.pick([0, 0.3]),
  duplicate: random.pick([0, 0.1, 0.4]),
  drop: random.pick([0, 0.1, 0.4]),
  delay: random.pick([0, 0.1, 0.4]),
  unheard: random.pick([0, 0.5]),
})

/** Outages of queue and database. @returns when all faults are over */
export function planOutages({ world, queue, database }: Stage): number {
  const { random } = world
  const faultsEndAt = random.between(5_000, 40_000)
  const atTimes = (most: number, act: (forMs: number) => void) => {
    for (let count = random.whole(0, most); count > 0; count -= 1) {
      const at = random.between(0, faultsEndAt)
      const forMs = Math.min(random.between(300, 15_000), faultsEndAt - at)
      world.after(at, () => act(forMs))
    }
  }
  atTimes(1, queue.goAway)
  if (random.chance(0.2)) atTimes(2, queue.wipe)
  if (random.chance(0.2)) atTimes(2, (forMs) => database.crash(forMs / 3))
  return faultsEndAt
}

export const submittedWithinMs = 4_000
const fates = ['good', 'good', 'good', 'refused', 'bug', 'torn', 'fatal', 'busy'] as const

type Submitted = { readonly ids: readonly string[]; readonly firstAt: number }

/** A few submissions, to an API that starts again after each crash. */
export function submitRuns(stage: Stage, fateOf: Map<string, Fate>): Submitted {
  const { world } = stage
  const { random } = world
  let api: Process | undefined
  const start = () => {
    const process = world.start('api')
    api = process
    process.atCrash.push(() => {
      api = undefined
      world.after(random.between(100, 1_000), start)
    })
  }
  start()
  const ids = Array.from({ length: random.whole(1, 4) }, (_, index) => `run-${index + 1}`)
  let firstAt = submittedWithinMs
  for (const id of ids) {
    fateOf.set(id, random.pick(fates))
    const at = random.between(0, submittedWithinMs)
    firstAt = Math.min(firstAt, at)
    world.after(at, () => {
      const process = api
      if (process !== undefined) world.wake(process, () => void submit(stage, process, id))
    })
  }
  return { ids, firstAt }
}
