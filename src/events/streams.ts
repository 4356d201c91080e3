import { fastifySSE } from '@fastify/sse'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Db } from '../db/client.ts'
import { Problem } from '../errors.ts'
import { fieldsOf } from '../http/access-log.ts'
import { auditRead } from '../http/audited-reads.ts'
import { noStore } from '../http/headers.ts'
import type { RefusalCounts } from '../http/metrics.ts'
import { Share, userOf } from '../http/shares.ts'
import type { Logger } from '../log.ts'
import { type Actor, allows } from '../permissions.ts'
import { activeJob } from '../queue/active.ts'
import type { ApplyQueue } from '../queue/backend.ts'
import { type Condition, readNow } from '../runs/changes.ts'
import { isFinished } from '../runs/life.ts'
import type { Runs } from '../runs/subscribe.ts'
import { endedEvent, idOfPlace, parseId, resetEvent, runningEvent, type StreamEvent, waitingEvent } from './event.ts'
import { Feed } from './feed.ts'
import { type Message, Outbox } from './outbox.ts'
import { shownAfterMs } from './present.ts'
import type { Reader } from './reader.ts'

/** Server-Sent Events: https://html.spec.whatwg.org/multipage/server-sent-events.html */

export const streamKinds = ['run', 'runs', 'pages'] as const

/** What a stream is of, and whose it is. */
export type StreamOf = {
  readonly kind: (typeof streamKinds)[number]
  /** Of this run alone: the stream ends with it. */
  readonly run?: string
  /** Which runs it shows. */
  readonly condition: (actor: Actor) => Condition
  readonly actor: Actor
  /** @returns the actor with the rights of this moment; null when it may not read this any more */
  again(): Promise<Actor | null>
}

export type Streams = {
  /**
   * Answers a request with events, until the client goes away, may not read them any more, does not read, or the server
   * stops. The route has `sse: 'manual'`.
   *
   * @throws {Problem} `too_many_requests` or `unavailable` when there are too many; `not_found` for no such run
   */
  serve(request: FastifyRequest, reply: FastifyReply, of: StreamOf): Promise<FastifyReply | undefined>
  /** How many are open. */
  open(): Readonly<Record<(typeof streamKinds)[number], number>>
}

/** How many there may be, and how often something is done. Tests have others. */
export const streamLimits = {
  /** Of one user, and of all in a process. The operators' pages have places of their own. */
  ...{ user: 32, process: 256, pagesOfUser: 16, pagesOfProcess: 64 },
  ...{ commentMs: 15_000, checkMs: 30_000, checkAgainMs: 5_000 },
}
export type StreamLimits = typeof streamLimits

/** A client waits so long before it connects again. */
const retryMs = 2_000

type Parts = {
  readonly db: Db
  readonly runs: Runs
  readonly queue: ApplyQueue
  readonly log: Logger
  readonly metrics: Pick<RefusalCounts, 'countLimited'>
}

export function openStreams(app: FastifyInstance, parts: Parts, limits: StreamLimits = streamLimits): Streams {
  // Called, not registered: a registered plugin loads after the routes that use it.
  void fastifySSE(app, { heartbeatInterval: limits.commentMs, serializer: String })
  const feed = new Feed(parts)
  const open = new Map<(why: End) => void, StreamOf['kind']>()
  const onRefused = () => parts.metrics.countLimited('streams')
  const shareOf = (ofUser: number, ofProcess: number) => {
    const detail = tooMany(ofUser, 'for one user')
    const refusal = () => new Problem('too_many_requests', detail, { retryAfterS: 1 })
    return { share: new Share({ max: ofUser, refusal, onRefused }), ofProcess }
  }
  const api = shareOf(limits.user, limits.process)
  const pages = shareOf(limits.pagesOfUser, limits.pagesOfProcess)
  let closing: Promise<void> | undefined
  app.addHook('preClose', async () => {
    closing = feed.close()
    for (const end of open.keys()) end('stopping')
  })
  app.addHook('onClose', () => closing)

  function take({ kind, actor }: StreamOf): Promise<() => void> {
    const { share, ofProcess } = kind === 'pages' ? pages : api
    const taken = [...open.values()].filter((each) => (each === 'pages') === (kind === 'pages')).length
    if (taken >= ofProcess)
      throw new Problem('unavailable', tooMany(ofProcess, 'with this process'), { retryAfterS: 10 })
    return share.take(userOf(actor))
  }

  return {
    open: () => {
      const kinds = [...open.values()]
      const count = (kind: StreamOf['kind']) => kinds.filter((each) => each === kind).length
      return { run: count('run'), runs: count('runs'), pages: count('pages') }
    },
    serve: async (request, reply, of) => {
      if (request.method === 'HEAD') return answerHead(parts, reply, of)
      const giveBack = await take(of)
      const stream = new Stream(parts, feed, limits, of, request, reply)
      const end = (why: End) => stream.end(why)
      open.set(end, of.kind)
      stream.onEnd(() => {
        open.delete(end)
        giveBack()
      })
      try {
        return await stream.serve()
      } catch (error) {
        stream.end('failed')
        throw error
      }
    },
  }
}

/** HEAD has no body to wait for. */
async function answerHead({ db }: Parts, reply: FastifyReply, { run, condition, actor }: StreamOf) {
  if (run !== undefined) await readOne(db, run, condition(actor))
  return reply.type('text/event-stream').send('')
}

/** @throws {Problem} `not_found` when there is none, or none that the caller may see */
async function readOne(db: Db, id: string, condition: Condition) {
  const [run] = await readNow(db, [id], [condition])
  if (run?.seen[0] !== true) throw new Problem('not_found', 'There is no such run.')
  return run
}

const tooMany = (most: number, where: string): string =>
  `At most ${most} streams of events at the same time ${where}. Close one, or try again later.`

/** Why a stream ended, for the log. */
type End = 'ended' | 'client' | 'rights' | 'slow' | 'stopping' | 'failed'

class Stream implements Reader {
  readonly #outbox = new Outbox()
  readonly #parts: Parts
  readonly #feed: Feed
  readonly #limits: StreamLimits
  readonly #of: StreamOf
  readonly #request: FastifyRequest
  readonly #reply: FastifyReply
  #watching: NodeJS.Timeout | undefined
  #checking: NodeJS.Timeout | undefined
  readonly #onEnds: (() => void)[] = []
  #actor: Actor
  /** Events of one run that come before its present state was sent; then undefined. */
  #early: StreamEvent[] | undefined
  /** Of one run, what was sent. */
  readonly #sent = new Set<string>()
  #isOpen = false
  #isOver = false
  #takenBefore = -1

  condition: Condition
  seesQueue: boolean

  constructor(
    parts: Parts,
    feed: Feed,
    limits: StreamLimits,
    of: StreamOf,
    request: FastifyRequest,
    reply: FastifyReply,
  ) {
    this.#parts = parts
    this.#feed = feed
    this.#limits = limits
    this.#of = of
    this.#request = request
    this.#reply = reply
    this.#actor = of.actor
    this.condition = of.condition(of.actor)
    this.seesQueue = this.#mayQueue(of.actor)
    this.#early = of.run === undefined ? undefined : []
  }

  onEnd(call: () => void): void {
    this.#onEnds.push(call)
  }

  async serve(): Promise<FastifyReply | undefined> {
    const reply = this.#reply
    reply.sse.onClose(() => this.end('client'))
    const { lastEventId } = reply.sse
    const isOfRun = this.#of.run !== undefined
    const cursor = lastEventId === null || isOfRun ? null : (parseId(lastEventId) ?? 'unknown')
    const { position, now, isBehind, reset } = await this.#feed.join(this, cursor)
    if (this.#isOver) this.#feed.leave(this)
    if (isOfRun && (await this.#begin()) === 'over') {
      this.end('ended')
      return reply.code(204).send()
    }
    await auditRead(this.#parts.db, this.#request)
    reply.header('Cache-Control', noStore)
    // It is never used again: so closing the server needs not wait for it.
    reply.header('Connection', 'close')
    const first = { retry: retryMs, ...(!isBehind && !isOfRun && { id: idOfPlace(position, now) }) }
    reply.sse.sendHeaders(200)
    if (reset !== null) this.#put([resetEvent(reset)])
    this.#isOpen = true
    this.#watching = setInterval(() => this.#watch(), this.#limits.commentMs).unref()
    this.#checkLater(this.#limits.checkMs)
    await reply.sse.send(this.#messages(first))
    return undefined
  }

  async send(events: readonly StreamEvent[]): Promise<void> {
    if (this.#isOver) return
    if (this.#early !== undefined) {
      this.#early.push(...events)
      return
    }
    this.#put(this.#of.run === undefined ? events : this.#news(events))
    if (this.#of.run !== undefined && events.some(({ event }) => event === 'ended')) this.end('ended')
    await this.#outbox.emptied()
  }

  tooSlow(): void {
    this.end('slow')
  }

  end(why: End): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#feed.leave(this)
    clearInterval(this.#watching)
    clearTimeout(this.#checking)
    this.#outbox.end()
    for (const call of this.#onEnds) call()
    if (!this.#isOpen) return
    const facts = { ...fieldsOf(this.#request), kind: this.#of.kind, why, events: this.#outbox.taken }
    this.#request.log.info(facts, 'a stream of events ended')
    if (why === 'slow') this.#reply.raw.destroy()
    // What the client has not read by then is not worth waiting for.
    if (why === 'stopping') setTimeout(() => this.#reply.raw.destroy(), lastWordsMs).unref()
  }

  /**
   * The present state of one run. @returns `over` when it has ended, and the client knows
   *
   * @throws {Problem} `not_found` when there is none, or none that the caller may see
   */
  async #begin(): Promise<'over' | 'going'> {
    const run = await readOne(this.#parts.db, this.#of.run ?? '', this.condition)
    const event = isFinished(run.state) ? endedEvent(run) : await this.#presentOf(run)
    if (isFinished(run.state) && event.id === this.#reply.sse.lastEventId) return 'over'
    const early = this.#early ?? []
    this.#early = undefined
    void this.send([event])
    void this.send(early)
    return 'going'
  }

  async #presentOf(run: Awaited<ReturnType<typeof readOne>>): Promise<StreamEvent> {
    const job = run.isLocked ? await activeJob(this.#parts.queue, run) : null
    return job !== null && job.sinceMs >= shownAfterMs ? runningEvent(run, job.progress) : waitingEvent(run)
  }

  /** The events of one run that were not sent yet. */
  #news(events: readonly StreamEvent[]): StreamEvent[] {
    const nameOf = ({ once, id }: StreamEvent) => once ?? id
    const news = events.filter((event) => !this.#sent.has(nameOf(event) ?? ''))
    for (const name of news.map(nameOf)) if (name !== undefined) this.#sent.add(name)
    return news
  }

  async *#messages(first: Message): AsyncGenerator<Omit<Message, 'data'> & { data: string | undefined }> {
    yield { ...first, data: undefined }
    for await (const message of this.#outbox.messages()) yield { data: undefined, ...message }
  }

  #put(events: readonly StreamEvent[]): void {
    const isViewer = allows(this.#actor, 'view_run')
    const messages = events.map(({ event, id, data, dataForViewers }) => ({
      event,
      ...(id !== undefined && { id }),
      data: isViewer ? (dataForViewers ?? data) : data,
    }))
    if (!this.#outbox.put(messages)) this.end('slow')
  }

  /** With each comment: tells the client where it is, and ends the stream of one that has read nothing since the last. */
  #watch(): void {
    const { taken, isEmpty } = this.#outbox
    if (!isEmpty && taken === this.#takenBefore) {
      this.end('slow')
      return
    }
    this.#takenBefore = taken
    const place = this.#of.run === undefined ? this.#feed.placeOf(this) : undefined
    if (place !== undefined) this.#outbox.put([{ id: idOfPlace(place.position, place.now) }])
  }

  #checkLater(ms: number): void {
    if (!this.#isOver) this.#checking = setTimeout(() => void this.#check(), ms).unref()
  }

  /** Whether the caller may still read this, by the token and the rights of this moment. */
  async #check(): Promise<void> {
    try {
      const actor = await this.#of.again()
      this.#request.log.debug({ mayRead: actor !== null }, 'the rights of a stream were read')
      if (actor === null) return this.end('rights')
      this.#actor = actor
      this.condition = this.#of.condition(actor)
      this.seesQueue = this.#mayQueue(actor)
      this.#feed.conditionChanged()
      if (this.#of.run !== undefined && (await this.#begin()) === 'over') return this.end('ended')
      this.#checkLater(this.#limits.checkMs)
    } catch (error) {
      if (error instanceof Problem && error.code === 'unavailable') this.#checkLater(this.#limits.checkAgainMs)
      else this.end('rights')
    }
  }

  #mayQueue(actor: Actor): boolean {
    return this.#of.run === undefined && allows(actor, 'view_queue')
  }
}

const lastWordsMs = 500
