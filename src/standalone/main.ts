import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, environmentFor, minLengths, readConfig, readVariable } from '../config.ts'
import { migrate } from '../db/migrate.ts'
import { letSeeSessions, prepareLogins, withLogin } from '../db/roles.ts'
import { checkPorts, portError } from '../http/port.ts'
import { prepareDatabase } from '../prepare.ts'
import { readOrCreateSecret } from '../secret-file.ts'
import { StartError, sentence } from '../start-error.ts'
import { limitTime } from '../time-limit.ts'
import { openTracing } from '../tracing/open.ts'
import { banner, report } from './banner.ts'
import { openDataDir } from './data-dir.ts'
import { hasEmbedded, startEmbedded } from './embedded.ts'
import { lock } from './lock.ts'
import { leaveRoot } from './ordinary-user.ts'
import { superviseWorker } from './worker.ts'

/** `npm start`: PostgreSQL and a worker as child processes, the migrations, and the API in this process. */

/** Milliseconds for the API and the worker to stop. With the four seconds of PostgreSQL that is less than ten. */
const stopMs = { api: 3_500, worker: 2_000 }

const generateAnother = 'remove it, and the next start makes another'
const putBack =
  'what is secret in the database beside it is sealed under the key it held: put that back, or set SECRET_KEY; if it is lost, npm run secrets -- forget is the way back'

/** Lines are readable on a terminal, unless the operator sets a log level: then they are JSON. */
const isReadable = process.stdout.isTTY === true && readVariable('LOG_LEVEL') === undefined
const readable = isReadable ? (await import('./lines.ts')).readable : undefined

/** Stops all parts, in reverse order of their start. */
const cleanup = new AsyncDisposableStack()
const { promise: failed, reject: fail } = Promise.withResolvers<never>()

async function main(): Promise<void> {
  process.on('uncaughtException', fail)
  process.on('unhandledRejection', fail)
  // The handlers stay: npm passes on a signal that this process has from the terminal already.
  const stopRequested = new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve())
  })
  let exitCode = 0
  try {
    const config = readConfig(undefined, { logLevel: readable ? 'info' : 'warn' })
    await Promise.race([start(config), stopRequested, failed])
    await Promise.race([stopRequested, failed])
    process.stdout.write('\n  Stopping ... ')
  } catch (error) {
    exitCode = 1
    process.stderr.write(`\n${sentence(error)}\n`)
  }
  await cleanup.disposeAsync().catch((error) => process.stderr.write(`\nWhile stopping: ${sentence(error)}\n`))
  if (exitCode === 0) process.stdout.write('stopped.\n')
  process.exit(exitCode)
}

async function start(config: Config): Promise<void> {
  const startMs = performance.now()
  process.stdout.write('\n')
  const whyRoot = leaveRoot(config)
  openDataDir(config.dataDir)
  cleanup.defer(lock(config.dataDir))
  await checkPorts(config)
  // Loading the API takes as long as starting PostgreSQL: both at once.
  const loading = import('../server.ts')
  loading.catch(() => {})

  const { databaseUrl, secretKey, location } = await openDatabase(config)
  const isEmbedded = config.databaseUrl === null
  const tokenFile = join(config.dataDir, 'admin-token')
  // No other API could take requests meanwhile.
  const settings = { ...config, databaseUrl, secretKey, drainMs: 0 }

  const server = await report('Starting the API and the worker', async () => {
    const { startServer } = await loading
    const write = readable && ((line: string) => print(readable(line)))
    const traces = await openTracing('api', config, write)
    cleanup.defer(traces.stop)
    const worker = superviseWorker(environmentFor({ ...settings, bootstrapToken: null }), readable)
    cleanup.defer(() => worker.stop(stopMs.worker))
    const starting = startServer(settings, write)
    const close = async () => (await starting.catch(() => null))?.close()
    cleanup.defer(() => limitTime(close(), stopMs.api, () => {}))
    await Promise.all([starting, worker.ready])
    worker.show()
    return starting
  }).catch((error: unknown) => {
    throw Object(error).syscall === 'listen' ? portError(config.port, config.host, error) : error
  })
  process.stdout.write(
    banner({
      url: server.url,
      startMs,
      database: location,
      queue: config.redisUrl === null ? 'PostgreSQL' : 'your Redis',
      tokenFile: server.firstTokenFile ?? (isEmbedded && holdsText(tokenFile) ? tokenFile : null),
      isFirst: server.firstTokenFile !== null,
      whyRoot,
    }),
  )
}

function print(line: string | null): void {
  if (line !== null) process.stdout.write(`${line.trimEnd()}\n`)
}

async function openDatabase(config: Config) {
  const { dataDir, databaseUrl, directDatabaseUrl, secretKey, redisUrl } = config
  if (databaseUrl !== null && secretKey !== null) {
    await report('Applying migrations', () => migrate(directDatabaseUrl ?? databaseUrl))
    return { databaseUrl, secretKey, location: 'your PostgreSQL (DATABASE_URL)' }
  }
  const file = join(dataDir, 'secret-key')
  const hasData = hasEmbedded(dataDir)
  if (secretKey === null && hasData && !existsSync(file)) throw new StartError(`${file} is missing, and ${putBack}.`)
  const rules = { minLength: minLengths.secretKey, remedy: hasData ? putBack : generateAnother }
  const key = secretKey ?? readOrCreateSecret(file, () => randomBytes(32).toString('base64url'), rules)
  const postgres = await startEmbedded(dataDir, report)
  cleanup.defer(postgres.stop)
  void postgres.ended.then(() =>
    fail(new StartError(`PostgreSQL has ended; ${join(dataDir, 'postgres.log')} says why.`)),
  )
  // Passwords live as long as this process: no file holds them.
  const login = (user: string) => ({ user, password: randomBytes(24).toString('base64url') })
  const [owner, service] = [login('gatewright_owner'), login('gatewright_service')]
  await report('Applying migrations', async () => {
    await prepareLogins(postgres.url, { owner, service })
    await letSeeSessions(postgres.url, service.user)
    await prepareDatabase({ ownerUrl: withLogin(postgres.url, owner), service, withQueue: redisUrl === null })
  })
  return { databaseUrl: withLogin(postgres.url, service), secretKey: key, location: postgres.folder }
}

/** Whether a file holds text. After the first start, the token file is a note for the operator, who may have emptied it. */
const holdsText = (file: string) => existsSync(file) && readFileSync(file, 'utf8').trim() !== ''

await main()
