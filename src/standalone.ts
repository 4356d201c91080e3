import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, ConfigError, environmentFor, readConfig } from './config.ts'
import { connect } from './db/client.ts'
import { hasEmbedded, startEmbedded } from './db/embedded.ts'
import { MigrationError, migrate } from './db/migrate.ts'
import { sql } from './db/sql.ts'
import { Problem } from './errors.ts'
import { keepSecret } from './kept-secret.ts'
import { checkPort, openDataDir, portError } from './standalone/data-dir.ts'
import { lock } from './standalone/lock.ts'
import { readyScreen, report } from './standalone/screen.ts'
import { Stops } from './standalone/stops.ts'
import { superviseWorker } from './standalone/worker.ts'
import { reasonOf, StartError } from './start-error.ts'
import { newSecret } from './token-secret.ts'

/** Everything in one command: PostgreSQL, the migrations, the API in this process and the worker in one of its own. */

/** Milliseconds that each part may take to stop; together under ten seconds, PostgreSQL's four included. */
const stopWithin = { apiMs: 3_500, workerMs: 2_000 }

const stops = new Stops()
await main()

async function main(): Promise<void> {
  const asked = untilAsked()
  const broken = Promise.withResolvers<never>()
  process.on('uncaughtException', broken.reject)
  process.on('unhandledRejection', broken.reject)
  let code = 0
  try {
    const started = start(readConfig(undefined, { logLevel: 'warn' }), broken.reject)
    await Promise.race([started, asked, broken.promise])
    await Promise.race([asked, broken.promise])
    process.stdout.write('\n  Stopping ... ')
  } catch (error) {
    code = 1
    process.stderr.write(`\n${sentence(error)}\n`)
  }
  await stops.run()
  if (code === 0) process.stdout.write('stopped.\n')
  process.exit(code)
}

/** Signals that come again change nothing: npm passes on what the terminal has already sent. */
function untilAsked(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve())
  })
}

async function start(config: Config, broken: (reason: Error) => void): Promise<void> {
  const startedMs = performance.now()
  process.stdout.write('\n')
  openDataDir(config.dataDir)
  stops.add(lock(config.dataDir))
  await checkPort(config.port, config.host)
  // Loading the API takes as long as starting PostgreSQL: both at once.
  const loading = import('./server.ts')
  loading.catch(() => {})

  const { databaseUrl, secretKey, place } = await openDatabase(config, broken)
  await stops.unlessStopping(() => report('Looking for migrations', () => migrate(databaseUrl)))
  const embedded = config.databaseUrl === null
  const chosen = embedded
    ? await prepareToken(config, databaseUrl)
    : { token: config.bootstrapToken, file: null, isNew: false }
  const settings = { ...config, databaseUrl, secretKey, bootstrapToken: chosen.token }

  const { url, firstToken } = await stops.unlessStopping(() =>
    report('Starting the API and the worker', async () => {
      const { startServer } = await loading
      const worker = superviseWorker(environmentFor({ ...settings, bootstrapToken: null }), config.logLevel)
      stops.add(() => worker.stop(stopWithin.workerMs))
      const serving = startServer(settings)
      stops.add(async () => (await serving.catch(() => null))?.close(), stopWithin.apiMs)
      const [server] = await Promise.all([serving, worker.ready])
      worker.show()
      return server
    }).catch((error: unknown) => {
      throw 'syscall' in Object(error) && Object(error).syscall === 'listen'
        ? portError(config.port, config.host, error)
        : error
    }),
  )
  const queue = config.redisUrl === null ? 'PostgreSQL' : 'your Redis'
  const shown = firstToken ?? (chosen.isNew ? chosen.token : null)
  process.stdout.write(readyScreen({ url, startedMs, place, queue, tokenFile: chosen.file, firstToken: shown }))
}

type Database = { databaseUrl: string; secretKey: string; place: string }

async function openDatabase(config: Config, broken: (reason: Error) => void): Promise<Database> {
  const { dataDir, databaseUrl, secretKey } = config
  if (databaseUrl !== null && secretKey !== null)
    return { databaseUrl, secretKey, place: 'your PostgreSQL (DATABASE_URL)' }
  const file = join(dataDir, 'secret-key')
  if (secretKey === null && hasEmbedded(dataDir) && !existsSync(file)) {
    throw new StartError(
      `${file} is missing, and what is secret in the database beside it is sealed under it: put it back, or set SECRET_KEY.`,
    )
  }
  const key = secretKey ?? keepSecret(file, () => randomBytes(32).toString('base64url'))
  const postgres = await startEmbedded(dataDir, report)
  stops.add(postgres.stop)
  void postgres.ended.then(() =>
    broken(new StartError(`PostgreSQL has ended; ${join(dataDir, 'postgres.log')} says why.`)),
  )
  return { databaseUrl: postgres.url, secretKey: key, place: postgres.folder }
}

/**
 * The first token is in its file before the database knows it: a start that is killed in between loses nothing.
 *
 * @returns file: null when there is none, because the operator chose the token or has put it elsewhere
 */
async function prepareToken(
  { bootstrapToken, dataDir }: Config,
  url: string,
): Promise<{ token: string | null; file: string | null; isNew: boolean }> {
  const file = join(dataDir, 'admin-token')
  const db = connect(url, { applicationName: 'gatewright-start', max: 1 })
  const done = await db
    .query(sql`SELECT 1 FROM installation WHERE bootstrapped_at IS NOT NULL`)
    .finally(() => db.close())
  if (done.length > 0) return { token: bootstrapToken, file: existsSync(file) ? file : null, isNew: false }
  if (bootstrapToken !== null) return { token: bootstrapToken, file: null, isNew: false }
  return { token: keepSecret(file, () => newSecret('api')), file, isNew: true }
}

/** For what the operator can mend one sentence; for the rest, which are bugs, the whole story. */
function sentence(error: unknown): string {
  if (error instanceof StartError || error instanceof ConfigError || error instanceof MigrationError)
    return error.message
  if (error instanceof Problem) return `${error.message} (${reasonOf(error.cause)})`
  // PostgreSQL refuses a login: classes 28 and 3D.
  if (/^(28|3D)/.test(reasonOf(error))) return `The database of DATABASE_URL refuses: ${(error as Error).message}.`
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
