/** Milliseconds of CPU time of this thread. Other load on the machine does not count. */

export function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

export function cpuMsOf(work: () => unknown): number {
  const from = cpuMs()
  work()
  return cpuMs() - from
}

const sample = Array.from({ length: 5_000 }, (_, index) => ({ index, name: `name ${index}`, tags: ['a', 'b'] }))

/** A computation of some 50 ms, to compare others with: some kernels count CPU time in steps of 4 ms. */
function yardstick(): void {
  for (let round = 0; round < 12; round += 1) JSON.parse(JSON.stringify(sample))
}

/** How often the yardstick is laid on: a single time is exact to a tenth at best. */
const times = 4

/** What `yardstick` costs here and now: a slow or busy machine slows it as everything else. */
function unitMs(): number {
  return Math.max(1, cpuMsOf(() => Array.from({ length: times }, yardstick)) / times)
}

/**
 * CPU time of `work` in units of `yardstick`. The least of several rounds, each with a unit of its own: compilation and garbage
 * collection take time too, and a machine that others share has slow minutes.
 *
 * @param enough no more rounds once one costs less than this
 */
export function costOf(work: () => unknown, { rounds = 4, enough = 0 } = {}): number {
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < rounds && least >= enough; round += 1) least = Math.min(least, cpuMsOf(work) / unitMs())
  return least
}

/** The longest turn of the event loop during `work` in the same units, the least of three. */
export async function longestTurnCost(work: () => Promise<unknown>): Promise<number> {
  const unit = unitMs()
  return Math.min(await longestTurnMs(work), await longestTurnMs(work), await longestTurnMs(work)) / unit
}

/** @returns the longest turn of the event loop during `work`, about a millisecond too long */
export async function longestTurnMs(work: () => Promise<unknown>): Promise<number> {
  let last = cpuMs()
  let longest = 0
  const sample = () => {
    const now = cpuMs()
    longest = Math.max(longest, now - last)
    last = now
  }
  const sampling = setInterval(sample, 1)
  try {
    await work()
  } finally {
    clearInterval(sampling)
  }
  sample()
  return longest
}
