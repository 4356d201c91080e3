import { setTimeout } from 'node:timers/promises'

/**
 * Repeats a round at once and then again and again, until it is stopped.
 *
 * @param round returns how many milliseconds to wait for the next one; must not throw
 * @returns `stop`, which ends the wait, and waits for a round that has begun
 */
export function repeat(round: () => Promise<number>): { stop(): Promise<void> } {
  const stopping = new AbortController()
  const loop = (async () => {
    while (!stopping.signal.aborted) {
      const waitMs = await round()
      await setTimeout(waitMs, undefined, { signal: stopping.signal }).catch(() => {})
    }
  })()
  return {
    stop: async () => {
      stopping.abort()
      await loop
    },
  }
}
