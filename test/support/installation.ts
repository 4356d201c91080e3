import { pino } from 'pino'
import { expect } from 'vitest'
import { buildApp } from '../../src/app.ts'
import type { Db } from '../../src/db/client.ts'
import { pipelinedTransaction } from '../../src/db/pipeline.ts'
import { openSums } from '../../src/db/sums.ts'
import type { Api } from '../../src/http/api.ts'
import type { RateLimits } from '../../src/http/rate-limit.ts'
import { openInspector } from '../../src/http/readiness.ts'
import type { Engine } from '../../src/plan/engine.ts'
import type { ApplyQueue } from '../../src/queue/backend.ts'
import { startConsumer } from '../../src/queue/consumer.ts'
import { runQueue } from '../../src/queue/enqueue.ts'
import type { RedisClient } from '../../src/queue/redis.ts'
import { type Enqueue, startReconciler } from '../../src/runs/reconcile.ts'
import { followRuns } from '../../src/runs/subscribe.ts'
import { openTally } from '../../src/runs/tally.ts'
import { type Worker, work } from '../../src/runs/work.ts'
import { workerLedger } from '../../src/runs/worker-ledger.ts'
import { openBacklog } from '../../src/submissions/backlog.ts'
import { openWhyNot } from '../../src/submissions/why-not.ts'
import type { WaitLimits } from '../../src/waits/waits.ts'
import { type Answer, type Asker, askAs } from './asker.ts'
import { atEnd } from './at-end.ts'
import { objects } from './contents.ts'
import { freshDatabase } from './database.ts'
import { adminToken, loadEngine } from './engine.ts'
import { wide } from './limits.ts'
import { type Make, makers } from './make.ts'
import { queueOn } from './queue.ts'
import { freshRedis } from './redis.ts'
import { until } from './until.ts'

export type QueueKind = 'redis' | 'postgres'

/** One installation of the product in this process, on real servers: API, queue and worker. */
export type Installation = {
  readonly app: Api
  readonly url: string
  readonly redisUrl: string | null
  readonly db: Db
  readonly engine: Engine
  readonly queue: ApplyQueue
  readonly worker: Worker
  readonly enqueue: Enqueue
  /** Everything that API and worker logged, at the finest level. */
  readonly log: readonly string[]
  /** A client with this token, in front of the API. */
  as(token: string): Asker
  /** The first admin, who may do everything. */
  readonly admin: Asker
  readonly make: Make
  /** Keeps the worker from beginning runs until the returned function is called: their jobs are taken, no more. */
  hold(): () => void
  /** Expects that every object stays as it was. */
  untouched<Value>(work: () => Promise<Value>): Promise<Value>
  /** Expects this status, and that every object stays as it was. No run is recorded for a 400. */
  refused(status: number, ask: () => Promise<Answer>): Promise<Answer>
  /** Waits until this many runs were recorded and are not finished. */
  queued(count: number): Promise<void>
}

type Options = {
  queue?: QueueKind
  /** Servers of a queue on Redis: several, or one of its own. Else it is on the server that the run shares. */
  redisUrl?: string
  /** `none`: no worker takes jobs. */
  workers?: 'one' | 'none'
  applyWaitMs?: number
  queuedEntries?: number
  runSecretsHours?: number
  limits?: Partial<RateLimits>
  /** Metrics are on this port of the loopback. */
  metricsPort?: number
  /** Rates are counted in this Redis, else in this process. */
  rateStore?: RedisClient | null
  /** Trusted issuers that may have private addresses, as those of tests do. */
  privateIssuers?: readonly string[]
  /** How many requests may wait for a change, and how often it is asked. */
  waits?: Partial<WaitLimits>
}

/** Call it at the top of the file, in a hook or in a test; all of it is closed at the end of the file. */
export async function installation({
  queue: kind = 'postgres',
  redisUrl: ownRedisUrl,
  workers = 'one',
  applyWaitMs = 10_000,
  queuedEntries = 100_000,
  runSecretsHours = 24,
  limits = {},
  metricsPort,
  rateStore = null,
  privateIssuers = [],
  waits = {},
}: Options = {}): Promise<Installation> {
  const { url, db: testDb, service } = await freshDatabase({ isInstalled: true })
  const { db } = service
  const redisUrl = ownRedisUrl ?? (kind === 'redis' ? await freshRedis() : null)
  const log: string[] = []
  const logger = pino({ level: 'trace' }, { write: (line: string) => void log.push(line) })
  const engine = await loadEngine()

  const { backend, queue } = await queueOn({ redisUrl, databaseUrl: service.url })
  const runs = followRuns(db, service.url, logger)
  atEnd(() => runs.close())
  const runJobs = runQueue(queue)
  const { enqueue } = runJobs
  const sums = openSums(db)
  atEnd(() => sums.stop())
  const tally = openTally(sums, engine.registry)
  const inspect = openInspector(db, queue, engine.keyring, logger)
  const whyNot = openWhyNot(db, inspect)
  const submitter = {
    db,
    engine,
    runs,
    backlog: openBacklog(db, { needsWorkers: false, whyNot }),
    log: logger,
    tally,
    applyWaitMs,
    queuedEntries,
    enqueue,
    whyNot,
  }
  const metricsAt = metricsPort === undefined ? null : { port: metricsPort, host: '127.0.0.1' }
  const retention = { runDays: 90, auditDays: 400 }
  const given = { limits: { ...wide, ...limits }, retention, metricsAt, rateStore, privateIssuers, waits }
  const app = buildApp({ queue, submitter, inspect, ...given })
  atEnd(() => app.close())
  await app.ready()

  const ledger = workerLedger({ db, transaction: pipelinedTransaction(service.pool), engine, runSecretsHours })
  const worker: Worker = { ledger, log: logger, tally }
  const gate = openGate()
  if (workers === 'one') {
    const consumer = await startConsumer(backend, db, 4, async (run, onProgress) => {
      await gate.passed()
      return work(worker, run, onProgress)
    })
    atEnd(() => consumer.close())
    const reconciler = startReconciler(db, runJobs, worker)
    atEnd(() => reconciler.stop())
  }

  const as = (token: string) => askAs(app, token)
  const untouched: Installation['untouched'] = async (work) => {
    const before = await objects(testDb)
    const value = await work()
    expect(await objects(testDb)).toEqual(before)
    return value
  }
  return {
    app,
    url,
    redisUrl,
    engine,
    queue,
    worker,
    log,
    as,
    enqueue,
    db: testDb,
    admin: as(adminToken),
    make: makers(testDb, as),
    hold: gate.hold,
    untouched,
    refused: async (status, ask) => {
      const runs = await testDb.run.count()
      const answer = await untouched(ask)
      expect([answer.status, answer.text]).toEqual([status, expect.any(String)])
      if (status === 400) expect(await testDb.run.count()).toBe(runs)
      return answer
    },
    queued: async (count) => {
      await until(`${count} runs to be queued`, async () => {
        const queued = await db.run.count({ where: { state: 'queued' } })
        return queued === count || Promise.reject(new Error(`${queued} are`))
      })
    },
  }
}

/** Lets through, or makes wait. */
function openGate(): { passed(): Promise<void>; hold(): () => void } {
  let held = Promise.resolve()
  return {
    passed: () => held,
    hold: () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      held = promise
      return resolve
    },
  }
}
