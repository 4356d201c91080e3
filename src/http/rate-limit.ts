import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../config.ts'
import { Problem } from '../errors.ts'
import { sha256 } from '../ids.ts'
import type { RedisClient } from '../queue/redis.ts'
import { Attempts, type ValidOf } from './attempts.ts'
import type { RefusalCounts } from './metrics.ts'
import { ProcessStore } from './rate-store.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** A digest of the access token; undefined on routes for `anyone`. */
    tokenKey: string | undefined
  }
}

/** The settings RATE_LIMIT_*, which docs/settings.md describes. */
export type RateLimits = Pick<
  Config,
  | 'rateLimitFailuresPerMinute'
  | 'rateLimitRequestsPerSecond'
  | 'rateLimitLists'
  | 'rateLimitLongAnswers'
  | 'rateLimitWaitingRuns'
>

/** What counting has shown: sets headers of the answer. @throws {Problem} `too_many_requests` when there were too many */
export type Verdict = (reply: FastifyReply) => void

export type Limiter = {
  /**
   * Counts a failed authentication of this address. A valid token is never refused for the failures of others.
   *
   * @throws {Problem} `too_many_requests` when there were too many within a minute
   */
  countFailure(request: FastifyRequest, reply: FastifyReply): Promise<void>
  /**
   * Looks a token up, and counts it when it does not authenticate. After too many failures of an address, a wrong token
   * costs no query of its own.
   *
   * @param ask looks it up @returns null for one that does not authenticate
   * @throws {Problem} `too_many_requests` for one that does not authenticate, after too many
   */
  authenticate<Found>(
    request: FastifyRequest,
    reply: FastifyReply,
    token: { readonly secret: string; readonly ask: () => Promise<Found | null> },
  ): Promise<Found | null>
  /** Whether a query may find out why a token did not authenticate: not after too many failures of its address. */
  mayExplain(request: FastifyRequest): boolean
  /** Counts a request of this token, in a window of a second. The token need not be known to be valid yet. */
  countRequest(request: FastifyRequest): Promise<Verdict>
}

const [secondMs, minuteMs] = [1_000, 60_000]

/** While Redis does not answer, a request asks it no more often than this, for all limits: the others are not held up. */
const awayMs = 2_000
/** When the store of the counts is asked again. */
type Away = { asksAgainAt: number }

/**
 * Opens the limits on rates. All processes count together in Redis when there is one, else each process for itself.
 * While Redis is away, nothing is counted and nothing refused.
 */
export function openLimiter(
  app: FastifyInstance,
  limits: RateLimits,
  {
    redis,
    validOf,
    metrics,
  }: { readonly redis: RedisClient | null; readonly validOf: ValidOf; readonly metrics: RefusalCounts },
): Limiter {
  app.decorateRequest('tokenKey')
  // Called, not registered: a registered plugin loads after the hooks that use it.
  const store = redis === null ? { store: ProcessStore } : { redis, nameSpace: 'gatewright-rate-' }
  void rateLimit.fastifyRateLimit(app, { global: false, skipOnError: true, ...store }, () => {})
  const away: Away = { asksAgainAt: 0 }
  const { countFailedLogin, countLimited } = metrics
  const failures = limit(app, away, {
    onRefused: () => countLimited('failures'),
    name: 'failures',
    max: limits.rateLimitFailuresPerMinute,
    windowMs: minuteMs,
    keyOf: addressOf,
    refusal: 'Too many failed logins from this address.',
  })
  const requests = limit(app, away, {
    onRefused: () => countLimited('token'),
    name: 'token',
    max: limits.rateLimitRequestsPerSecond,
    windowMs: secondMs,
    keyOf: ({ tokenKey }) => tokenKey ?? '',
    refusal: 'Too many requests with this access token.',
  })
  const countFailure: Limiter['countFailure'] = async (request, reply) => {
    countFailedLogin(request)
    const judge = await failures(request)
    judge(reply)
  }
  const attempts = new Attempts({
    max: limits.rateLimitFailuresPerMinute,
    windowMs: minuteMs,
    validOf,
  })
  return {
    countFailure,
    authenticate: async (request, reply, { secret, ask }) => {
      const digest = sha256(secret).toString('base64url')
      const found = await attempts.authenticate(addressOf(request), digest, ask)
      if (found === null) await countFailure(request, reply)
      return found
    },
    mayExplain: (request) => attempts.mayAsk(addressOf(request)),
    countRequest: requests,
  }
}

const addressOf = ({ ip }: FastifyRequest): string => rateLimit.normalizeIP(ip)

type Rate = {
  readonly name: string
  readonly max: number
  readonly windowMs: number
  readonly keyOf: (request: FastifyRequest) => string
  readonly refusal: string
  readonly onRefused: () => void
}

/** The headers are those of draft-ietf-httpapi-ratelimit-headers-10. */
function limit(
  app: FastifyInstance,
  away: Away,
  { name, max, windowMs, keyOf, refusal, onRefused }: Rate,
): Limiter['countRequest'] {
  const count = app.createRateLimit({
    max,
    timeWindow: windowMs,
    keyGenerator: (request) => `${name}:${keyOf(request)}`,
  })
  const policy = `"${name}";q=${max};w=${windowMs / 1_000}`
  return async (request) => {
    if (performance.now() < away.asksAgainAt) return nothing
    const counted = await count(request)
    // Without a window, it was not counted: Redis is away, and is left alone for a while.
    if (counted.isAllowed || counted.ttl === 0) {
      away.asksAgainAt = performance.now() + awayMs
      return nothing
    }
    // A store may round the rest of a window up beyond it.
    const resetS = Math.max(1, Math.min(counted.ttlInSeconds, windowMs / 1_000))
    const { remaining, isExceeded } = counted
    return (reply) => {
      reply.header('RateLimit-Policy', policy)
      reply.header('RateLimit', `"${name}";r=${remaining};t=${resetS}`)
      if (!isExceeded) return
      onRefused()
      throw new Problem('too_many_requests', `${refusal} Try again in ${resetS} s.`, { retryAfterS: resetS })
    }
  }
}

const nothing: Verdict = () => {}
