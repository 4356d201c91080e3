import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../config.ts'
import { Problem } from '../errors.ts'
import type { RedisClient } from '../queue/redis.ts'
import { ProcessStore } from './rate-store.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The user for whom the request is counted. */
    countedAs: string
  }
}

/** The settings RATE_LIMIT_*, which docs/settings.md describes. */
export type RateLimits = Pick<Config, 'rateLimitRequestsPerSecond' | 'rateLimitLongAnswers' | 'rateLimitWaitingRuns'>

/**
 * Counts a request, in a window of a second, and sets the headers of its answer.
 *
 * @param owner the user, or another sender, for whom it is counted @param what it is: `address`
 * @throws {Problem} `too_many_requests` when there were too many
 */
export type CountRequest = (request: FastifyRequest, reply: FastifyReply, owner: string, what?: string) => Promise<void>

const windowMs = 1_000

/** The pause between two questions to a Redis that does not answer: the requests in between do not wait. */
const awayMs = 2_000

/**
 * Opens the limit on the rate of requests. All processes count together in Redis when there is one, else each process for
 * itself. Nothing is counted or refused while Redis is away. The headers are those of draft-ietf-httpapi-ratelimit-headers-10.
 */
export function openRate(
  app: FastifyInstance,
  max: number,
  { redis, onRefused }: { readonly redis: RedisClient | null; readonly onRefused: () => void },
): CountRequest {
  app.decorateRequest('countedAs', '')
  // The plugin is called and not registered: a registered one loads after the hooks that use it.
  const store = redis === null ? { store: ProcessStore } : { redis, nameSpace: 'gatewright-rate-' }
  void rateLimit.fastifyRateLimit(app, { global: false, skipOnError: true, ...store }, () => {})
  const count = app.createRateLimit({ max, timeWindow: windowMs, keyGenerator: ({ countedAs }) => countedAs })
  let asksAgainAt = 0
  return async (request, reply, owner, what = 'user') => {
    if (performance.now() < asksAgainAt) return
    request.countedAs = owner
    const counted = await count(request)
    // A request without a window was not counted: Redis is away, and is not asked for a while.
    if (counted.isAllowed || counted.ttl === 0) {
      asksAgainAt = performance.now() + awayMs
      return
    }
    reply.header('RateLimit-Policy', `"${what}";q=${max};w=1`)
    reply.header('RateLimit', `"${what}";r=${counted.remaining};t=1`)
    if (!counted.isExceeded) return
    onRefused()
    throw new Problem('too_many_requests', `Too many requests of this ${what}. Try again in 1 s.`, { retryAfterS: 1 })
  }
}
