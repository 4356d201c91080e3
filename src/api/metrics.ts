import { z } from 'zod'
import { readBacklog } from '../blueprint/run/backlog.ts'
import { bounded } from '../db/bounded.ts'
import type { Db } from '../db/client.ts'
import type { Api } from '../http/api.ts'
import type { Metrics } from '../http/metrics.ts'
import { probe, statementWithinMs } from '../http/probe.ts'
import type { ApplyQueue } from '../queue/backend.ts'
import { sinceConsumptionS } from '../queue/heartbeat.ts'

/**
 * GET /-/metrics/, in Prometheus' text form. It takes no token, as scrapers expect: it tells counts and times, no name
 * and no secret. The server listens on 127.0.0.1 unless HOST says otherwise; whoever opens it further and does not
 * want the world to count along keeps `/-/` behind the proxy.
 */
export function metricsRoutes(app: Api, db: Db, queue: ApplyQueue, metrics: Metrics): void {
  const gauge = gauges(db, queue, metrics)
  app.get(
    '/-/metrics/',
    { config: { permission: 'anyone' }, schema: { response: { 200: z.string() } } },
    async (_, reply) => {
      await gauge()
      reply.header('Cache-Control', 'no-store').type(metrics.registry.contentType)
      return metrics.registry.metrics()
    },
  )
}

const jobStates = ['waiting', 'active', 'delayed', 'failed', 'completed'] as const

/** Takes what only a look can tell. A part that is away loses its gauges, not the scrape. */
function gauges(db: Db, queue: ApplyQueue, metrics: Metrics): () => Promise<void> {
  const quick = bounded(db, statementWithinMs)
  const backlog = probe(() => readBacklog(quick))
  const consumption = probe(() => sinceConsumptionS(quick))
  const jobs = probe(() => queue.getJobCounts(...jobStates))
  const { up, waitingRuns, oldestWaitingRunSeconds, lastConsumption } = metrics

  async function gaugeDatabase(): Promise<void> {
    const found = await Promise.all([backlog(), consumption()]).catch(() => undefined)
    up.set({ part: 'database' }, found === undefined ? 0 : 1)
    for (const each of [waitingRuns, oldestWaitingRunSeconds, lastConsumption]) each.remove()
    if (found === undefined) return
    const [{ waiting, oldestS }, sinceS] = found
    waitingRuns.set(waiting)
    oldestWaitingRunSeconds.set(oldestS)
    if (sinceS !== null) lastConsumption.set(Date.now() / 1_000 - sinceS)
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
