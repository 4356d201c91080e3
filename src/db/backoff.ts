import { setTimeout } from 'node:timers/promises'

type Tries = {
  readonly max: number
  /** The least wait after the first try. Each wait is longer than the last and random, so that a collision ends. */
  readonly stepMs: number
  readonly canRetry: (error: unknown) => boolean
  /** @param attempt that failed, from 1 */
  readonly onRetry?: (error: unknown, attempt: number) => void
}

/** @throws the error of the last try, or one that `canRetry` rejects */
export async function retrying<Result>(work: () => Promise<Result>, tries: Tries): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work()
    } catch (error) {
      if (attempt === tries.max || !tries.canRetry(error)) throw error
      tries.onRetry?.(error, attempt)
      await setTimeout(tries.stepMs * attempt ** 2 * (1 + Math.random()))
    }
  }
}
