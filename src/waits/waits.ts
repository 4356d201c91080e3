import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Db } from '../db/client.ts'
import { isConnectionLost } from '../db/errors.ts'
import { Problem } from '../errors.ts'
import { tokenHash } from '../http/access.ts'
import type { RefusalCounts } from '../http/metrics.ts'
import { Share, userOf } from '../http/shares.ts'
import { causeOf, type Logger } from '../log.ts'
import type { ApplyQueue } from '../queue/backend.ts'
import { type Caller, type Change, type Changes, mayConcern, readChanges } from './consumer-changes.ts'
import { type Now, olderOf, parseRevision, readNow, textOf } from './revision.ts'

type WaitKind = 'run' | 'runs' | 'pages' | 'consumers'

/** The longest wait, in seconds. */
export const longestWait = 30

/** The limits on waiting requests, and the time between two questions for changes. Tests have others. */
export const waitLimits = {
  /** The most requests of one user, and of all in a process. The operators' pages and consumers have places of their own. */
  user: 32,
  process: 256,
  pagesOfUser: 16,
  pagesOfProcess: 64,
  consumersOfUser: 100,
  consumersOfProcess: 1_000,
  everyMs: 1_000,
}
export type WaitLimits = typeof waitLimits

type Parts = {
  readonly db: Db
  readonly queue: ApplyQueue
  readonly log: Logger
  readonly metrics: Pick<RefusalCounts, 'countLimited'>
}

/** The snapshot of what a waiter has read. */
type Since = { since: string }

/** A waiter. `known` is the state of the run, or the digest of the revision. */
type Waiter = Since & { readonly run?: string; readonly known: string }

/** A consumer that waits. `rights` is their digest. */
type Follower = Since & {
  readonly caller: Caller
  readonly rights: string | null
  readonly concerns: (change: Change) => boolean
}

/** Those that wait, each with the function that ends its wait, and takes what it waited for. */
type Waiting<Each, Result> = Map<Each, (result?: Result) => void>

/** The places of some kinds of waits. @property most in this process */
type Places = { readonly share: Share; readonly most: number; readonly kinds: readonly WaitKind[] }

/**
 * Requests that wait a limited time for a change of one run, of the list of runs, of a page of the operators, or of configurations.
 * The database and the queue are asked at intervals for all of a process, and not at all without any. Each wait ends, too, when
 * time is up, the client is gone, or the server stops, and fails with a {@link Problem}, `too_many_requests` or `unavailable`,
 * when too many wait.
 */
export class Waits {
  readonly #parts: Parts
  readonly #limits: WaitLimits
  readonly #open = { run: 0, runs: 0, pages: 0, consumers: 0 }
  readonly #places: Readonly<Record<WaitKind, Places>>
  readonly #waiters: Waiting<Waiter, Now> = new Map()
  readonly #followers: Waiting<Follower, true> = new Map()
  #loop: Promise<void> | undefined
  readonly #closing = new AbortController()

  constructor(app: FastifyInstance, parts: Parts, limits: WaitLimits = waitLimits) {
    this.#parts = parts
    this.#limits = limits
    const shareOf = (max: number) =>
      new Share({
        max,
        refuse: () => {
          parts.metrics.countLimited('waits')
          return new Problem('too_many_requests', tooMany(max, 'of one user'), { retryAfterS: 1 })
        },
      })
    const ofApi = { share: shareOf(limits.user), most: limits.process, kinds: ['run', 'runs'] } as const
    this.#places = {
      run: ofApi,
      runs: ofApi,
      pages: { share: shareOf(limits.pagesOfUser), most: limits.pagesOfProcess, kinds: ['pages'] },
      consumers: { share: shareOf(limits.consumersOfUser), most: limits.consumersOfProcess, kinds: ['consumers'] },
    }
    app.addHook('preClose', () => this.#close())
  }

  /** The number of waiting requests. */
  readonly open = (): Readonly<Record<WaitKind, number>> => ({ ...this.#open })

  /**
   * The state of a run, for `untilRunChanged`. Call it before the run is read.
   *
   * @throws {Problem} `unavailable` when the database does not answer
   */
  async standing(run: string): Promise<Required<Waiter>> {
    const now = await readNow(this.#parts, null, [run])
    return { run, known: standingIn(now, run), since: now.snapshot }
  }

  /** Waits until the run has another state. @returns whether it has */
  async untilRunChanged(
    request: FastifyRequest,
    reply: FastifyReply,
    standing: Required<Waiter>,
    seconds: number,
  ): Promise<boolean> {
    const wait = (signal: AbortSignal) => this.#until(this.#waiters, standing, seconds, signal)
    return (await this.#counted(request, reply, 'run', wait)) !== undefined
  }

  /**
   * Waits until the revision is another one, which it may be without a difference that the caller sees.
   *
   * @param since a revision; without one, and with one of another installation, nothing is waited for
   * @returns the revision, older than anything that is read afterwards
   * @throws {Problem} `unavailable`, also when the database does not answer
   */
  async untilChanged(
    request: FastifyRequest,
    reply: FastifyReply,
    since: string | undefined,
    { kind, seconds }: { readonly kind: WaitKind; readonly seconds: number },
  ): Promise<string> {
    const known = since === undefined ? undefined : parseRevision(since)
    const wait = async (signal?: AbortSignal) => {
      const now = await readNow(this.#parts, known?.snapshot ?? null, [])
      if (now.isChanged || now.digest !== known?.digest || signal === undefined) return textOf(now)
      const waiter = { known: now.digest, since: now.snapshot }
      return textOf((await this.#until(this.#waiters, waiter, seconds, signal)) ?? now)
    }
    return seconds > 0 ? this.#counted(request, reply, kind, wait) : wait()
  }

  /** The changes for consumers since a snapshot, with the digest of the rights of the caller. @throws {Problem} */
  readonly changes = (request: FastifyRequest, since: string | null): Promise<Changes> =>
    readChanges(this.#parts.db, since, [callerOf(request)])

  /**
   * Waits until there is a change that concerns a consumer, or the rights of the request are others.
   *
   * @param standing the changes that the caller has read
   * @returns whether there is such a change, or other rights
   */
  async untilConsumersChanged(
    request: FastifyRequest,
    reply: FastifyReply,
    { standing, concerns }: { readonly standing: Changes; readonly concerns: Follower['concerns'] },
    seconds: number,
  ): Promise<boolean> {
    const rights = standing.rights[0] ?? null
    const follower = { caller: callerOf(request), rights, concerns, since: standing.snapshot }
    const wait = (signal: AbortSignal) => this.#until(this.#followers, follower, seconds, signal)
    return (await this.#counted(request, reply, 'consumers', wait)) === true
  }

  /** Waits as one of the requests that count. */
  async #counted<Result>(
    request: FastifyRequest,
    reply: FastifyReply,
    kind: WaitKind,
    wait: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const { share, most, kinds } = this.#places[kind]
    if (kinds.reduce((sum, each) => sum + this.#open[each], 0) >= most)
      throw new Problem('unavailable', tooMany(most, 'in this process'), { retryAfterS: 10 })
    const giveBack = await share.take(userOf(request.actor))
    const gone = new AbortController()
    const leave = () => gone.abort()
    if (reply.raw.destroyed) leave()
    reply.raw.once('close', leave)
    this.#open[kind] += 1
    const before = performance.now()
    try {
      return await wait(gone.signal)
    } finally {
      request.waitedMs += performance.now() - before
      this.#open[kind] -= 1
      reply.raw.off('close', leave)
      giveBack()
    }
  }

  /** @returns what it waited for; undefined when that has not come */
  async #until<Each, Result>(
    all: Waiting<Each, Result>,
    waiter: Each,
    seconds: number,
    signal: AbortSignal,
  ): Promise<Result | undefined> {
    if (this.#closing.signal.aborted || signal.aborted) return undefined
    const { promise, resolve } = Promise.withResolvers<Result | undefined>()
    all.set(waiter, resolve)
    this.#loop ??= this.#work()
    const timer = setTimeout(resolve, 1_000 * seconds, undefined)
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
    const result = await promise
    clearTimeout(timer)
    all.delete(waiter)
    return result
  }

  async #work(): Promise<void> {
    const { signal } = this.#closing
    const isNeeded = () => this.#waiters.size + this.#followers.size > 0
    while (isNeeded()) {
      await delay(this.#limits.everyMs, undefined, { ref: false, signal }).catch(() => {})
      if (signal.aborted) break
      await Promise.all([
        this.#waiters.size > 0 && this.#asked(() => this.#ask()),
        this.#followers.size > 0 && this.#asked(() => this.#askChanges()),
      ])
    }
    this.#loop = undefined
  }

  async #asked(ask: () => Promise<void>): Promise<void> {
    try {
      await ask()
    } catch (error) {
      if (error instanceof Problem || isConnectionLost(error))
        this.#parts.log.debug({ cause: causeOf(error) }, 'cannot ask what has changed')
      else this.#parts.log.error({ err: error }, 'cannot ask what has changed')
    }
  }

  async #ask(): Promise<void> {
    const waiters = [...this.#waiters.keys()]
    const runs = waiters.flatMap(({ run }) => run ?? [])
    const now = await readNow(this.#parts, sinceOf(waiters.filter(({ run }) => run === undefined)), [...new Set(runs)])
    for (const waiter of waiters) {
      const { run, known } = waiter
      waiter.since = now.snapshot
      const isMet = run === undefined ? now.isChanged || now.digest !== known : standingIn(now, run) !== known
      if (isMet) this.#waiters.get(waiter)?.(now)
    }
  }

  async #askChanges(): Promise<void> {
    const followers = [...this.#followers.keys()]
    const callers = followers.map(({ caller }) => caller)
    const changes = await readChanges(this.#parts.db, sinceOf(followers), callers)
    for (const [index, follower] of followers.entries()) {
      follower.since = changes.snapshot
      const isMet = changes.rights[index] !== follower.rights || mayConcern(changes, follower.concerns)
      if (isMet) this.#followers.get(follower)?.(true)
    }
  }

  async #close(): Promise<void> {
    this.#closing.abort()
    for (const end of [...this.#waiters.values(), ...this.#followers.values()]) end()
    await this.#loop
  }
}

/** A question is for all that wait: those who come between two have read more than the others. */
const sinceOf = (all: readonly Since[]): string | null =>
  all.map(({ since }) => since).reduce<string | null>(olderOf, null)

const callerOf = (request: FastifyRequest): Caller => ({ token: tokenHash(request), user: request.actor.pk ?? 0 })

/** The state of a run: '' when it is gone. */
const standingIn = ({ runs }: Now, run: string): string => runs.get(run) ?? ''

const tooMany = (most: number, where: string): string =>
  `At most ${most} requests ${where} may wait for a change at the same time. Try again later.`
