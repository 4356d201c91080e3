/** Time that this thread itself computed, in milliseconds: what else runs on the machine does not count. */

export function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

export function cpuMsOf(work: () => unknown): number {
  const from = cpuMs()
  work()
  return cpuMs() - from
}

/** @returns what the longest turn of the event loop took meanwhile, rounded up by about a millisecond */
export async function longestTurnMs(work: () => Promise<unknown>): Promise<number> {
  let last = cpuMs()
  let longest = 0
  const look = () => {
    const now = cpuMs()
    longest = Math.max(longest, now - last)
    last = now
  }
  const looking = setInterval(look, 1)
  try {
    await work()
  } finally {
    clearInterval(looking)
  }
  look()
  return longest
}
