import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../errors.ts'
import type { RefusalCounts } from './metrics.ts'
import type { RateLimits } from './rate-limit.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What a request takes of what all tokens share, from its start to the end of its answer. */
    takes?: 'list' | 'run'
  }
  interface FastifyRequest {
    /**
     * Takes a long answer of the token's share.
     *
     * @returns gives it back
     * @throws {Problem} `too_many_requests`
     */
    takeLongAnswer: () => () => void
    /** Keeps what the request takes until this work has ended, too: it may outlast the answer. */
    keepShare: (work: Promise<unknown>) => void
  }
}

/** Counts what is under way for each token, in this process: one token must not take it all. */
export class Share {
  readonly #max: number
  readonly #refusal: string
  readonly #onRefused: () => void
  readonly #taken = new Map<string, number>()

  constructor(max: number, refusal: string, onRefused: () => void = () => {}) {
    this.#max = max
    this.#refusal = refusal
    this.#onRefused = onRefused
  }

  /** @returns gives it back, once. @throws {Problem} `too_many_requests` when the token has its share already */
  take(token: string): () => void {
    const taken = this.#taken.get(token) ?? 0
    if (taken >= this.#max) {
      this.#onRefused()
      throw new Problem('too_many_requests', this.#refusal, { retryAfterS: 1 })
    }
    this.#taken.set(token, taken + 1)
    let isTaken = true
    return () => {
      if (!isTaken) return
      isTaken = false
      const left = (this.#taken.get(token) ?? 1) - 1
      if (left === 0) this.#taken.delete(token)
      else this.#taken.set(token, left)
    }
  }
}

const givesBack = Symbol('gives back')
type Taking = FastifyRequest & { [givesBack]?: AtEnd }

/** Limits lists, long answers and waiting runs of each token. After the hooks that authenticate. */
export function shareOut(app: FastifyInstance, limits: RateLimits, { countLimited }: RefusalCounts): void {
  const shares = {
    list: new Share(
      limits.rateLimitLists,
      `At most ${limits.rateLimitLists} lists at the same time with one access token. Try again when one has arrived.`,
      () => countLimited('lists'),
    ),
    run: new Share(
      limits.rateLimitWaitingRuns,
      `At most ${limits.rateLimitWaitingRuns} submissions may wait at the same time with one access token. Try again shortly.`,
      () => countLimited('waiting_runs'),
    ),
  }
  const longAnswers = new Share(
    limits.rateLimitLongAnswers,
    `At most ${limits.rateLimitLongAnswers} long answers at the same time with one access token. Try again shortly, or with a smaller page_size.`,
    () => countLimited('long_answers'),
  )
  app.decorateRequest('takeLongAnswer', function (this: FastifyRequest) {
    return longAnswers.take(this.tokenKey ?? '')
  })
  app.decorateRequest('keepShare', function (this: Taking, work: Promise<unknown>) {
    this[givesBack]?.keep(work)
  })
  app.addHook('onRequest', async (request: Taking, reply) => {
    const { takes } = request.routeOptions.config
    if (takes === undefined || request.tokenKey === undefined) return
    request[givesBack] = atEndOf(reply, shares[takes].take(request.tokenKey))
  })
  app.addHook('onSend', async (request: Taking) => request[givesBack]?.answered())
}

type AtEnd = { answered(): void; keep(work: Promise<unknown>): void }

/**
 * A client that goes away does not end the work for it: that ends when there is an answer to send, and when nothing is left
 * that outlasts the answer.
 */
function atEndOf(reply: FastifyReply, give: () => void): AtEnd {
  let [isClosed, isAnswered, kept] = [false, false, 0]
  const giveAtEnd = () => {
    if (isClosed && isAnswered && kept === 0) give()
  }
  reply.raw.once('close', () => {
    isClosed = true
    giveAtEnd()
  })
  return {
    answered: () => {
      isAnswered = true
      giveAtEnd()
    },
    keep: (work) => {
      kept += 1
      const end = () => {
        kept -= 1
        giveAtEnd()
      }
      work.then(end, end)
    },
  }
}
