import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../errors.ts'
import type { Actor } from '../permissions.ts'
import { limitTime } from '../time-limit.ts'
import type { LimitName, RefusalCounts } from './metrics.ts'
import type { RateLimits } from './rate-limit.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The share that a request takes, from its start to the end of its answer. */
    takes?: 'list' | 'run'
    /** Parameters of the query that find one row: a request with one of them takes no share. */
    exceptBy?: readonly string[]
    /** The parameter of the query that makes a request wait first: it takes its share afterwards. */
    laterBy?: string
  }
  interface FastifyRequest {
    /** Takes the share of a request that waited first. @throws {Problem} `too_many_requests` */
    takeShare: (reply: FastifyReply) => Promise<void>
    /** Takes a long answer of the share. @returns a function that gives it back @throws {Problem} as `takeShare` */
    takeLongAnswer: () => Promise<() => void>
    /** Keeps what the request takes until this work has ended, too: it may outlast the answer. */
    keepShare: (work: Promise<unknown>) => void
  }
}

/** The user whose share it is: the real one, by any token. */
export const userOf = ({ impersonator, pk }: Actor): string => String((impersonator ?? { pk }).pk)

/** The time that a request waits for a place: a list or a write waits as long as a statement may take. A wait costs nothing. */
export const placeWithinMs = 8_000
export const longWithinMs = 2_000

type Rules = {
  readonly max: number
  /** The part of it that may be taken now, up to 1; absent: 1. */
  readonly part?: () => number
  /** The time that one more waits for a place; absent: 0. */
  readonly waitMs?: number
  /** Counts a refusal, and makes it. */
  readonly refuse: () => Problem
}

/** Counts the places that each owner has taken in this process: one owner must not take all. */
export class Share {
  readonly #rules: Rules
  readonly #owners = new Map<string, { taken: number; readonly waiting: Set<() => void> }>()

  constructor(rules: Rules) {
    this.#rules = rules
  }

  /** @returns a function that gives the place back, once. @throws {Problem} the refusal when no place gets free in time */
  async take(name: string): Promise<() => void> {
    const owner = this.#owners.getOrInsertComputed(name, () => ({ taken: 0, waiting: new Set() }))
    const { max, part = () => 1 } = this.#rules
    if (owner.taken < Math.ceil(max * part())) owner.taken += 1
    else await this.#place(owner.waiting)
    return once(() => {
      const [next] = owner.waiting
      if (next !== undefined) {
        owner.waiting.delete(next)
        next()
        return
      }
      owner.taken -= 1
      if (owner.taken === 0) this.#owners.delete(name)
    })
  }

  async #place(waiting: Set<() => void>): Promise<void> {
    const { waitMs = 0, refuse } = this.#rules
    if (waitMs === 0) throw refuse()
    const { promise, resolve } = Promise.withResolvers<void>()
    waiting.add(resolve)
    const late = () => {
      throw refuse()
    }
    await limitTime(promise, waitMs, late).finally(() => waiting.delete(resolve))
  }
}

/** A function that does the work when it is first called. */
export function once(work: () => void): () => void {
  let isDone = false
  return () => {
    if (isDone) return
    isDone = true
    work()
  }
}

const answered = Symbol('answered')
type Taking = FastifyRequest & { [answered]?: () => void }

/** Half of the connections of a process. */
const listsAtOnce = 8
/** Writes of one object wait for each other: few at once end before the time limit of a lock. */
const writesAtOnce = 4
const reads = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Limits lists, writes, long answers and waiting runs of each user. Call it after the hooks that authenticate.
 *
 * @param part the share of the usual submissions that is admitted now: the limit on waiting runs of a user follows it, so that
 *   one user never fills the rest
 */
export function shareOut(app: FastifyInstance, limits: RateLimits, counts: RefusalCounts, part: () => number): void {
  const { rateLimitLongAnswers: longAtOnce, rateLimitWaitingRuns: runsAtOnce } = limits
  const share = (limit: LimitName, rules: Omit<Rules, 'refuse'>, detail: () => string) => {
    const refuse = () => {
      counts.countLimited(limit)
      return new Problem('too_many_requests', detail(), { retryAfterS: 1 })
    }
    return new Share({ ...rules, refuse })
  }
  const shares = {
    list: share(
      'lists',
      { max: listsAtOnce, waitMs: placeWithinMs },
      () => `Each of the ${listsAtOnce} lists of this user that may be read at once takes too long. Try again.`,
    ),
    write: share(
      'writes',
      { max: writesAtOnce, waitMs: placeWithinMs },
      () => `Each of the ${writesAtOnce} writes of this user that may be at work at once takes too long. Try again.`,
    ),
    run: share(
      'waiting_runs',
      { max: runsAtOnce, part },
      () =>
        `At most ${Math.ceil(runsAtOnce * part())} submissions of one user may wait at the same time. Try again shortly.`,
    ),
  }
  const longAnswers = share(
    'long_answers',
    { max: longAtOnce, waitMs: longWithinMs },
    () =>
      `At most ${longAtOnce} long answers at the same time for one user. Try again shortly, or with a smaller page_size.`,
  )
  app.decorateRequest('takeLongAnswer', function (this: FastifyRequest) {
    return longAnswers.take(userOf(this.actor))
  })
  app.decorateRequest('keepShare', () => {})
  app.decorateRequest('takeShare', async function (this: Taking, reply: FastifyReply) {
    const { takes = reads.has(this.method) ? undefined : 'write', exceptBy } = this.routeOptions.config
    const isOne = exceptBy?.some((name) => Object.hasOwn(Object(this.query), name)) === true
    if (takes === undefined || isOne || this.actor === undefined) return
    const hold = holdable(await shares[takes].take(userOf(this.actor)))
    // A client that goes away does not end the work for it: the work ends when there is an answer to send.
    this[answered] = hold()
    // An answer that is read slowly keeps its share, but for that of a write.
    if (takes !== 'write' && !reply.raw.destroyed) reply.raw.once('close', hold())
    this.keepShare = (work) => {
      const end = hold()
      work.then(end, end)
    }
  })
  app.addHook('onRequest', async (request, reply) => {
    const { laterBy } = request.routeOptions.config
    if (laterBy === undefined || !Object.hasOwn(Object(request.query), laterBy)) await request.takeShare(reply)
  })
  app.addHook('onSend', async (request: Taking) => request[answered]?.())
}

/** @returns a function that holds something; it returns one that lets go of it. `give` gives it back when nothing holds it */
function holdable(give: () => void): () => () => void {
  let holds = 0
  return () => {
    holds += 1
    return once(() => {
      holds -= 1
      if (holds === 0) give()
    })
  }
}
