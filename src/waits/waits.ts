import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Db } from '../db/client.ts'
import { Problem } from '../errors.ts'
import type { RefusalCounts } from '../http/metrics.ts'
import { Share, userOf } from '../http/shares.ts'
import type { Logger } from '../log.ts'
import type { ApplyQueue } from '../queue/backend.ts'
import { type Standing, Watch } from './watch.ts'

/** Requests that wait a limited time for a change of one run, of the list of runs, or of a page of the operators. */

const waitKinds = ['run', 'runs', 'pages'] as const
type WaitKind = (typeof waitKinds)[number]

/** The longest wait, in seconds. */
export const longestWait = 30

/** The limits on waiting requests, and the time between two questions for changes. Tests have others. */
export const waitLimits = {
  /** The most requests of one user, and of all in a process. The operators' pages have places of their own. */
  user: 32,
  process: 256,
  pagesOfUser: 16,
  pagesOfProcess: 64,
  everyMs: 1_000,
}
export type WaitLimits = typeof waitLimits

type For = { readonly kind: WaitKind; readonly seconds: number }

export type Waits = {
  /** The state of a run, for `untilRunChanged`. Call it before the run is read. */
  standing(run: string): Promise<Standing>
  /**
   * Waits until the run has another state, time is up, the client is gone, or the server stops.
   *
   * @returns whether the run has another state
   * @throws {Problem} `too_many_requests` or `unavailable` when too many wait
   */
  untilRunChanged(request: FastifyRequest, reply: FastifyReply, standing: Standing, seconds: number): Promise<boolean>
  /**
   * Waits until the revision is another one, time is up, the client is gone, or the server stops.
   *
   * @returns the revision, older than anything that is read afterwards
   * @throws {Problem} `too_many_requests` or `unavailable` when too many wait
   */
  untilChanged(request: FastifyRequest, reply: FastifyReply, since: string | undefined, of: For): Promise<string>
  /** The number of waiting requests. */
  open(): Readonly<Record<WaitKind, number>>
}

type Parts = {
  readonly db: Db
  readonly queue: ApplyQueue
  readonly log: Logger
  readonly metrics: Pick<RefusalCounts, 'countLimited'>
}

export function openWaits(app: FastifyInstance, parts: Parts, limits: WaitLimits = waitLimits): Waits {
  const watch = new Watch(parts, limits.everyMs)
  const open = { run: 0, runs: 0, pages: 0 }
  const shareOf = (max: number) =>
    new Share({
      max,
      refuse: () => {
        parts.metrics.countLimited('waits')
        return new Problem('too_many_requests', tooMany(max, 'of one user'), { retryAfterS: 1 })
      },
    })
  const [api, pages] = [shareOf(limits.user), shareOf(limits.pagesOfUser)]
  app.addHook('preClose', () => watch.close())

  /** @throws {Problem} */
  async function waiting<Result>(
    request: FastifyRequest,
    reply: FastifyReply,
    kind: WaitKind,
    wait: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const isPage = kind === 'pages'
    const most = isPage ? limits.pagesOfProcess : limits.process
    if ((isPage ? open.pages : open.run + open.runs) >= most)
      throw new Problem('unavailable', tooMany(most, 'in this process'), { retryAfterS: 10 })
    const giveBack = await (isPage ? pages : api).take(userOf(request.actor))
    const gone = new AbortController()
    const leave = () => gone.abort()
    reply.raw.once('close', leave)
    open[kind] += 1
    const before = performance.now()
    try {
      return await wait(gone.signal)
    } finally {
      request.waitedMs += performance.now() - before
      open[kind] -= 1
      reply.raw.off('close', leave)
      giveBack()
    }
  }

  return {
    standing: (run) => watch.standing(run),
    untilRunChanged: (request, reply, standing, seconds) =>
      waiting(request, reply, 'run', (signal) => watch.untilRunChanged(standing, seconds * 1_000, signal)),
    untilChanged: (request, reply, since, { kind, seconds }) => {
      const wait = (signal: AbortSignal) => watch.untilChanged(since, seconds * 1_000, signal)
      return seconds > 0 ? waiting(request, reply, kind, wait) : wait(AbortSignal.abort())
    },
    open: () => ({ ...open }),
  }
}

const tooMany = (most: number, where: string): string =>
  `At most ${most} requests ${where} may wait for a change at the same time. Try again later.`
