import { randomBytes } from 'node:crypto'
import { existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { describe, inject, onTestFinished } from 'vitest'
import { connect, type Db } from '../../src/db/client.ts'
import { migrate } from '../../src/db/migrate.ts'
import { type ApplyQueue, openBackend } from '../../src/queue/backend.ts'
import { freePort } from '../support/free-port.ts'
import { atEnd, needs, type QueueKind, rows, secretKey, sql, until } from '../support/kit.ts'
import { wideEnv } from '../support/limits.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { type Running, run } from '../support/processes.ts'
import { proxyTo, type TcpProxy } from '../support/proxy.ts'
import { ownRedis } from '../support/redis.ts'
import type { RedisServer } from '../support/redis-server.ts'
import { within } from '../support/template.ts'
import type { Target } from './clients.ts'

/** An installation for fault tests: its own servers, and API and workers as processes. */

/** Runs the same tests with both stores of the queue. */
export function onBothQueues(tests: (kind: QueueKind) => void): void {
  describe.runIf(needs('redis-server'))('queue on Redis', () => tests('redis'))
  describe('queue on PostgreSQL', () => tests('postgres'))
}

export type Stand = Target & {
  readonly api: Running
  readonly postgres: PostgresServer
  /** null: the queue is on PostgreSQL, or on Redis of the test's own. */
  readonly redis: RedisServer | null
  /** Stands before the server that the test named. */
  readonly proxy: TcpProxy | null
  readonly databaseUrl: string
  /** The test reads by it. */
  readonly db: Db
  /** The settings of API and workers. */
  readonly env: Readonly<Record<string, string>>
  /** Starts a worker, and waits until it is ready. */
  startWorker(settings?: Record<string, string>): Promise<Running>
}

/**
 * All of it is ended after the test file.
 *
 * @param applyWaitMs how long the API waits for a worker
 * @param settings others of API and workers
 * @param redisUrl several Redis that the test has started, instead of one
 * @param proxied API and workers reach this server by way of `proxy`
 */
export async function openStand(
  kind: QueueKind,
  {
    applyWaitMs = 10_000,
    proxied,
    redisUrl,
    settings = {},
  }: {
    applyWaitMs?: number
    proxied?: 'postgres' | 'redis'
    redisUrl?: string
    settings?: Record<string, string>
  } = {},
): Promise<Stand> {
  // Durable, because the tests crash the servers.
  const postgres = await startPostgres({ durable: true, from: await migratedData() })
  atEnd(() => postgres.remove())
  const databaseUrl = postgres.url('gatewright')
  const redis = kind === 'redis' && redisUrl === undefined ? await ownRedis() : null
  const token = randomBytes(24).toString('base64url')
  const port = await freePort()
  const target = { postgres: databaseUrl, redis: redis?.url }[proxied ?? 'postgres']
  const proxy = proxied === undefined || target === undefined ? null : await proxyTo(target)
  const env = {
    ...wideEnv,
    DATABASE_URL: proxied === 'postgres' && proxy !== null ? proxy.url : databaseUrl,
    SECRET_KEY: secretKey,
    BOOTSTRAP_TOKEN: token,
    // The same on every machine.
    WORKER_CONCURRENCY: '8',
    APPLY_WAIT_MS: String(applyWaitMs),
    LOG_LEVEL: 'info',
    PORT: String(port),
    ...settings,
    ...(redisUrl !== undefined && { REDIS_URL: redisUrl }),
    ...(redis !== null && { REDIS_URL: proxied === 'redis' && proxy !== null ? proxy.url : redis.url }),
  }
  const api = run('src/server.ts', { env })
  await api.line(/"msg":"serving"/, { withinMs: 20_000 })
  const { db } = connect(databaseUrl, { applicationName: 'gatewright-test', max: 4 })
  atEnd(async () => {
    await api.stop()
    await db.$disconnect()
  })
  return {
    url: `http://127.0.0.1:${port}`,
    token,
    api,
    postgres,
    redis,
    proxy,
    databaseUrl,
    db,
    env,
    startWorker: async (settings) => {
      const worker = run('workers/blueprint.ts', { env: { ...env, ...settings } })
      // It still runs only when the test failed. It must not affect the next one.
      onTestFinished(async () => void (await worker.kill()))
      await worker.line(/"msg":"worker ready"/, { withinMs: 20_000 })
      return worker
    },
  }
}

/** The data folder of a server with a migrated database: made once in a run, because that takes longer than a copy. */
async function migratedData(): Promise<string> {
  const data = join(inject('servers').folder, 'migrated')
  if (existsSync(data)) return data
  const server = await startPostgres({ durable: false })
  try {
    await within(server.url(), (client) => client.query('CREATE DATABASE gatewright'))
    await migrate(server.url('gatewright'))
    await server.stop()
    renameSync(join(server.folder, 'data'), data)
  } catch (error) {
    // Another file has made it meanwhile.
    if (!existsSync(data)) throw error
  } finally {
    await server.remove()
  }
  return data
}

/** Works on the queue, as an operator does. */
export async function onQueue<Found>(
  { redis, databaseUrl }: Stand,
  work: (queue: ApplyQueue) => Promise<Found>,
): Promise<Found> {
  const backend = await openBackend({ redisUrl: redis?.url ?? null, databaseUrl })
  await backend.check()
  const queue = await backend.openQueue()
  try {
    return await work(queue)
  } finally {
    await queue.close()
    await backend.close()
  }
}

/** Waits until this number of the workers' statements waits for a lock of PostgreSQL. */
export const untilWorkersWaitForLocks = ({ db }: Stand, count: number): Promise<unknown> =>
  until(
    `${count} statements of workers to wait for a lock`,
    async () => {
      const [row] = await rows<{ waiting: number }>(
        db,
        sql`SELECT count(*) AS waiting FROM pg_stat_activity WHERE application_name = 'gatewright-worker' AND wait_event_type = 'Lock'`,
      )
      return Number(row?.waiting) >= count
    },
    { withinMs: 10_000 },
  )

/** Waits until this number of runs is recorded and has not ended. */
export const untilQueued = ({ db }: Stand, count: number): Promise<unknown> =>
  until(`${count} runs to be queued`, async () => (await db.run.count({ where: { state: 'queued' } })) === count)
