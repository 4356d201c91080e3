import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Gauge } from 'prom-client'
import { type Db, poolUse } from '../db/client.ts'
import type { Sums } from '../db/sums.ts'
import type { Registry } from '../models/registry.ts'
import { openRegistry } from '../process-metrics.ts'
import { runFormat } from '../runs/format.ts'
import { runMetrics } from '../runs/tally.ts'
import { inTextFormat } from '../series.ts'
import { reasonOf, StartError } from '../start-error.ts'

type WorkerSources = {
  readonly db: Db
  readonly registry: Pick<Registry, 'kinds'>
  readonly jobs: { readonly slots: number; busy(): number }
  readonly own: Sums['own']
}

/** The same path as that of the API. */
const path = /^\/-\/metrics\/?(\?.*)?$/

/**
 * Serves the metrics of one worker process, for Prometheus: its CPU time, memory, connections and slots, and its counts of runs.
 * The API shows the sums of all processes.
 *
 * @throws {StartError} when it cannot listen there
 */
export async function serveWorkerMetrics(
  { port, host }: { readonly port: number; readonly host: string },
  sources: WorkerSources,
): Promise<{ stop(): Promise<void> }> {
  const read = reader(sources)
  const server = createServer(
    { requestTimeout: 5_000, headersTimeout: 5_000, keepAliveTimeout: 5_000 },
    (request, reply) => void answer(request, reply, read),
  )
  server.maxConnections = 20
  server.listen(port, host)
  try {
    await once(server, 'listening')
  } catch (error) {
    throw new StartError(
      `The metrics of the worker cannot be served on port ${port} of ${host} (${reasonOf(error)}): set another WORKER_METRICS_PORT, or none. Each worker of a machine needs its own.`,
      { cause: error },
    )
  }
  return {
    stop: async () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

async function answer(request: IncomingMessage, reply: ServerResponse, read: () => Promise<string>): Promise<void> {
  // The body is of no use, and reading it keeps the connection usable.
  request.resume()
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  if (!isRead || !path.test(request.url ?? '')) {
    reply.writeHead(isRead ? 404 : 405, { 'Content-Type': 'text/plain', ...(!isRead && { Allow: 'GET, HEAD' }) })
    reply.end('The metrics of this worker are at /-/metrics/.\n')
    return
  }
  reply.writeHead(200, { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8', 'Cache-Control': 'no-store' })
  reply.end(await read())
}

/** The prefix of sums of all processes, and that of the counts of one. */
const [ofAll, ofOne] = ['gatewright_', 'gatewright_worker_']

function reader({ db, registry, jobs, own }: WorkerSources): () => Promise<string> {
  const shown = openRegistry({ program: 'worker', runFormat, pool: () => poolUse(db) })
  new Gauge({
    name: 'gatewright_worker_process_slots',
    help: 'Jobs that this worker takes at once, and those that it has.',
    labelNames: ['state'],
    registers: [shown],
    collect() {
      this.set({ state: 'busy' }, jobs.busy())
      this.set({ state: 'free' }, Math.max(0, jobs.slots - jobs.busy()))
    },
  })
  const { workerStarts: _, ...counted } = runMetrics(registry, ofOne)
  return async () => {
    const counts = new Map([...own].map(([series, value]) => [series.replace(ofAll, ofOne), value]))
    return `${await shown.metrics()}\n${inTextFormat(Object.values(counted), counts)}`
  }
}
