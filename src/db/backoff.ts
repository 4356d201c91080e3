import { setTimeout } from 'node:timers/promises'

type Tries = {
  readonly max: number
  /** The least wait after the first try. Each wait is longer than the last and random, so that a collision ends. */
  readonly stepMs: number
  readonly canRetry: (error: unknown) => boolean
  /** @param attempt the number of the failed attempt, from 1 */
  readonly onRetry?: (error: unknown, attempt: number) => void
  readonly pause?: Pause | undefined
}

/** Waits for at least this time. */
export type Pause = (leastMs: number) => Promise<void>

const pauseAtRandom: Pause = (leastMs) => setTimeout(leastMs * (1 + Math.random()))

/** Tries until it succeeds, at most `max` times. @throws the error of the last try, or one that `canRetry` rejects */
export async function retrying<Result>(
  work: () => Promise<Result>,
  { max, stepMs, canRetry, onRetry, pause = pauseAtRandom }: Tries,
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work()
    } catch (error) {
      if (attempt === max || !canRetry(error)) throw error
      onRetry?.(error, attempt)
      await pause(stepMs * attempt ** 2)
    }
  }
}
