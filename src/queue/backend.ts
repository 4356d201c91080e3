import { setTimeout as delay } from 'node:timers/promises'
import {
  createPostgresBackend,
  type Job,
  type PostgresConnectionOptions,
  type PostgresQueueBackend,
  Queue,
  Worker,
  type WorkerOptions,
} from 'bullmq'
import { poolSizes } from '../db/connections.ts'
import { isConnectionLost } from '../db/errors.ts'
import { ImpatientSocket } from '../db/socket.ts'
import { Problem } from '../errors.ts'
import { type RedisPlace, readRedisUrl } from '../redis-url.ts'
import { limitTime } from '../time-limit.ts'
import { type ApplyJob, applyQueue, type JobResult } from './define.ts'
import { migrateQueue } from './migrate.ts'
import { PreparingClient } from './preparing-client.ts'
import { openRedis, prefixOf, type RedisClient } from './redis.ts'
import { checkRedis } from './redis-check.ts'

/** BullMQ's classes over either store. */
export type ApplyQueue =
  | Queue<ApplyJob>
  | Queue<ApplyJob, unknown, string, ApplyJob, unknown, string, PostgresQueueBackend, PostgresConnectionOptions>
export type ApplyWorker = Pick<Worker, 'close'>

/** BullMQ's `close` never ends while Redis is away. A worker gets the time that a run takes. */
export const closeWithinMs = { worker: 6_000, other: 1_000 } as const

/** Closes it, but waits no longer than this: the process is about to end. */
export async function closeInTime(closing: { close(): Promise<unknown> }, withinMs: number): Promise<void> {
  await limitTime(closing.close(), withinMs, () => {}).catch(() => {})
}

/** The storage of the queue: Redis when there is a URL for it, else PostgreSQL. The callers do not depend on which one it is. */
export type Backend = {
  readonly kind: 'redis' | 'postgres'
  /** Opens a queue. Call `check` first: it waits for Redis, and a queue asks Redis for its version only once. */
  openQueue(): Promise<ApplyQueue>
  openWorker(
    work: (job: Job<ApplyJob>, token?: string) => Promise<JobResult | null>,
    options: { concurrency: number },
  ): Promise<ApplyWorker>
  /**
   * @returns warnings about the settings of the store, for the operator
   * @throws {Problem} `unavailable` when it cannot be reached, or evicts jobs
   */
  check(): Promise<string[]>
  close(): Promise<void>
}

/**
 * Connections may die silently: a firewall forgets them, and no packet reports it. A connection that should answer and does not
 * is closed, and another one is opened. A blocking command answers after `blocksS`; probes make sure that a PostgreSQL connection
 * that listens gets data at least every four seconds.
 */
const blocksS = 5
const silence = { redisMs: 2_000, blockingRedisMs: blocksS * 1_000 + 2_000, queryMs: 4_000, postgresMs: 9_000 } as const

/**
 * The reconciler enqueues the runs of a killed worker again within two seconds. BullMQ's check for stalled jobs only takes up the
 * old jobs, after their lock has expired. It may stall a job often: a worker that takes it finds its run locked or finished.
 * `runRetryDelay`: the default would stop a worker for 15 s after one lost connection.
 */
const workerDefaults = {
  drainDelay: blocksS,
  lockDuration: 4_000,
  stalledInterval: 3_000,
  maxStalledCount: 50,
  runRetryDelay: 300,
} satisfies Partial<WorkerOptions>

type Urls = { readonly redisUrl: string | null; readonly databaseUrl: string }

export async function openBackend({ redisUrl, databaseUrl }: Urls): Promise<Backend> {
  return redisUrl === null ? openPostgres(databaseUrl) : openOnRedis(readRedisUrl(redisUrl))
}

function openOnRedis(place: RedisPlace): Backend {
  const connections: RedisClient[] = []
  const connect = (blocking: boolean) => {
    const connection = openRedis(place, {
      // A producer fails at once; a worker waits until Redis is back.
      queues: blocking,
      maxRetriesPerRequest: blocking ? null : 1,
      ...(!blocking && { commandTimeout: 800 }),
      socketTimeout: blocking ? silence.blockingRedisMs : silence.redisMs,
    })
    connections.push(connection)
    return connection
  }
  const producer = connect(false)
  const prefix = prefixOf(place)
  return {
    kind: 'redis',
    openQueue: () => {
      const options = { connection: producer, defaultJobOptions: applyQueue.jobs, skipWaitingForReady: true, ...prefix }
      return opened(() => new Queue<ApplyJob>(applyQueue.name, options))
    },
    openWorker: (work, { concurrency }) => {
      const options = { connection: connect(true), concurrency, ...prefix, ...workerDefaults }
      return opened(() => new Worker(applyQueue.name, work, options))
    },
    check: () => checkRedis(producer, place),
    close: async () => {
      for (const connection of connections) connection.disconnect()
    },
  }
}

async function openPostgres(url: string): Promise<Backend> {
  await migrateQueue(url)
  const connection = (name: string, max: number): PostgresConnectionOptions => ({
    connectionString: url,
    schema: 'bullmq',
    max,
    application_name: name,
    Client: PreparingClient,
    keepAlive: true,
    connectionTimeoutMillis: 900,
    query_timeout: silence.queryMs,
    stream: () => new ImpatientSocket(silence.postgresMs),
    // A job that a crash of PostgreSQL loses is enqueued again, and a job that comes back finds its run finished. So no commit
    // waits for the disk (docs/adr/0004-recording-does-not-wait-for-the-disk.md).
    options: '-c synchronous_commit=off -c jit=off',
  })
  return {
    kind: 'postgres',
    openQueue: () => {
      const pool = connection('gatewright-queue', poolSizes.queue)
      const options = { connection: pool, defaultJobOptions: applyQueue.jobs, skipWaitingForReady: true }
      return opened(() => new Queue(applyQueue.name, options, createPostgresBackend))
    },
    openWorker: (work, { concurrency }) => {
      const pool = connection('gatewright-queue-worker', poolSizes.queueWorker(concurrency))
      const options = { connection: pool, concurrency, ...workerDefaults }
      return opened(() => new Worker(applyQueue.name, work, options, createPostgresBackend))
    },
    check: async () => [],
    close: async () => {},
  }
}

const openedWithinMs = 5_000

/**
 * BullMQ never repeats a first connection that failed. So a part without a connection is closed, and a new one is
 * opened.
 *
 * @throws {Problem} `unavailable` when there is no connection in 5 s
 */
async function opened<
  Part extends {
    on(event: 'error', listener: (error: Error) => void): unknown
    waitUntilReady(): Promise<unknown>
    close(): Promise<unknown>
  },
>(make: () => Part): Promise<Part> {
  const deadline = performance.now() + openedWithinMs
  for (;;) {
    const part = make()
    // An 'error' event without a listener ends the process. The call that fails reports the error.
    part.on('error', () => {})
    try {
      await part.waitUntilReady()
      return part
    } catch (error) {
      await closeInTime(part, closeWithinMs.other)
      if (!isConnectionLost(error)) throw error
      if (performance.now() > deadline)
        throw new Problem('unavailable', 'The queue cannot be reached.', { retryAfterS: 1, cause: error })
      await delay(50)
    }
  }
}
