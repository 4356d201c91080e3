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
