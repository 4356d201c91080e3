import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import pg from 'pg'
import { findProgram } from '../test/support/environment.ts'
import { freePort } from '../test/support/free-port.ts'
import { wideEnv } from '../test/support/limits.ts'
import { startPostgres } from '../test/support/postgres.ts'
import { type Running, run } from '../test/support/processes.ts'
import { startRedis } from '../test/support/redis-server.ts'
import { within } from '../test/support/template.ts'
import { until } from '../test/support/until.ts'

/** The measured installation: API and worker as processes, on real, durable servers. */

export type BackendKind = 'redis' | 'postgres'

/** The worker as it is, or one whose transactions are Prisma's. */
export type WorkerKind = 'pipelined' | 'prisma'

type StandOptions = {
  readonly nodeOptions?: string
  readonly worker?: WorkerKind
  /** How many of them. */
  readonly workers?: number
  /** The folder of another checkout, whose API and worker are started. */
  readonly checkout?: string
  /** Those that the product ships with, or ones that a single token with all of the load does not reach (`wide`). */
  readonly limits?: 'shipped' | 'wide'
}

export type Stand = {
  readonly url: string
  readonly token: string
  readonly database: string
  readonly secretKey: string
  /** Process ids by name. */
  readonly processes: Readonly<Record<string, number>>
  close(): Promise<void>
}

/** A PostgreSQL with default durability. Each stand gets its own database. */
export type Database = {
  readonly url: string
  readonly version: string
  /** null: an existing server. */
  readonly pid: number | null
  close(): Promise<void>
}

/**
 * @param given an existing server's URL, else one is started
 * @param at the folder of the started one, which stays; @param durable false: for filling it
 */
export async function openDatabase(
  given: string | undefined,
  { at, durable = true }: { readonly at?: string | undefined; readonly durable?: boolean } = {},
): Promise<Database> {
  const own = given === undefined ? await startPostgres({ durable, ...(at !== undefined && { at }) }) : undefined
  // Connects by the socket, as `npm start` does.
  const url = given ?? (own === undefined ? '' : `${own.url()}?host=${encodeURIComponent(own.folder)}`)
  const settings = `SELECT 'PostgreSQL ' || current_setting('server_version') || ', fsync ' || current_setting('fsync')
    || ', synchronous_commit ' || current_setting('synchronous_commit') AS version`
  const { rows } = await within(url, (client) => client.query<{ version: string }>(settings))
  return { url, version: rows[0]?.version ?? '', pid: own?.pid ?? null, close: async () => own?.remove() }
}

/** @param nodeOptions for API and worker, such as `--cpu-prof` */
export async function openStand(
  server: Database,
  backend: BackendKind,
  {
    nodeOptions = '',
    worker: workerKind = 'pipelined',
    workers: count = 1,
    checkout = '',
    limits = 'wide',
  }: StandOptions = {},
): Promise<Stand> {
  const database = await createDatabase(server.url)
  const redis = backend === 'redis' ? await openRedis() : undefined
  const token = randomBytes(24).toString('base64url')
  const secretKey = randomBytes(32).toString('base64url')
  const port = await freePort()
  const env = {
    ...(limits === 'wide' && wideEnv),
    DATABASE_URL: database.url,
    SECRET_KEY: secretKey,
    BOOTSTRAP_TOKEN: token,
    LOG_LEVEL: 'warn',
    PORT: String(port),
    NODE_OPTIONS: nodeOptions,
    ...(redis !== undefined && { REDIS_URL: redis.url }),
  }
  const url = `http://127.0.0.1:${port}`
  // The flags are those of package.json, Dockerfile and docker-compose.yml.
  const apiOptions = { NODE_OPTIONS: `--max-semi-space-size=4 ${nodeOptions}` }
  const start = (file: string, options: { env: Record<string, string> }) =>
    run(join(checkout, file), checkout === '' ? options : { ...options, cwd: checkout })
  const api = start('src/server.ts', { env: { ...env, ...apiOptions } })
  await answers(`${url}/-/health/live/`, api)
  const program = workerKind === 'prisma' ? 'bench/prisma-worker.ts' : 'workers/blueprint.ts'
  const workers = Array.from({ length: count }, () => start(program, { env }))
  for (const worker of workers) await answers(`${url}/-/health/ready/`, worker)
  const heard = 'SELECT count(*)::integer AS count FROM workers'
  const countHeard = () => within(database.url, (client) => client.query<{ count: number }>(heard))
  await until(`${count} workers to be heard`, async () => (await countHeard()).rows[0]?.count === count)
  return {
    url,
    token,
    database: database.url,
    secretKey,
    processes: {
      API: api.pid,
      ...Object.fromEntries(workers.map(({ pid }, index) => [index === 0 ? 'worker' : `worker ${index + 1}`, pid])),
      ...(server.pid !== null && { PostgreSQL: server.pid }),
      ...(redis !== undefined && { Redis: redis.pid }),
    },
    close: async () => {
      await Promise.all([api, ...workers].map((each) => each.stop()))
      await redis?.remove()
      await database.drop()
    },
  }
}

async function openRedis() {
  if (findProgram('redis-server') === null) throw new Error('redis-server is not installed: use --backend postgres')
  // The settings of docker-compose.yml.
  return await startRedis({ flags: ['--appendonly', 'yes', '--appendfsync', 'everysec'] })
}

async function createDatabase(server: string): Promise<{ url: string; drop(): Promise<void> }> {
  const name = `gatewright_bench_${randomBytes(6).toString('hex')}`
  const quoted = pg.escapeIdentifier(name)
  await within(server, (client) => client.query(`CREATE DATABASE ${quoted}`))
  const url = new URL(server)
  url.pathname = name
  return {
    url: url.href,
    drop: async () => void (await within(server, (client) => client.query(`DROP DATABASE ${quoted} WITH (FORCE)`))),
  }
}

export async function answers(url: string, process: Running): Promise<void> {
  const deadline = performance.now() + 30_000
  let ended = false
  void process.exited.then(() => {
    ended = true
  })
  while (performance.now() < deadline && !ended) {
    const answer = await fetch(url).catch(() => undefined)
    await answer?.body?.cancel()
    if (answer?.ok === true) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`${url} does not answer. The output of the process:\n${process.output()}`)
}
