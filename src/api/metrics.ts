import { Gauge, type Registry as Metrics } from 'prom-client'
import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { isSilent, readProcesses } from '../db/presence.ts'
import { readSums } from '../db/sums.ts'
import type { Api } from '../http/api.ts'
import { probe } from '../http/probe.ts'
import { type Inspect, servingParts } from '../http/readiness.ts'
import type { Registry } from '../models/registry.ts'
import { probesPath } from '../paths.ts'
import type { ApplyQueue } from '../queue/backend.ts'
import { countJobs } from '../queue/counts.ts'
import { sinceConsumptionS } from '../queue/heartbeat.ts'
import { readBacklog } from '../runs/queued.ts'
import { readLedgerSize } from '../runs/retention.ts'
import { runMetrics } from '../runs/tally.ts'
import { type Counts, inTextFormat } from '../series.ts'
import { type Expiries, readExpiries } from '../views/expiries.ts'
import type { Waits } from '../waits/waits.ts'

type ScrapeSources = {
  readonly db: Db
  readonly queue: ApplyQueue
  readonly registry: Registry
  readonly inspect: Pick<Inspect, 'applies'>
  readonly waits: Pick<Waits, 'open'>
}

/**
 * GET /-/metrics/, in the text format of Prometheus. It needs no token, as scrapers expect, and shows counts and times,
 * no names and no secrets. The server listens on 127.0.0.1 unless HOST is set. An operator who sets HOST and wants the
 * metrics private sets METRICS_PORT.
 */
export function metricsRoutes(app: Api, sources: ScrapeSources, metrics: Metrics): void {
  // The route needs no token: the parts are asked once a second at most.
  const scrape = probe(gauges(sources, metrics), { everyMs: 1_000, withinMs: 5_000 })
  const ofRuns = Object.values(runMetrics(sources.registry, 'gatewright_'))
  app.get(
    `${probesPath}metrics/`,
    { config: { permission: 'anyone' }, schema: { response: { 200: z.string() } } },
    async (_, reply) => {
      const sums = await scrape()
      reply.type(metrics.contentType)
      const own = await metrics.metrics()
      return sums === undefined ? own : `${own}\n${inTextFormat(ofRuns, sums)}`
    },
  )
}

const everyMinute = { everyMs: 60_000 } as const

/**
 * Declares the gauges.
 *
 * @returns a function that reads them. While a part is away, its gauges are left out. It returns the sums of all processes, the
 *   last ones while the database is away
 */
function gauges({ db, queue, inspect, waits }: ScrapeSources, metrics: Metrics): () => Promise<Counts | undefined> {
  const declared = (name: string, help: string, labelNames: readonly string[]) =>
    new Gauge({ name: `gatewright_${name}`, help, labelNames, registers: [metrics] })
  /** A gauge without labels. It is left out while it has no value. */
  const single = (name: string, help: string) => {
    const gauge = declared(name, help, [])
    return (value: number | undefined) => {
      gauge.remove()
      if (value !== undefined) gauge.set(value)
    }
  }
  /** A gauge with one label. It has the series of the last values alone. */
  const labelled = (name: string, label: string, help: string) => {
    const gauge = declared(name, help, [label])
    return (values: Readonly<Record<string, number>>) => {
      gauge.reset()
      for (const [of, value] of Object.entries(values)) gauge.set({ [label]: of }, value)
    }
  }

  const up = labelled(
    'up',
    'part',
    '1: the part answered this scrape. 0: it did not, and the gauges that come from it are left out.',
  )
  const ready = labelled(
    'ready',
    'part',
    'Whether this process can serve (/-/health/ready/): 1 for each healthy part, 0 for others.',
  )
  const applies = labelled(
    'applies',
    'part',
    'Whether what is submitted will be applied (/-/health/applies/): 1 for each healthy part, 0 for others.',
  )
  const workers = declared(
    'workers',
    'Worker processes by version. Silent: not heard for 10 s; forgotten after 15 minutes.',
    ['version', 'state'],
  )
  const workerSlots = labelled(
    'worker_slots',
    'state',
    'Jobs that the workers which are heard take at once, and those that they have.',
  )
  const lastConsumption = single(
    'last_consumption_timestamp_seconds',
    'When a worker last took a job; absent when none ever did, and while the queue is paused. There is a probe to take every four seconds.',
  )
  const jobs = labelled(
    'jobs',
    'state',
    'Jobs in the queue by state, probes among them. Waiting and prioritized: for a worker. Active: a worker has it. Delayed: it comes back later, to try its run again or as the next probe. Completed and failed are kept for the dashboard, failed ones for a week; gatewright_runs_ended_total counts the ends of runs.',
  )
  const paused = single('queue_paused', '1: the queue is paused, and no worker takes a job.')
  const waitingRuns = single('waiting_runs', 'Runs that no worker has finished, those at work among them.')
  const runningRuns = single(
    'running_runs',
    'Runs that no worker has finished and that workers have at work, as they reported within the last two seconds.',
  )
  const oldestWaitingRun = single(
    'oldest_waiting_run_seconds',
    'Age of the oldest run that no worker has finished; 0 when there is none.',
  )
  const ledgerBytes = labelled('ledger_bytes', 'table', 'Size of a table of the ledger on the disk, with its indexes.')
  const nextExpiry = labelled(
    'next_expiry_timestamp_seconds',
    'of',
    'When the next token that authenticates expires, and the first certificate that a provider uses; absent when there is none.',
  )
  const waiting = labelled(
    'waits',
    'kind',
    'Requests that wait for a change in this process: of one run, of the list of runs, of a page, of configurations.',
  )

  const readDatabase = probe(() =>
    Promise.all([readBacklog(db), sinceConsumptionS(db), readProcesses(db, 'workers'), readSums(db)]),
  )
  const readQueue = probe(() => Promise.all([countJobs(queue), queue.isPaused()]))
  const readLedger = probe(() => readLedgerSize(db), everyMinute)
  const readExpiry = probe(() => readExpiries(db), everyMinute)
  let sums: Counts | undefined

  return async () => {
    const [database, inQueue, checks, tables, expiries] = await Promise.all([
      readDatabase().catch(() => undefined),
      readQueue().catch(() => undefined),
      inspect.applies(),
      readLedger().catch(() => []),
      readExpiry().catch((): Partial<Expiries> => ({})),
    ])
    up({ database: Number(database !== undefined), queue: Number(inQueue !== undefined) })
    ready(Object.fromEntries(servingParts.map((part) => [part, Number(checks[part].ok)])))
    applies(Object.fromEntries(Object.entries(checks).map(([part, { ok }]) => [part, Number(ok)])))
    waiting(waits.open())

    const [backlog, sinceS = null, known = [], counts = sums] = database ?? []
    sums = counts
    const heard = known.filter((each) => !isSilent(each))
    const sum = (of: 'slots' | 'busy') => heard.reduce((total, each) => total + each[of], 0)
    workers.reset()
    for (const { version } of known) for (const state of ['heard', 'silent']) workers.set({ version, state }, 0)
    for (const each of known) workers.inc({ version: each.version, state: isSilent(each) ? 'silent' : 'heard' })
    workerSlots(database ? { busy: sum('busy'), free: Math.max(0, sum('slots') - sum('busy')) } : {})
    waitingRuns(backlog?.waiting)
    // A worker that has just got a probe is busy, too.
    runningRuns(backlog && Math.min(backlog.waiting, sum('busy')))
    oldestWaitingRun(backlog && Math.max(0, backlog.oldestS ?? 0))

    const [inStates = {}, isPaused] = inQueue ?? []
    jobs(inStates)
    paused(isPaused === undefined ? undefined : Number(isPaused))
    lastConsumption(sinceS === null || isPaused === true ? undefined : Date.now() / 1_000 - sinceS)

    ledgerBytes(Object.fromEntries(tables.map(({ table, bytes }) => [table, bytes])))
    const ends = Object.entries(expiries).flatMap(([of, at]) => (at === null ? [] : [[of, at.getTime() / 1_000]]))
    nextExpiry(Object.fromEntries(ends))
    return sums
  }
}
