import { setTimeout as delay } from 'node:timers/promises'

type Stop = () => void | Promise<void>

/** What must be stopped, in the reverse of the order in which it was started. */
export class Stops {
  #stops: Stop[] = []
  #stopping = false

  /** @param withinMs whoever takes longer is left behind */
  add(stop: Stop, withinMs = Number.POSITIVE_INFINITY): void {
    this.#stops.push(
      Number.isFinite(withinMs)
        ? async () => {
            await Promise.race([stop(), delay(withinMs, undefined, { ref: false })])
          }
        : stop,
    )
  }

  /** Begins nothing new once stopping has begun; whoever waits for it then waits for ever, and the process ends. */
  async unlessStopping<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#stopping) return new Promise<never>(() => {})
    return work()
  }

  /** Stops everything; what fails to stop is said and does not keep the others from it. */
  async run(): Promise<void> {
    this.#stopping = true
    for (const stop of this.#stops.splice(0).reverse()) {
      try {
        await stop()
      } catch (error) {
        process.stderr.write(`\nWhile stopping: ${error instanceof Error ? error.message : error}\n`)
      }
    }
  }
}
