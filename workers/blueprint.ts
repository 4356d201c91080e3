import { startReconciler } from '../src/blueprint/run/reconcile.ts'
import { work } from '../src/blueprint/run/work.ts'
import { type Config, readConfig } from '../src/config.ts'
import { connect } from '../src/db/client.ts'
import { keyring } from '../src/db/seal.ts'
import { logger } from '../src/log.ts'
import { loadRegistry } from '../src/models/index.ts'
import { untilStopped } from '../src/process.ts'
import { closeInTime, closeWithinMs, openBackend } from '../src/queue/backend.ts'
import { applyQueue, canaryName } from '../src/queue/define.ts'
import { keepCanary, ring } from '../src/queue/doorbell.ts'
import { beat } from '../src/queue/heartbeat.ts'

/** The worker's process: takes doorbells from the queue and works on their runs, a few at a time. */

const config: Config = readConfig()
const log = logger('worker', config.logLevel)
const { databaseUrl, secretKey } = config
if (databaseUrl === null || secretKey === null) throw new Error('a worker needs DATABASE_URL and SECRET_KEY')

const db = connect(databaseUrl, { applicationName: 'gatewright-worker', max: config.workerConcurrency + 3 })
const backend = await openBackend({ redisUrl: config.redisUrl, databaseUrl })
await backend.check()
const engine = { registry: await loadRegistry(), keyring: keyring(secretKey) }
const worker = { db, engine, log, runSecretsHours: config.runSecretsHours }

const consumer = backend.openWorker(
  applyQueue,
  async (job) => {
    if (job.name !== canaryName) return work(worker, job.data.run)
    await beat(db)
    return 'consumed'
  },
  { concurrency: config.workerConcurrency },
)
await consumer.waitUntilReady()
const queue = backend.openQueue(applyQueue)
// A first connection to PostgreSQL that fails is never tried again: better not to start.
await queue.waitUntilReady()
// First of all what a worker that died has left behind: somebody waits for it.
const reconciler = startReconciler(db, (run, rings) => ring(queue, run, rings), log)
const keep = () => keepCanary(queue).catch((error: unknown) => log.warn({ err: error }, 'no canary yet'))
await keep()
const canary = setInterval(keep, 4_000)
log.info({ queue: backend.kind, concurrency: config.workerConcurrency }, 'worker ready')

await untilStopped(log)
clearInterval(canary)
await closeInTime(consumer, closeWithinMs.worker)
await reconciler.stop()
await closeInTime(queue, closeWithinMs.other)
await backend.close()
await db.close()
log.info('worker stopped')
process.exit(0)
