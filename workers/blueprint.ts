import { readServiceConfig } from '../src/config.ts'
import { type Connected, connect, openFirst } from '../src/db/client.ts'
import { poolSizes, tooFewConnections } from '../src/db/connections.ts'
import type { EngineTransaction } from '../src/db/engine-tx.ts'
import { pipelinedTransaction } from '../src/db/pipeline.ts'
import { findPooler, sessionUrl } from '../src/db/pooler.ts'
import { registerProcess } from '../src/db/presence.ts'
import { requireSecretKey } from '../src/db/sealed-check.ts'
import { openSums } from '../src/db/sums.ts'
import { logger } from '../src/log.ts'
import { openEngine } from '../src/plan/open-engine.ts'
import { end, untilStopped } from '../src/process.ts'
import { closeInTime, closeWithinMs, openBackend } from '../src/queue/backend.ts'
import { startConsumer } from '../src/queue/consumer.ts'
import { runQueue } from '../src/queue/enqueue.ts'
import { startMaintenance } from '../src/queue/maintenance.ts'
import { untilMigrated } from '../src/queue/migrated.ts'
import { startWatchdog } from '../src/queue/watchdog.ts'
import { serveWorkerMetrics } from '../src/queue/worker-metrics.ts'
import { runFormat } from '../src/runs/format.ts'
import { startComparing } from '../src/runs/outside.ts'
import { startReconciler } from '../src/runs/reconcile.ts'
import { cancelStale, startRetention } from '../src/runs/retention.ts'
import { openTally } from '../src/runs/tally.ts'
import { work } from '../src/runs/work.ts'
import { workerLedger } from '../src/runs/worker-ledger.ts'
import { runProgram } from '../src/start-error.ts'
import { openTracing } from '../src/tracing/open.ts'

/** The worker process: takes jobs from the queue and works on their runs, several at once. */

if (import.meta.main) await runProgram(() => runWorker(({ pool }) => pipelinedTransaction(pool)))

/** @param transactionsOf one of the two implementations of the engine's transactions (src/db/engine-tx.ts) */
export async function runWorker(transactionsOf: (connected: Connected) => EngineTransaction): Promise<void> {
  const config = readServiceConfig()
  const { databaseUrl, redisUrl, runSecretsHours, workerConcurrency: slots } = config
  const traces = await openTracing('worker', config)
  const log = logger('worker', config.logLevel)
  const pooler = await findPooler(config, log)
  const connected = connect(databaseUrl, {
    applicationName: 'gatewright-worker',
    max: poolSizes.worker(slots),
    pooler,
  })
  const { db } = connected
  await openFirst(db)
  const backend = await openBackend({ redisUrl, databaseUrl: sessionUrl(config) })
  for (const warning of await backend.check()) log.warn(warning)
  await untilMigrated(db, log)
  const engine = await openEngine(config)
  await requireSecretKey(db, engine.keyring)
  const tooFew = pooler === null ? await tooFewConnections(db, backend.kind, { concurrency: slots }) : null
  if (tooFew !== null) log.warn(tooFew)
  const ledger = workerLedger({ db, transaction: transactionsOf(connected), engine, runSecretsHours })

  const sums = openSums(db)
  const worker = { ledger, log, tally: openTally(sums, engine.registry) }
  worker.tally.workerStarted()
  // The counts are written at once: a worker that dies of its first job would not be counted otherwise.
  await sums.write()

  const { workerMetricsPort: port, workerMetricsHost: host } = config
  let busy = () => 0
  const sources = { db, registry: engine.registry, jobs: { slots, busy: () => busy() }, own: sums.own }
  const metrics = port === null ? null : await serveWorkerMetrics({ port, host }, sources)

  // This is done before any job is taken: a restored dump brings old runs together with their jobs.
  await cancelStale(db, worker)
  const consumer = await startConsumer(backend, db, slots, (...job) => work(worker, ...job), reportTaken())
  busy = consumer.busy
  const queue = await backend.openQueue()
  // This is first, because a dead worker may have left runs whose submitters still wait.
  const reconciler = startReconciler(db, runQueue(queue), worker)
  const retention = startRetention(db, engine.registry, config, log)
  const comparing = startComparing(db, engine.registry, log)
  const maintenance = await startMaintenance(queue, log)
  const watchdog = startWatchdog(db, queue, consumer, log)
  const registered = registerProcess(db, 'workers', runFormat, consumer)
  // This is before the log line: a reader of it may stop this process at once.
  const stopped = untilStopped(log)
  log.info({ queue: backend.kind, concurrency: slots }, 'worker ready')
  process.send?.('ready')

  await stopped
  await metrics?.stop()
  void maintenance.stop()
  watchdog.stop()
  await closeInTime(consumer, closeWithinMs.worker)
  for (const part of [registered, reconciler, retention, comparing, sums]) await part.stop()
  await closeInTime(queue, closeWithinMs.other)
  await backend.close()
  await db.$disconnect()
  await traces.stop()
  log.info('worker stopped')
  end(0)
}

/** Reports the first job to the supervisor of `npm start`, which then starts the next worker without a pause. */
function reportTaken(): () => void {
  let isReported = false
  return () => {
    if (!isReported) process.send?.('taken')
    isReported = true
  }
}
