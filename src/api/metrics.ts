import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { isSilent, type KnownProcess, readProcesses } from '../db/presence.ts'
import { readSums } from '../db/sums.ts'
import type { Api } from '../http/api.ts'
import type { Metrics } from '../http/metrics.ts'
import { probe, seldom } from '../http/probe.ts'
import { type Inspect, servingParts } from '../http/readiness.ts'
import type { Registry } from '../models/registry.ts'
import { probesPath } from '../paths.ts'
import type { ApplyQueue } from '../queue/backend.ts'
import { countJobs, jobStates } from '../queue/counts.ts'
import { sinceConsumptionS } from '../queue/heartbeat.ts'
import { readLedgerSize } from '../runs/ledger-size.ts'
import { readBacklog } from '../runs/queued.ts'
import { runMetrics } from '../runs/tally.ts'
import { type Counts, inTextFormat } from '../series.ts'
import { readExpiries } from '../views/expiries.ts'

/** The sources of a scrape. */
export type Sources = {
  readonly db: Db
  readonly queue: ApplyQueue
  readonly registry: Registry
  readonly inspect: Pick<Inspect, 'applies'>
}

/**
 * GET /-/metrics/, in the text format of Prometheus. It needs no token, as scrapers expect, and shows counts and times,
 * no names and no secrets. The server listens on 127.0.0.1 unless HOST is set. An operator who sets HOST and wants the
 * metrics private sets METRICS_PORT.
 */
export function metricsRoutes(app: Api, sources: Sources, metrics: Metrics): void {
  const { read, sums } = gauges(sources, metrics)
  const scrape = cached(read)
  const ofRuns = Object.values(runMetrics(sources.registry, 'gatewright_'))
  app.get(
    `${probesPath}metrics/`,
    { config: { permission: 'anyone' }, schema: { response: { 200: z.string() } } },
    async (_, reply) => {
      await scrape()
      reply.type(metrics.registry.contentType)
      const counts = sums()
      const own = await metrics.registry.metrics()
      return counts === undefined ? own : `${own}\n${inTextFormat(ofRuns, counts)}`
    },
  )
}

const cachedMs = 1_000

/** Limits reads to one a second: the route needs no token. Requests in between get the last values. */
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

function gaugeWorkers({ workers, workerSlots }: Metrics, known: readonly KnownProcess[]): { busy: number } {
  for (const { version } of known) for (const state of ['heard', 'silent']) workers.set({ version, state }, 0)
  for (const each of known) workers.inc({ version: each.version, state: isSilent(each) ? 'silent' : 'heard' })
  const heard = known.filter((each) => !isSilent(each))
  const sum = (of: 'slots' | 'busy') => heard.reduce((total, each) => total + each[of], 0)
  workerSlots.set({ state: 'busy' }, sum('busy'))
  workerSlots.set({ state: 'free' }, Math.max(0, sum('slots') - sum('busy')))
  return { busy: sum('busy') }
}

const minuteMs = 60_000

/** Reads the gauges at each scrape. While a part is away, its gauges are left out; counters stay. */
function gauges({ db, queue, inspect }: Sources, metrics: Metrics) {
  const backlog = probe(() => readBacklog(db))
  const consumption = probe(() => sinceConsumptionS(db))
  const known = probe(() => readProcesses(db, 'workers'))
  const counted = probe(() => readSums(db))
  const jobs = probe(() => Promise.all([countJobs(queue), queue.isPaused()]))
  const ledger = seldom(() => readLedgerSize(db), minuteMs)
  const expiries = seldom(() => readExpiries(db), minuteMs)
  const { up, paused, waitingRuns, runningRuns, oldestWaitingRunSeconds, lastConsumption } = metrics
  let counts: Counts | undefined

  async function gaugeDatabase(): Promise<{ sinceS: number | null }> {
    const found = await Promise.all([backlog(), consumption(), known(), counted()]).catch(() => undefined)
    up.set({ part: 'database' }, found === undefined ? 0 : 1)
    for (const each of [waitingRuns, runningRuns, oldestWaitingRunSeconds]) each.remove()
    for (const each of [metrics.workers, metrics.workerSlots]) each.reset()
    if (found === undefined) return { sinceS: null }
    const [{ waiting, oldestS }, sinceS, workers, read] = found
    counts = read
    waitingRuns.set(waiting)
    oldestWaitingRunSeconds.set(Math.max(0, oldestS ?? 0))
    // A worker that has just got a probe is busy, too.
    runningRuns.set(Math.min(waiting, gaugeWorkers(metrics, workers).busy))
    return { sinceS }
  }

  async function gaugeQueue(): Promise<{ isPaused: boolean }> {
    const found = await jobs().catch(() => undefined)
    up.set({ part: 'queue' }, found === undefined ? 0 : 1)
    metrics.jobs.reset()
    paused.remove()
    if (found === undefined) return { isPaused: false }
    const [inStates, isPaused] = found
    for (const state of jobStates) metrics.jobs.set({ state }, inStates[state])
    paused.set(isPaused ? 1 : 0)
    return { isPaused }
  }

  async function gaugeParts(): Promise<void> {
    const found = await inspect.applies()
    for (const part of servingParts) metrics.ready.set({ part }, found[part].ok ? 1 : 0)
    for (const [part, { ok }] of Object.entries(found)) metrics.applies.set({ part }, ok ? 1 : 0)
  }

  async function gaugeLedger(): Promise<void> {
    const found = await ledger().catch(() => [])
    metrics.ledgerBytes.reset()
    for (const { table, bytes } of found) metrics.ledgerBytes.set({ table }, bytes)
  }

  async function gaugeExpiries(): Promise<void> {
    const found = await expiries().catch(() => undefined)
    metrics.nextExpiry.reset()
    for (const [of, at] of Object.entries(found ?? {}))
      if (at !== null) metrics.nextExpiry.set({ of }, at.getTime() / 1_000)
  }

  return {
    sums: () => counts,
    read: async () => {
      const all = [gaugeDatabase(), gaugeQueue(), gaugeParts(), gaugeLedger(), gaugeExpiries()] as const
      const [{ sinceS }, { isPaused }] = await Promise.all(all)
      lastConsumption.remove()
      if (sinceS !== null && !isPaused) lastConsumption.set(Date.now() / 1_000 - sinceS)
    },
  }
}
