import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Counter, Histogram } from 'prom-client'
import { catalogue, type ProblemCode } from '../errors.ts'
import { dashboardPath } from '../paths.ts'
import { openRegistry, type PoolUse } from '../process-metrics.ts'
import { runFormat } from '../runs/format.ts'

/**
 * The counts of an API process; its gauges are in api/metrics.ts, the counts of runs in runs/tally.ts. Labels are closed sets:
 * route patterns, codes of the catalogue. A slug, a user or an id is never a label: those are unbounded, and a reader of metrics
 * may not see them.
 */
export type Metrics = ReturnType<typeof openMetrics>

export type RefusalCounts = Pick<Metrics, 'countFailedLogin' | 'countLimited'>

const buckets = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20]

/** The limits on one user: the settings RATE_LIMIT_*, lists that wait, and waits for a change. */
const limitNames = ['requests', 'lists', 'long_answers', 'waiting_runs', 'waits', 'writes'] as const
export type LimitName = (typeof limitNames)[number]

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
  for (const to of ['api', 'dashboard']) failedLogins.inc({ to }, 0)
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
    consumerReads: new Counter({
      name: 'gatewright_consumer_reads_total',
      help: 'Answers with configurations for the servers that sign users in, by kind. secrets: whether the caller may read those of any.',
      labelNames: ['kind', 'secrets'],
      registers,
    }),
    countFailedLogin: ({ routeOptions: { url = '' } }: Pick<FastifyRequest, 'routeOptions'>) =>
      failedLogins.inc({ to: url.startsWith(dashboardPath) ? 'dashboard' : 'api' }),
    countLimited: (limit: LimitName) => limited.inc({ limit }),
  }
}

/** Statuses of failures of the service. Their series begin at 0. */
const failures = [500, 503]

/** Codes of an answer that may follow a submission. */
const refusals = (Object.keys(catalogue) as ProblemCode[]).filter((code) => {
  const status: number = catalogue[code]
  return status >= 400 && ![404, 405, 408, 410, 431].includes(status)
})

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
