import { z } from 'zod'
import type { Db } from '../db/client.ts'
import type { Api } from '../http/api.ts'
import type { Metrics } from '../http/metrics.ts'
import { probe } from '../http/probe.ts'
import type { ApplyQueue } from '../queue/backend.ts'
import { sinceConsumptionS } from '../queue/heartbeat.ts'
import { isSilent, type KnownWorker, readWorkers } from '../queue/workers.ts'
import { readBacklog } from '../runs/backlog.ts'

/**
 * GET /-/metrics/, in the text format of Prometheus. It needs no token, as scrapers expect, and shows counts and times,
 * no names and no secrets. The server listens on 127.0.0.1 unless HOST is set. An operator who sets HOST and wants the
 * metrics private blocks `/-/` at the proxy.
 */
export function metricsRoutes(app: Api, db: Db, queue: ApplyQueue, metrics: Metrics): void {
  const scrape = cached(gauges(db, queue, metrics))
  app.get(
    '/-/metrics/',
    { config: { permission: 'anyone' }, schema: { response: { 200: z.string() } } },
    async (_, reply) => {
      await scrape()
      reply.type(metrics.registry.contentType)
      return metrics.registry.metrics()
    },
  )
}

const cachedMs = 1_000

/** Reads once a second at most: the route needs no token. Requests in between get what was read. */
function cached(read: () => Promise<void>): () => Promise<void> {
  let readAt = Number.NEGATIVE_INFINITY
  let reading = Promise.resolve()
  return () => {
    if (performance.now() - readAt < cachedMs) return reading
    readAt = performance.now()
    reading = read()
    return reading
  }
}

const jobStates = ['waiting', 'prioritized', 'active', 'delayed', 'failed', 'completed'] as const

function gaugeWorkers({ workers, workerSlots }: Metrics, known: readonly KnownWorker[]): void {
  for (const { version } of known) for (const state of ['heard', 'silent']) workers.set({ version, state }, 0)
  for (const each of known) workers.inc({ version: each.version, state: isSilent(each) ? 'silent' : 'heard' })
  const heard = known.filter((each) => !isSilent(each))
  const sum = (of: 'slots' | 'busy') => heard.reduce((total, each) => total + each[of], 0)
  workerSlots.set({ state: 'busy' }, sum('busy'))
  workerSlots.set({ state: 'free' }, Math.max(0, sum('slots') - sum('busy')))
}

/** Reads the gauges at each scrape. While a part is away, its gauges are left out. */
function gauges(db: Db, queue: ApplyQueue, metrics: Metrics): () => Promise<void> {
  const backlog = probe(() => readBacklog(db))
  const consumption = probe(() => sinceConsumptionS(db))
  const known = probe(() => readWorkers(db))
  const jobs = probe(() => queue.getJobCounts(...jobStates))
  const { up, waitingRuns, oldestWaitingRunSeconds, lastConsumption } = metrics

  async function gaugeDatabase(): Promise<void> {
    const found = await Promise.all([backlog(), consumption(), known()]).catch(() => undefined)
    up.set({ part: 'database' }, found === undefined ? 0 : 1)
    for (const each of [waitingRuns, oldestWaitingRunSeconds, lastConsumption]) each.remove()
    for (const each of [metrics.workers, metrics.workerSlots]) each.reset()
    if (found === undefined) return
    const [{ waiting, oldestS }, sinceS, workers] = found
    waitingRuns.set(waiting)
    oldestWaitingRunSeconds.set(Math.max(0, oldestS ?? 0))
    if (sinceS !== null) lastConsumption.set(Date.now() / 1_000 - sinceS)
    gaugeWorkers(metrics, workers)
  }

  async function gaugeQueue(): Promise<void> {
    const counts = await jobs().catch(() => undefined)
    up.set({ part: 'queue' }, counts === undefined ? 0 : 1)
    metrics.jobs.reset()
    if (counts === undefined) return
    for (const state of jobStates) metrics.jobs.set({ state }, counts[state] ?? 0)
  }

  return async () => {
    await Promise.all([gaugeDatabase(), gaugeQueue()])
  }
}
