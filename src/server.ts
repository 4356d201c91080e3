import { buildApp } from './app.ts'
import { startBacklog } from './blueprint/run/backlog.ts'
import { startWaiter } from './blueprint/run/wait.ts'
import { bootstrap } from './bootstrap.ts'
import { type Config, readServiceConfig } from './config.ts'
import { connect } from './db/client.ts'
import { migrate } from './db/migrate.ts'
import { keyring } from './db/seal.ts'
import { logger } from './log.ts'
import { loadRegistry } from './models/index.ts'
import { collectGarbage, untilStopped } from './process.ts'
import { closeInTime, closeWithinMs, openBackend } from './queue/backend.ts'
import { applyQueue, runOfJob } from './queue/define.ts'
import { ring } from './queue/doorbell.ts'
import { checkPort } from './standalone/data-dir.ts'
import { runProgram } from './start-error.ts'

/** Settings of a server whose database and key are known. */
export type ServerConfig = Config & { readonly databaseUrl: string; readonly secretKey: string }

export type Server = {
  /** `http://127.0.0.1:9000` */
  readonly url: string
  /** The first token, when this start made it. It is shown once and kept nowhere. */
  readonly firstToken: string | null
  close(): Promise<void>
}

/** Connections of the API: enough for its statements, few enough for a small server. */
const apiConnections = 8

/**
 * Migrates, bootstraps and serves the API.
 *
 * @throws {MigrationError} for a database of a newer version; {Problem} when the queue's store cannot be used
 */
export async function startServer(config: ServerConfig): Promise<Server> {
  const { databaseUrl, redisUrl, secretKey } = config
  const log = logger('api', config.logLevel)
  await migrate(databaseUrl)
  const backend = await openBackend({ redisUrl, databaseUrl })
  for (const warning of await backend.check()) log.warn(warning)
  const db = connect(databaseUrl, { applicationName: 'gatewright-api', max: apiConnections })
  const engine = { registry: await loadRegistry(), keyring: keyring(secretKey), tokenMaxDays: config.tokenMaxDays }
  const firstToken = await bootstrap(db, engine, config.bootstrapToken)
  const queue = await backend.openQueue(applyQueue)
  const events = await backend.openEvents(applyQueue)
  const waiter = startWaiter(db, databaseUrl, log)
  const backlog = startBacklog(db)
  const ended = ({ jobId }: { jobId: string }) => {
    const run = runOfJob(jobId)
    if (run !== undefined) waiter.wake(run)
  }
  events.on('completed', ended)
  events.on('failed', ended)
  const app = buildApp({
    queue,
    submitter: {
      db,
      engine,
      waiter,
      backlog,
      log,
      applyWaitMs: config.applyWaitMs,
      ring: (run, number) => ring(queue, run, number),
    },
  })
  await app.ready()
  collectGarbage()
  const url = await app.listen({ port: config.port, host: config.host })
  return {
    url,
    firstToken,
    close: async () => {
      await app.close()
      backlog.close()
      await waiter.close()
      await closeInTime(events, closeWithinMs.other)
      await closeInTime(queue, closeWithinMs.other)
      await backend.close()
      await db.close()
    },
  }
}

if (import.meta.main) await runProgram(main)

/** The API as a process of its own, beside a worker of its own: what a container runs. */
async function main(): Promise<void> {
  const config = readServiceConfig()
  await checkPort(config.port, config.host)
  const log = logger('api', config.logLevel)
  const server = await startServer(config)
  // Before it says so: whoever reads it may stop it at once.
  const stopped = untilStopped(log)
  log.info({ url: server.url }, 'serving')
  if (server.firstToken !== null)
    log.warn({ firstAccess: server.firstToken }, 'the first access token: shown once, keep it')
  await stopped
  await server.close()
  process.exit(0)
}
