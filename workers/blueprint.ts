import { startReconciler } from '../src/blueprint/run/reconcile.ts'
import { work } from '../src/blueprint/run/work.ts'
import { readServiceConfig } from '../src/config.ts'
import { connect } from '../src/db/client.ts'
import { keyring } from '../src/db/seal.ts'
import { logger } from '../src/log.ts'
import { loadRegistry } from '../src/models/index.ts'
import { untilStopped } from '../src/process.ts'
import { closeInTime, closeWithinMs, openBackend } from '../src/queue/backend.ts'
import { startConsumer } from '../src/queue/consumer.ts'
import { applyQueue } from '../src/queue/define.ts'
import { doorbell } from '../src/queue/doorbell.ts'
import { startUpkeep } from '../src/queue/upkeep.ts'
import { runProgram } from '../src/start-error.ts'

/** The worker's process: takes doorbells from the queue and works on their runs, a few at a time. */

await runProgram(main)

async function main(): Promise<void> {
  const config = readServiceConfig()
  const { databaseUrl, secretKey } = config
  const log = logger('worker', config.logLevel)
  const db = connect(databaseUrl, { applicationName: 'gatewright-worker', max: config.workerConcurrency + 3 })
  const backend = await openBackend({ redisUrl: config.redisUrl, databaseUrl })
  for (const warning of await backend.check()) log.warn(warning)
  const engine = { registry: await loadRegistry(), keyring: keyring(secretKey), tokenMaxDays: config.tokenMaxDays }
  const worker = { db, engine, log, runSecretsHours: config.runSecretsHours }

  const consumer = await startConsumer(backend, db, config.workerConcurrency, (run) => work(worker, run))
  const queue = await backend.openQueue(applyQueue)
  // First of all what a worker that died has left behind: somebody waits for it.
  const reconciler = startReconciler(db, doorbell(queue), log)
  const upkeep = await startUpkeep(queue, log)
  // Before it says so: whoever reads it may stop it at once.
  const stopped = untilStopped(log)
  log.info({ queue: backend.kind, concurrency: config.workerConcurrency }, 'worker ready')

  await stopped
  upkeep.stop()
  await closeInTime(consumer, closeWithinMs.worker)
  await reconciler.stop()
  await closeInTime(queue, closeWithinMs.other)
  await backend.close()
  await db.close()
  log.info('worker stopped')
  process.exit(0)
}
