import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { buildApp } from './app.ts'
import { bootstrap } from './apply/bootstrap.ts'
import { minLengths, readServiceConfig, type ServiceConfig } from './config.ts'
import { connect, openFirst } from './db/client.ts'
import { poolSizes, tooFewConnections } from './db/connections.ts'
import { migrate } from './db/migrate.ts'
import { findPooler, sessionUrl } from './db/pooler.ts'
import { registerProcess } from './db/presence.ts'
import type { Keyring } from './db/seal.ts'
import { openSums } from './db/sums.ts'
import { acceptOften, listenOptions } from './http/accept.ts'
import { checkPorts } from './http/port.ts'
import { openRateStore } from './http/rate-store.ts'
import { openInspector } from './http/readiness.ts'
import { logger } from './log.ts'
import { openEngine } from './plan/open-engine.ts'
import { untilStopped } from './process.ts'
import { closeInTime, closeWithinMs, openBackend } from './queue/backend.ts'
import { runQueue } from './queue/enqueue.ts'
import { runFormat } from './runs/format.ts'
import { followRuns } from './runs/subscribe.ts'
import { openTally } from './runs/tally.ts'
import { readOrCreateSecret } from './secret-file.ts'
import { runProgram } from './start-error.ts'
import { openBacklog } from './submissions/backlog.ts'
import { openWhyNot } from './submissions/why-not.ts'
import { newSecret } from './token-secret.ts'
import { openTracing } from './tracing/open.ts'

export type Server = {
  /** `http://127.0.0.1:9000` */
  readonly url: string
  /** The file with the first token, if this start made it. */
  readonly firstTokenFile: string | null
  /** Drains the server, then closes it: requests in flight are answered. */
  close(): Promise<void>
}

/** Shorter than a caller waits for a 503: a table that stays locked delays nothing else. */
const apiLockMs = 500

/**
 * Migrates, bootstraps and serves the API.
 *
 * @param write takes each line of its log, instead of stdout
 * @throws {MigrationError} for a database of a newer version; {Problem} when the queue cannot be used
 */
export async function startServer(config: ServiceConfig, write?: (line: string) => void): Promise<Server> {
  const { databaseUrl, redisUrl } = config
  const log = logger('api', config.logLevel, write)
  const direct = sessionUrl(config)
  await migrate(direct)
  const pooler = await findPooler(config, log)
  const backend = await openBackend({ redisUrl, databaseUrl: direct })
  for (const warning of await backend.check()) log.warn(warning)
  const connections = { applicationName: 'gatewright-api', max: poolSizes.api, lockMs: apiLockMs, pooler }
  const { db } = connect(databaseUrl, connections)
  await openFirst(db)
  const engine = await openEngine(config)
  const tokenFile = join(config.dataDir, 'admin-token')
  const isFirst = await bootstrap(db, engine, () => config.bootstrapToken ?? keptToken(tokenFile, engine.keyring))
  const tooFew = pooler === null ? await tooFewConnections(db, backend.kind, { concurrency: null }) : null
  if (tooFew !== null) log.warn(tooFew)
  const queue = await backend.openQueue()
  const runs = followRuns(db, direct, log)
  const rateStore = openRateStore(redisUrl)
  const sums = openSums(db)
  const inspect = openInspector(db, queue, engine.keyring, log)
  const whyNot = openWhyNot(db, inspect)
  const backlog = openBacklog(db, { needsWorkers: true, whyNot })
  const app = buildApp({
    queue,
    inspect,
    limits: config,
    retention: config,
    metricsAt: config.metricsPort === null ? null : { port: config.metricsPort, host: config.host },
    rateStore,
    privateIssuers: config.privateIssuers,
    submitter: {
      db,
      engine,
      runs,
      backlog,
      log,
      tally: openTally(sums, engine.registry),
      applyWaitMs: config.applyWaitMs,
      queuedEntries: config.queuedEntries,
      enqueue: runQueue(queue).enqueue,
      whyNot,
    },
  })
  const openOtherSockets = acceptOften(app)
  await app.ready()
  const url = await app.listen({ port: config.port, host: config.host, ...listenOptions })
  await openOtherSockets()
  const registered = registerProcess(db, 'servers', runFormat, backlog.load)
  return {
    url,
    firstTokenFile: isFirst && config.bootstrapToken === null ? tokenFile : null,
    close: async () => {
      if (config.drainMs > 0) {
        app.drain()
        await delay(config.drainMs)
      }
      await app.close()
      await registered.stop()
      rateStore?.disconnect()
      await runs.close()
      await sums.stop()
      await closeInTime(queue, closeWithinMs.other)
      await backend.close()
      await db.$disconnect()
    },
  }
}

/** Keeps the first token in its file before it is in the database: a start that is killed in between loses nothing. */
function keptToken(file: string, keys: Keyring): string {
  const remedy = 'remove it, and the next start makes another'
  return readOrCreateSecret(file, () => newSecret('api', keys), { minLength: minLengths.bootstrapToken, remedy })
}

if (import.meta.main) await runProgram(main)

/** Runs the API as a process. A container runs it, with the worker in another. */
async function main(): Promise<void> {
  const config = readServiceConfig()
  await checkPorts(config)
  const traces = await openTracing('api', config)
  const log = logger('api', config.logLevel)
  const server = await startServer(config)
  // This is before the log line: a reader of it may stop this process at once.
  const stopped = untilStopped(log, config.drainMs)
  log.info({ url: server.url }, 'serving')
  if (server.firstTokenFile !== null)
    log.warn({ file: server.firstTokenFile }, 'the first access token is in this file')
  await stopped
  await server.close()
  await traces.stop()
  process.exit(0)
}
