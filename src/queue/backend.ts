import { setTimeout as delay } from 'node:timers/promises'
import {
  type BackendFactory,
  createPostgresBackend,
  createRedisBackend,
  type IQueueBackend,
  type Job,
  type PostgresConnectionOptions,
  type PostgresQueueBackend,
  Queue,
  QueueEvents,
  type RedisQueueBackend,
  runMigrations,
  Worker,
  type WorkerOptions,
} from 'bullmq'
import { Redis } from 'ioredis'
import pg from 'pg'
import { databaseProblem, isConnectionLost } from '../db/failures.ts'
import { Problem } from '../errors.ts'
import type { ApplyJob, QueueSpec } from './define.ts'

/** BullMQ's classes over either store. */
export type ApplyQueue =
  | Queue<ApplyJob>
  | Queue<ApplyJob, unknown, string, ApplyJob, unknown, string, PostgresQueueBackend, PostgresConnectionOptions>
export type ApplyEvents = Pick<QueueEvents, 'close'> & {
  on(event: 'completed' | 'failed', listener: (ended: { jobId: string }) => void): unknown
}
export type ApplyWorker = Pick<Worker, 'close' | 'isRunning'>

/** Milliseconds: BullMQ's own `close` waits for ever while Redis is away. A worker gets the time that a run takes. */
export const closeWithinMs = { worker: 6_000, other: 1_000 } as const

/** Closes one of them, and goes on when it takes too long: the process is about to end. */
export async function closeInTime(closing: { close(): Promise<unknown> }, withinMs: number): Promise<void> {
  await Promise.race([closing.close().catch(() => {}), new Promise((resolve) => setTimeout(resolve, withinMs).unref())])
}

/**
 * The one switch between the two places a queue can live: Redis when there is a URL for it, else PostgreSQL. Everything
 * above gets the same three things, each of them ready, and cannot tell.
 */
export type Backend = {
  readonly kind: 'redis' | 'postgres'
  /** After `check` has passed, which waits for Redis: a queue asks it for its version at once, and only once. */
  openQueue(spec: QueueSpec): Promise<ApplyQueue>
  openWorker(
    spec: QueueSpec,
    work: (job: Job<ApplyJob>) => Promise<string>,
    options: { concurrency: number },
  ): Promise<ApplyWorker>
  openEvents(spec: QueueSpec): Promise<ApplyEvents>
  /**
   * @returns what the operator should know of how the store is set up, a sentence each
   * @throws {Problem} `unavailable` when it cannot be reached, or throws jobs away
   */
  check(): Promise<string[]>
  close(): Promise<void>
}

/** Defaults that bite: a killed worker's job would be taken up after a minute, and one lost connection paused it for 15 s. */
const workerDefaults = {
  lockDuration: 4_000,
  stalledInterval: 1_000,
  maxStalledCount: 50,
  runRetryDelay: 300,
} satisfies Partial<WorkerOptions>

/** Jobs that a worker takes and finds locked or done cost nothing, so being called stalled often is no reason to fail. */
export async function openBackend({
  redisUrl,
  databaseUrl,
}: {
  redisUrl: string | null
  databaseUrl: string
}): Promise<Backend> {
  return redisUrl === null ? openPostgres(databaseUrl) : openRedis(redisUrl)
}

function openRedis(url: string): Backend {
  const connections: Redis[] = []
  const connect = (blocking: boolean) => {
    const connection = new Redis(url, {
      // A producer fails at once; a worker waits for as long as it takes.
      enableOfflineQueue: blocking,
      maxRetriesPerRequest: blocking ? null : 1,
      ...(!blocking && { commandTimeout: 800 }),
      connectTimeout: 2_000,
      retryStrategy: (times) => Math.min(50 * times, 500),
    })
    // Each user of a connection logs its own errors; without a listener ioredis would print them itself.
    connection.on('error', () => {})
    connections.push(connection)
    return connection
  }
  const producer = connect(false)
  return {
    kind: 'redis',
    openQueue: (spec) => {
      const options = { connection: producer, defaultJobOptions: spec.jobs, skipWaitingForReady: true }
      return opened(() => new Queue<ApplyJob>(spec.name, options))
    },
    openWorker: (spec, work, { concurrency }) =>
      opened(() => new Worker(spec.name, work, { connection: connect(true), concurrency, ...workerDefaults })),
    openEvents: (spec) => opened(() => new QueueEvents(spec.name, { connection: connect(true) }, calmRedis)),
    check: () => checkRedis(producer),
    close: async () => {
      for (const connection of connections) connection.disconnect()
    },
  }
}

const unchecked =
  'How Redis is set up could not be checked. It must have maxmemory-policy noeviction and should have appendonly yes: see to it where it is run.'
const unkept =
  'Redis keeps no append-only file (appendonly no): should it crash, the jobs in it are lost, and their runs wait until a worker rings for them again. Set appendonly to yes.'

/** Asked of INFO: hosted servers forbid CONFIG, and BullMQ cannot do without INFO either. */
async function checkRedis(redis: Redis): Promise<string[]> {
  const info = await reach(redis)
  const told = (name: string) => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1]
  const [policy, appends] = [told('maxmemory_policy'), told('aof_enabled')]
  // It would throw jobs away without a word.
  if (policy !== undefined && policy !== 'noeviction') {
    throw new Problem(
      'unavailable',
      `Redis evicts keys (maxmemory-policy ${policy}): set it to noeviction, or jobs get lost.`,
    )
  }
  if (policy === undefined || appends === undefined) return [unchecked]
  return appends === '0' ? [unkept] : []
}

async function reach(redis: Redis): Promise<string> {
  try {
    if (redis.status !== 'ready') await new Promise((resolve, reject) => waitReady(redis, resolve, reject))
    return await redis.info()
  } catch (error) {
    if (error instanceof Error && /unknown command|NOPERM/i.test(error.message)) return ''
    throw new Problem('unavailable', 'Redis cannot be reached at REDIS_URL.', { retryAfterS: 1, cause: error })
  }
}

function waitReady(redis: Redis, resolve: (value: unknown) => void, reject: (error: Error) => void): void {
  const timer = setTimeout(() => reject(new Error('no connection within 5 s')), 5_000)
  redis.once('ready', () => {
    clearTimeout(timer)
    resolve(undefined)
  })
}

async function openPostgres(url: string): Promise<Backend> {
  const client = new pg.Client({ connectionString: url, application_name: 'gatewright-queue-migrations' })
  await client.connect().catch((error: unknown) => {
    throw databaseProblem(error)
  })
  try {
    await runMigrations(client)
  } finally {
    await client.end()
  }
  const connection = (name: string, max: number): PostgresConnectionOptions => ({
    connectionString: url,
    schema: 'bullmq',
    max,
    application_name: name,
    keepAlive: true,
    connectionTimeoutMillis: 900,
    // A doorbell that a crash of PostgreSQL takes away is rung again, and one that comes back finds its run finished:
    // neither is worth waiting for the disk (docs/adr/0004-recording-does-not-wait-for-the-disk.md).
    options: '-c synchronous_commit=off -c jit=off',
  })
  return {
    kind: 'postgres',
    openQueue: (spec) => {
      const pool = connection('gatewright-queue', 8)
      const options = { connection: pool, defaultJobOptions: spec.jobs, skipWaitingForReady: true }
      return opened(() => new Queue(spec.name, options, createPostgresBackend))
    },
    openWorker: (spec, work, { concurrency }) => {
      const pool = connection('gatewright-queue-worker', concurrency + 2)
      const options = { connection: pool, concurrency, ...workerDefaults }
      return opened(() => new Worker(spec.name, work, options, createPostgresBackend))
    },
    openEvents: (spec) => {
      const pool = connection('gatewright-queue-events', 2)
      return opened(() => new QueueEvents(spec.name, { connection: pool }, calmPostgres))
    },
    check: async () => [],
    close: async () => {},
  }
}

/** Milliseconds. A job makes four events, and a worker's NOTIFY is there before the one that matters. */
const eventsEveryMs = 25

/** Reads events in handfuls: being woken for each of them would cost more than the requests that wait. */
function calm<Store extends IQueueBackend>(store: Store): Store {
  const readEvents = store.readEvents.bind(store)
  store.readEvents = async (...from) => {
    await delay(eventsEveryMs)
    return readEvents(...from)
  }
  return store
}

const calmRedis: BackendFactory<RedisQueueBackend> = (...settings) => calm(createRedisBackend(...settings))
const calmPostgres: BackendFactory<PostgresQueueBackend, PostgresConnectionOptions> = (...settings) =>
  calm(createPostgresBackend(...settings))

const openedWithinMs = 5_000

/**
 * BullMQ keeps the outcome of a first connection for ever: one that failed is never tried again, and neither is
 * anything that needs it. So it is thrown away, and made anew.
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
    // An 'error' event without a listener ends the process; what it says shows up where a call fails.
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
