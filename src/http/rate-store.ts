import { forgetOldest } from '../forget-oldest.ts'
import { openRedis, type RedisClient } from '../queue/redis.ts'
import { readRedisUrl } from '../redis-url.ts'

type Counted = (error: Error | null, result: { current: number; ttl: number }) => void

/** The most keys that are counted in one window. A further one replaces the oldest. */
const remembered = 10_000

/**
 * Counts in this process, for @fastify/rate-limit. Its own store gives all requests of one turn of the event loop the same
 * object: when the last of them is over the limit, all are refused.
 */
export class ProcessStore {
  #counts = new Map<string, number>()
  #endsAt = 0

  incr(key: string, counted: Counted, windowMs: number): void {
    const now = performance.now()
    if (now >= this.#endsAt) {
      this.#counts = new Map()
      this.#endsAt = now + windowMs
    }
    const current = (this.#counts.get(key) ?? 0) + 1
    this.#counts.set(key, current)
    forgetOldest(this.#counts, remembered)
    counted(null, { current, ttl: this.#endsAt - now })
  }

  child(): ProcessStore {
    return new ProcessStore()
  }
}

/**
 * A connection for counting in Redis. A command that is not answered soon fails: counting must not hold up requests.
 *
 * @returns null without Redis
 */
export function openRateStore(url: string | null): RedisClient | null {
  if (url === null) return null
  return openRedis(readRedisUrl(url), {
    queues: false,
    maxRetriesPerRequest: 0,
    commandTimeout: 500,
    // A connection that has died silently is replaced.
    socketTimeout: 1_500,
  })
}
