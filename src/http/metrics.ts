import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { catalogue, type ProblemCode } from '../errors.ts'
import { dashboardPath } from '../paths.ts'
import { openRegistry, type PoolUse } from '../process-metrics.ts'
import { runFormat } from '../runs/format.ts'

/**
 * The metrics of an API process. Labels are closed sets: route patterns, codes of the catalogue. A slug, a user or an id is never
 * a label: those are unbounded, and a reader of metrics may not see them. The counts of runs are in runs/tally.ts.
 */
export type Metrics = ReturnType<typeof openMetrics>

/** The counts for the code that refuses requests. */
export type RefusalCounts = Pick<Metrics, 'countFailedLogin' | 'countLimited'>

const buckets = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20]

/** The limits on one user: the settings RATE_LIMIT_*, lists that wait, and waits for a change. */
export const limitNames = ['requests', 'lists', 'long_answers', 'waiting_runs', 'waits', 'writes'] as const
export type LimitName = (typeof limitNames)[number]

const doors = ['api', 'dashboard'] as const

export function openMetrics(pool: () => PoolUse) {
  const registry = openRegistry({ program: 'api', runFormat, pool })
  const registers = [registry]
  const failedLogins = new Counter({
    name: 'gatewright_failed_logins_total',
    help: 'Access tokens that were missing, unknown, expired or of another use, by where they were sent.',
    labelNames: ['to'],
    registers,
  })
  const limited = new Counter({
    name: 'gatewright_rate_limited_total',
    help: 'Requests refused with 429 by a limit of the settings RATE_LIMIT_*, of lists that wait, or of waits for a change.',
    labelNames: ['limit'],
    registers,
  })
  // A series that begins with its first event is missed by increase().
  for (const to of doors) failedLogins.inc({ to }, 0)
  for (const limit of limitNames) limited.inc({ limit }, 0)
  return {
    registry,
    requests: new Counter({
      name: 'gatewright_http_requests_total',
      help: 'Answers sent, by route pattern; unmatched is a path without a route.',
      labelNames: ['method', 'route', 'status'],
      registers,
    }),
    requestSeconds: new Histogram({
      name: 'gatewright_http_request_seconds',
      help: 'From the arrival of a request to the end of its answer, by route pattern.',
      labelNames: ['method', 'route'],
      buckets,
      registers,
    }),
    refused: new Counter({
      name: 'gatewright_submissions_refused_total',
      help: 'Submissions answered with an error, by route pattern and code. Those that were recorded before are counted as runs, too.',
      labelNames: ['route', 'code'],
      registers,
    }),
    countFailedLogin: ({ routeOptions: { url = '' } }: Pick<FastifyRequest, 'routeOptions'>) =>
      failedLogins.inc({ to: url.startsWith(dashboardPath) ? 'dashboard' : 'api' }),
    countLimited: (limit: LimitName) => limited.inc({ limit }),
    ...partGauges(registry),
    ...queueGauges(registry),
    ...ledgerGauges(registry),
  }
}

/** The gauges that are read at each scrape. */
function partGauges(registry: Registry) {
  const registers = [registry]
  return {
    up: new Gauge({
      name: 'gatewright_up',
      help: '1: the part answered this scrape. 0: it did not, and the gauges that come from it are left out.',
      labelNames: ['part'],
      registers,
    }),
    ready: new Gauge({
      name: 'gatewright_ready',
      help: 'Whether this process can serve (/-/health/ready/): 1 for each healthy part, 0 for others.',
      labelNames: ['part'],
      registers,
    }),
    applies: new Gauge({
      name: 'gatewright_applies',
      help: 'Whether what is submitted will be applied (/-/health/applies/): 1 for each healthy part, 0 for others.',
      labelNames: ['part'],
      registers,
    }),
    workers: new Gauge({
      name: 'gatewright_workers',
      help: 'Worker processes by version. Silent: not heard for 10 s; forgotten after 15 minutes.',
      labelNames: ['version', 'state'],
      registers,
    }),
    workerSlots: new Gauge({
      name: 'gatewright_worker_slots',
      help: 'Jobs that the workers which are heard take at once, and those that they have.',
      labelNames: ['state'],
      registers,
    }),
    lastConsumption: new Gauge({
      name: 'gatewright_last_consumption_timestamp_seconds',
      help: 'When a worker last took a job; absent when none ever did, and while the queue is paused. There is a probe to take every four seconds.',
      registers,
    }),
  }
}

function queueGauges(registry: Registry) {
  const registers = [registry]
  return {
    jobs: new Gauge({
      name: 'gatewright_jobs',
      help: 'Jobs in the queue by state, probes among them. Waiting and prioritized: for a worker. Active: a worker has it. Delayed: it comes back later, to try its run again or as the next probe. Completed and failed are kept for the dashboard, failed ones for a week; gatewright_runs_ended_total counts the ends of runs.',
      labelNames: ['state'],
      registers,
    }),
    paused: new Gauge({
      name: 'gatewright_queue_paused',
      help: '1: the queue is paused, and no worker takes a job.',
      registers,
    }),
    waitingRuns: new Gauge({
      name: 'gatewright_waiting_runs',
      help: 'Runs that no worker has finished, those at work among them.',
      registers,
    }),
    runningRuns: new Gauge({
      name: 'gatewright_running_runs',
      help: 'Runs that no worker has finished and that workers have at work, as they reported within the last two seconds.',
      registers,
    }),
    oldestWaitingRunSeconds: new Gauge({
      name: 'gatewright_oldest_waiting_run_seconds',
      help: 'Age of the oldest run that no worker has finished; 0 when there is none.',
      registers,
    }),
  }
}

/** The gauges that are read once a minute at most. */
function ledgerGauges(registry: Registry) {
  const registers = [registry]
  return {
    ledgerBytes: new Gauge({
      name: 'gatewright_ledger_bytes',
      help: 'Size of a table of the ledger on the disk, with its indexes.',
      labelNames: ['table'],
      registers,
    }),
    nextExpiry: new Gauge({
      name: 'gatewright_next_expiry_timestamp_seconds',
      help: 'When the next token that authenticates expires, and the first certificate that a provider uses; absent when there is none.',
      labelNames: ['of'],
      registers,
    }),
  }
}

/** Statuses of failures of the service. Their series begin at 0. */
const failures = [500, 503]

/** Codes of an answer that may follow a submission. */
const refusals = (Object.keys(catalogue) as ProblemCode[]).filter((code) => {
  const status: number = catalogue[code]
  return status >= 400 && ![404, 405, 408, 410, 431].includes(status)
})

/** @param open the number of waiting requests, by kind */
export function gaugeWaits(
  { registry }: Pick<Metrics, 'registry'>,
  open: () => Readonly<Record<string, number>>,
): void {
  new Gauge({
    name: 'gatewright_waits',
    help: 'Requests that wait for a change in this process: of one run, of the list of runs, of a page.',
    labelNames: ['kind'],
    registers: [registry],
    collect() {
      for (const [kind, count] of Object.entries(open())) this.set({ kind }, count)
    },
  })
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The time that the request waited for a change by its own wish: it does not count as time of the answer. */
    waitedMs: number
  }
}

/** Counts each answer, and each submission that was refused. */
export function countRequests(app: FastifyInstance, { requests, requestSeconds, refused }: Metrics): void {
  app.decorateRequest('waitedMs', 0)
  app.addHook('onRoute', ({ method, url, config }) => {
    for (const each of [method].flat().filter((name) => name !== 'HEAD')) {
      for (const status of failures) requests.inc({ method: each, route: url, status }, 0)
      if (config?.takes === 'run') for (const code of refusals) refused.inc({ route: url, code }, 0)
    }
  })
  app.addHook('onResponse', async ({ method, routeOptions, failure, waitedMs }, reply) => {
    const route = routeOptions.url ?? 'unmatched'
    requests.inc({ method, route, status: reply.statusCode })
    requestSeconds.observe({ method, route }, (reply.elapsedTime - waitedMs) / 1_000)
    if (routeOptions.config.takes === 'run' && reply.statusCode >= 400)
      refused.inc({ route, code: failure?.code ?? 'server_error' })
  })
}
