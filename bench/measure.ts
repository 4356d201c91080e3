import { setTimeout } from 'node:timers/promises'

/** The result of clients that repeat one operation; times in milliseconds. */
export type Measured = {
  readonly clients: number
  readonly count: number
  readonly failures: number
  /** The message of the first failure. */
  readonly failure: string | null
  readonly perSecond: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
  readonly max: number
  /** CPU time of the measuring process, per operation. */
  readonly cpuMs: number
}

export type Load = {
  readonly clients: number
  readonly seconds: number
  /** Ends after this many operations, if it is earlier. */
  readonly count?: number
  /** Starts so many a second, if the clients can. Without it, as many as they can. */
  readonly perSecond?: number
}

/**
 * Each client starts the next operation when its last is done, and when it is due. Failures are counted, not timed.
 *
 * @param once one operation, with a unique number
 */
export async function measure(
  { clients, seconds, count = Number.POSITIVE_INFINITY, perSecond = Number.POSITIVE_INFINITY }: Load,
  once: (number: number) => Promise<void>,
): Promise<Measured> {
  const times: number[] = []
  let failures = 0
  let failure: string | null = null
  let number = 0
  const cpu = process.cpuUsage()
  const start = performance.now()
  const end = start + seconds * 1_000
  const client = async () => {
    while (performance.now() < end && number < count) {
      const waitMs = start + (number * 1_000) / perSecond - performance.now()
      number += 1
      const own = number
      if (waitMs > 0) await setTimeout(waitMs)
      const began = performance.now()
      try {
        await once(own)
        times.push(performance.now() - began)
      } catch (error) {
        failures += 1
        failure ??= String(error)
      }
    }
  }
  await Promise.all(Array.from({ length: clients }, client))
  const tookMs = performance.now() - start
  const { user, system } = process.cpuUsage(cpu)
  times.sort((one, other) => one - other)
  return {
    clients,
    count: times.length,
    failures,
    failure,
    perSecond: times.length / (tookMs / 1_000),
    p50: quantile(times, 0.5),
    p95: quantile(times, 0.95),
    p99: quantile(times, 0.99),
    max: times.at(-1) ?? Number.NaN,
    cpuMs: (user + system) / 1_000 / Math.max(1, times.length),
  }
}

/** The quantile. @param sorted ascending; @returns NaN for none */
export const quantile = (sorted: readonly number[], share: number): number =>
  sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN

export const median = (numbers: readonly number[]): number =>
  quantile(
    numbers.toSorted((one, other) => one - other),
    0.5,
  )
