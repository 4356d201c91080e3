import { setTimeout } from 'node:timers/promises'

/**
 * Repeats a round at once and then again and again, until it is stopped.
 *
 * @param round returns how many milliseconds to wait for the next one
 * @param failed does the same for a round that failed; `again`: so did the one before
 * @returns `first`, the end of the first round; `stop`, which ends the wait, and waits for a round that has begun
 */
export function repeat(
  round: () => Promise<number>,
  failed: (error: unknown, again: boolean) => number,
): { readonly first: Promise<void>; stop(): Promise<void> } {
  const first = Promise.withResolvers<void>()
  const stopping = new AbortController()
  const loop = (async () => {
    let again = false
    while (!stopping.signal.aborted) {
      let waitMs: number
      try {
        waitMs = await round()
        again = false
      } catch (error) {
        waitMs = failed(error, again)
        again = true
      }
      first.resolve()
      await setTimeout(waitMs, undefined, { signal: stopping.signal }).catch(() => {})
    }
  })()
  return {
    first: first.promise,
    stop: async () => {
      stopping.abort()
      await loop
    },
  }
}
