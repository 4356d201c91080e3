import type { FastifyInstance, FastifyReply } from 'fastify'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { catalogue, Problem } from '../errors.ts'
import type { Run } from '../runs/ledger.ts'
import type { Undecided } from '../runs/submit.ts'

/**
 * All metrics. Labels are closed sets: route patterns, provider kinds, codes of the catalogue. Never a slug, a user or
 * an id: those are unbounded, and a reader of metrics may not see them.
 */
export type Metrics = ReturnType<typeof openMetrics>

const buckets = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20]

/** Each application has its own registry, so that two in one process are counted apart. */
export function openMetrics() {
  const registry = new Registry()
  const registers = [registry]
  // Milliseconds. The default of 10 causes most of an idle API's CPU time.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 })
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
    applies: new Counter({
      name: 'gatewright_applies_total',
      help: 'Submissions by outcome: applied, refused (the submitter can fix it), failed (a bug of the service), cancelled (503), unknown (202).',
      labelNames: ['kind', 'result', 'reason'],
      registers,
    }),
    applySeconds: new Histogram({
      name: 'gatewright_apply_seconds',
      help: 'A whole submission in the API, from the arrival of its request to its outcome.',
      labelNames: ['result'],
      buckets,
      registers,
    }),
    queueWaitSeconds: new Histogram({
      name: 'gatewright_queue_wait_seconds',
      help: 'From the record of a run to the start of the transaction that finished it.',
      buckets,
      registers,
    }),
    up: new Gauge({
      name: 'gatewright_up',
      help: '1: the part answered this scrape. 0: it did not, and the gauges that come from it are left out.',
      labelNames: ['part'],
      registers,
    }),
    jobs: new Gauge({
      name: 'gatewright_jobs',
      help: 'Jobs in the queue by state. One is always delayed: the next probe; the others wait to try their run again.',
      labelNames: ['state'],
      registers,
    }),
    waitingRuns: new Gauge({ name: 'gatewright_waiting_runs', help: 'Runs that no worker has finished.', registers }),
    oldestWaitingRunSeconds: new Gauge({
      name: 'gatewright_oldest_waiting_run_seconds',
      help: 'Age of the oldest run that no worker has finished; 0 when there is none.',
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
      help: 'When a worker last took a job; absent when none ever did. There is a probe to take every four seconds.',
      registers,
    }),
  }
}

export function countRequests(app: FastifyInstance, { requests, requestSeconds }: Metrics): void {
  app.addHook('onResponse', async ({ method, routeOptions }, reply) => {
    const route = routeOptions.url ?? 'unmatched'
    requests.inc({ method, route, status: reply.statusCode })
    requestSeconds.observe({ method, route }, reply.elapsedTime / 1_000)
  })
}

type Outcome = { result: 'applied' | 'planned' | 'refused' | 'failed' | 'cancelled' | 'unknown'; reason: string }

/**
 * Runs one submission and counts its outcome.
 *
 * @param kind of the provider, once it is known to be a registered one
 */
export async function countApply<Submitted extends { run: Run | Undecided }>(
  metrics: Metrics,
  { kind, reply }: { kind: string | undefined; reply: FastifyReply },
  work: () => Promise<Submitted>,
): Promise<Submitted> {
  reply.request.submission = { run: null, title: null }
  const count = ({ result, reason }: Outcome) => {
    metrics.applies.inc({ kind: kind ?? 'unknown', result, reason })
    metrics.applySeconds.observe({ result }, reply.elapsedTime / 1_000)
  }
  try {
    const submitted = await work()
    const { run } = submitted
    count(outcomeOf(run))
    if (typeof run !== 'string' && run.startedAt !== null)
      metrics.queueWaitSeconds.observe((run.startedAt.getTime() - run.createdAt.getTime()) / 1_000)
    return submitted
  } catch (error) {
    count(outcomeOfError(error))
    throw error
  }
}

function outcomeOf(run: Run | Undecided): Outcome {
  if (typeof run === 'string') return { result: 'unknown', reason: 'outcome_unknown' satisfies keyof typeof catalogue }
  if (run.applied === true) return { result: 'applied', reason: 'none' }
  if (run.planTag !== null) return { result: 'planned', reason: 'none' }
  return { result: run.state === 'failed' ? 'failed' : 'refused', reason: run.reason ?? 'none' }
}

function outcomeOfError(error: unknown): Outcome {
  const code = error instanceof Problem ? error.code : 'server_error'
  const status = catalogue[code]
  if (status === 503) return { result: 'cancelled', reason: code }
  return { result: status < 500 ? 'refused' : 'failed', reason: code }
}
