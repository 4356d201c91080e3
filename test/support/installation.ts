import { readFile } from 'node:fs/promises'
import { pino } from 'pino'
import { buildApp } from '../../src/app.ts'
import type { Engine } from '../../src/blueprint/inspect.ts'
import { startBacklog } from '../../src/blueprint/run/backlog.ts'
import { type Ring, startReconciler } from '../../src/blueprint/run/reconcile.ts'
import { startWaiter } from '../../src/blueprint/run/wait.ts'
import { type Worker, work } from '../../src/blueprint/run/work.ts'
import { bootstrap } from '../../src/bootstrap.ts'
import type { Db } from '../../src/db/client.ts'
import type { Api } from '../../src/http/api.ts'
import type { ApplyQueue } from '../../src/queue/backend.ts'
import { applyQueue, runOfJob } from '../../src/queue/define.ts'
import { doorbell } from '../../src/queue/doorbell.ts'
import { type Asker, askAs } from './asker.ts'
import { atEnd } from './at-end.ts'
import { freshDatabase } from './database.ts'
import { adminToken, loadEngine } from './engine.ts'
import { type Make, makers } from './make.ts'
import { queueOn } from './queue.ts'
import { freshRedis } from './redis.ts'
import { until } from './until.ts'

export type QueueKind = 'redis' | 'postgres'

/** One installation of the product in this process, on real servers: API, queue and worker. */
export type Installation = {
  readonly app: Api
  readonly url: string
  readonly redisUrl: string | null
  readonly db: Db
  readonly engine: Engine
  readonly queue: ApplyQueue
  readonly worker: Worker
  readonly ring: Ring
  /** Everything that API and worker logged, at the finest level. */
  readonly log: readonly string[]
  /** Whoever holds this token, in front of the API. */
  as(token: string): Asker
  /** The first admin, who may do everything. */
  readonly admin: Asker
  readonly make: Make
  /** Keeps the worker from beginning runs until the returned function is called: their jobs are taken, no more. */
  hold(): () => void
  /** Waits until this many runs were recorded and are not finished. */
  queued(count: number): Promise<void>
}

type Options = {
  queue?: QueueKind
  /** `none`: nobody answers the doorbell. */
  workers?: 'one' | 'none'
  applyWaitMs?: number
  runSecretsHours?: number
}

/** Call it in `beforeAll` or in a test; all of it is closed at the end of the file. */
export async function installation({
  queue: kind = 'postgres',
  workers = 'one',
  applyWaitMs = 10_000,
  runSecretsHours = 24,
}: Options = {}): Promise<Installation> {
  const { url, db } = await freshDatabase()
  const redisUrl = kind === 'redis' ? await freshRedis() : null
  const log: string[] = []
  const logger = pino({ level: 'trace' }, { write: (line: string) => void log.push(line) })
  const engine = await loadEngine()
  await bootstrap(db, engine, adminToken)

  const { backend, queue } = await queueOn({ redisUrl, databaseUrl: url })
  const events = await backend.openEvents(applyQueue)
  atEnd(() => events.close())
  const waiter = startWaiter(db, url, logger)
  atEnd(() => waiter.close())
  const ended = ({ jobId }: { jobId: string }) => waiter.wake(runOfJob(jobId) ?? '')
  events.on('completed', ended)
  events.on('failed', ended)
  const backlog = startBacklog(db)
  atEnd(() => backlog.close())
  const bell = doorbell(queue)
  const app = buildApp({ queue, submitter: { db, engine, waiter, backlog, log: logger, applyWaitMs, ring: bell.ring } })
  atEnd(() => app.close())
  await app.ready()

  const worker: Worker = { db, engine, log: logger, runSecretsHours }
  const gate = openGate()
  if (workers === 'one') {
    const takeUp = (job: { data: { run: string } }) => gate.passed().then(() => work(worker, job.data.run))
    const consumer = await backend.openWorker(applyQueue, takeUp, { concurrency: 4 })
    atEnd(() => consumer.close())
    const reconciler = startReconciler(db, bell, logger)
    atEnd(() => reconciler.stop())
  }

  const as = (token: string) => askAs(app, token)
  return {
    ...{ app, url, redisUrl, db, engine, queue, worker, log, as, ring: bell.ring },
    admin: as(adminToken),
    make: makers(db, as),
    hold: gate.hold,
    queued: async (count) => {
      const reached = async () => (await db.prisma.run.count({ where: { state: 'queued' } })) === count
      await until(reached, { what: `${count} runs to be queued` })
    },
  }
}

/** Lets through, or makes wait. */
function openGate(): { passed(): Promise<void>; hold(): () => void } {
  let held = Promise.resolve()
  return {
    passed: () => held,
    hold: () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      held = promise
      return resolve
    },
  }
}

/** The nine kinds, each with a shipped example. */
export const kinds = [
  'directory_sync_b',
  'ldap',
  'oauth2',
  'proxy',
  'rac',
  'radius',
  'saml',
  'scim',
  'workspace_sync_a',
] as const
export type Kind = (typeof kinds)[number]

export type Body = { app: Record<string, unknown>; provider_model: string; provider: Record<string, unknown> }

/** The shipped example of a kind, with other members put in; `undefined` leaves one out. */
export async function example(
  kind: Kind,
  changes: { app?: Record<string, unknown>; provider?: Record<string, unknown> } = {},
): Promise<Body> {
  const shipped: Body = JSON.parse(await readFile(new URL(`../../examples/${kind}.json`, import.meta.url), 'utf8'))
  return { ...shipped, app: { ...shipped.app, ...changes.app }, provider: { ...shipped.provider, ...changes.provider } }
}

/** The example under a name of its own, so that tests of one installation do not meet. */
export const named = (
  kind: Kind,
  name: string,
  changes: { app?: Record<string, unknown>; provider?: Record<string, unknown> } = {},
): Promise<Body> =>
  example(kind, {
    app: { slug: name, ...changes.app },
    provider: { name, ...(kind === 'oauth2' && { client_id: `client-${name}` }), ...changes.provider },
  })
