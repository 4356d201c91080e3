import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, environmentFor, readConfig } from './config.ts'
import { connect } from './db/client.ts'
import { hasEmbedded, startEmbedded } from './db/embedded.ts'
import { migrate } from './db/migrate.ts'
import { sql } from './db/sql.ts'
import { keepSecret } from './kept-secret.ts'
import { checkPort, openDataDir, portError } from './standalone/data-dir.ts'
import { lock } from './standalone/lock.ts'
import { readyScreen, report } from './standalone/screen.ts'
import { Stops } from './standalone/stops.ts'
import { superviseWorker } from './standalone/worker.ts'
import { StartError, sentence } from './start-error.ts'
import { newSecret } from './token-secret.ts'

/** Everything in one command: PostgreSQL, the migrations, the API in this process and the worker in one of its own. */

/** Milliseconds that each part may take to stop; together under ten seconds, PostgreSQL's four included. */
const stopWithin = { apiMs: 3_500, workerMs: 2_000 }

/** Characters, as of SECRET_KEY and BOOTSTRAP_TOKEN. */
const atLeast = { secretKey: 32, token: 20 }
const makeAnother = 'remove it, and the next start makes another'
const putBack =
  'what is secret in the database beside it is sealed under the key it held: put that back, or set SECRET_KEY'

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
  const hasData = hasEmbedded(dataDir)
  if (secretKey === null && hasData && !existsSync(file)) throw new StartError(`${file} is missing, and ${putBack}.`)
  const limits = { atLeast: atLeast.secretKey, remedy: hasData ? putBack : makeAnother }
  const key = secretKey ?? keepSecret(file, () => randomBytes(32).toString('base64url'), limits)
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
  // From the first start on the file is a note for the operator, who may have taken the token out of it.
  if (done.length > 0) return { token: bootstrapToken, file: holdsText(file) ? file : null, isNew: false }
  if (bootstrapToken !== null) return { token: bootstrapToken, file: null, isNew: false }
  const limits = { atLeast: atLeast.token, remedy: makeAnother }
  return { token: keepSecret(file, () => newSecret('api'), limits), file, isNew: true }
}

function holdsText(file: string): boolean {
  return existsSync(file) && readFileSync(file, 'utf8').trim() !== ''
}
