import type { FastifyBaseLogger } from 'fastify'
import { whyNoChanges } from '../db/accepts-changes.ts'
import { type Db, ping } from '../db/client.ts'
import { isMigrated } from '../db/migrate.ts'
import { readProcesses, silentOnes } from '../db/presence.ts'
import type { Keyring } from '../db/seal.ts'
import { judgeSecretKey } from '../db/sealed-check.ts'
import { dashboardPath } from '../paths.ts'
import { acceptsNone, queueSilent, whyNoJobs } from '../queue/accepts-jobs.ts'
import type { ApplyQueue } from '../queue/backend.ts'
import { seenFormats } from '../queue/heartbeat.ts'
import { judgeWorkers, workersStartWithinS } from '../queue/judge-workers.ts'
import { describePause, type Pause, readPause } from '../queue/pause.ts'
import { probe } from './probe.ts'

/** Whether each part is healthy: one judgement, for probes, metrics and the page of operators. */

export type Check = { readonly ok: boolean; readonly detail: string }

/** The parts without which this process can serve nothing. */
export const servingParts = ['database', 'migrations', 'secrets', 'versions'] as const

export type ServingChecks = Readonly<Record<(typeof servingParts)[number], Check>>
/** All parts: those for serving, and those without which nothing that is submitted is applied. */
export type Checks = ServingChecks & Readonly<Record<'changes' | 'queue' | 'pause' | 'worker', Check>>

/** Asks parts at once, each with a time limit. It never fails. */
export type Inspect = {
  /** Whether this process can serve: the parts that it needs for that. */
  serves(): Promise<ServingChecks>
  /** Whether what is submitted will be applied: all parts. */
  applies(): Promise<Checks>
}

const check = (ok: boolean, good: string, bad: string): Check => ({ ok, detail: ok ? good : bad })

const isUnknown = 'is not known: no answer came in time.'

export function openInspector(db: Db, queue: ApplyQueue, keyring: Keyring, log: FastifyBaseLogger): Inspect {
  /**
   * Logs each change of a part, with its cause, and not every probe.
   *
   * @param silent the detail when there is no answer
   * @param startsWithinS the part may start at the same time as this process: until then, it is not logged as unhealthy
   */
  function part(name: keyof Checks, silent: string, ask: () => Promise<Check>, startsWithinS = 0) {
    const question = probe(ask)
    const loggedFrom = performance.now() + startsWithinS * 1_000
    let last = true
    return async () => {
      let cause: unknown
      const found = await question().catch((error: unknown): Check => {
        cause = error
        return { ok: false, detail: silent }
      })
      if (found.ok !== last && (found.ok || performance.now() > loggedFrom)) {
        log[found.ok ? 'info' : 'warn']({ part: name, ...(cause !== undefined && { err: cause }) }, found.detail)
        last = found.ok
      }
      return [name, found] as const
    }
  }

  // Its time limit is shorter than that of the whole check: a queue that is away proves nothing about the worker.
  const pause = probe(() => readPause(queue, db), { withinMs: pauseWithinMs })
  const noChanges = probe(() => whyNoChanges(db), { everyMs: writesEveryMs })
  const noJobs = probe(() => whyNoJobs(queue), { everyMs: writesEveryMs })
  // Two parts each ask these.
  const answers = probe(() => ping(db))
  const formats = probe(() => seenFormats(db))
  const serving = [
    part('database', 'PostgreSQL does not answer: does it run, and is DATABASE_URL right?', async () => {
      await answers()
      return { ok: true, detail: 'PostgreSQL answers.' }
    }),
    part('migrations', `Whether all migrations are applied ${isUnknown}`, async () =>
      check(
        await isMigrated(db),
        'All migrations are applied.',
        'Migrations of this version are missing in the database: start the API again, which applies them.',
      ),
    ),
    // The ids of the keys are for the log of the start alone.
    part('secrets', `Whether SECRET_KEY is the right one ${isUnknown}`, async () =>
      check(
        (await judgeSecretKey(db, keyring)) === null,
        'SECRET_KEY is the key of this database.',
        'SECRET_KEY is not the key of this database: start the API with the right one.',
      ),
    ),
    // While workers of an older version take jobs, an API of their version applies what this one cannot.
    part('versions', `Whether workers of an older version take jobs ${isUnknown}`, async () => {
      const { isBehind, detail } = judgeWorkers(await formats())
      return check(isBehind !== true, 'No worker is of an older version that would fail.', detail)
    }),
  ]
  const applying = [
    part('changes', `Whether PostgreSQL accepts changes ${isUnknown}`, async () => {
      const [why] = await Promise.all([noChanges(), answers()])
      return check(why === null, 'PostgreSQL accepts changes.', `PostgreSQL answers, but accepts no changes: ${why}.`)
    }),
    part('queue', queueSilent, async () => {
      const [why] = await Promise.all([noJobs(), queue.getJobCounts('waiting')])
      return why === null ? { ok: true, detail: 'The queue answers.' } : { ok: false, detail: acceptsNone(why) }
    }),
    // A pause that is not known is no cause of its own: the queue is unhealthy then.
    part('pause', pauseUnknown, () => pause().then(pauseCheck, () => ({ ok: true, detail: pauseUnknown }))),
    part(
      'worker',
      `When a worker last took a job ${isUnknown}`,
      async () => {
        const ofWorkers = Promise.all([formats(), readProcesses(db, 'workers')])
        const [paused, [seen, workers]] = await Promise.all([pause().catch(() => null), ofWorkers])
        if (paused !== null) return pauseCheck(paused)
        const { ok, detail } = judgeWorkers(seen)
        const silent = silentOnes(workers, 'worker')
        // The other workers do the work of a silent one: it is a warning.
        return { ok, detail: ok && silent !== '' ? `${detail} ${silent} The dashboard names them.` : detail }
      },
      workersStartWithinS,
    ),
  ]
  const ask = async (parts: typeof serving) => Object.fromEntries(await Promise.all(parts.map((inspect) => inspect())))
  return {
    serves: async () => (await ask(serving)) as ServingChecks,
    applies: async () => {
      const found = (await ask([...serving, ...applying])) as Checks
      const { database, changes, queue: ofQueue, worker } = found
      // A worker that cannot take jobs, or record that it took one, seems stopped.
      return worker.ok || (database.ok && changes.ok && ofQueue.ok) ? found : { ...found, worker: workerUnknown }
    },
  }
}

/** A write costs more than a question, and anyone may send probes. */
const writesEveryMs = 2_000

const workerUnknown: Check = {
  ok: false,
  detail: 'Whether a worker takes jobs is not known while the database or the queue is unhealthy.',
}

const pauseWithinMs = 500
const pauseUnknown = `Whether the queue is paused ${isUnknown}`

const pauseCheck = (pause: Pause | null): Check =>
  pause === null
    ? { ok: true, detail: 'The queue is not paused.' }
    : { ok: false, detail: `${describePause(pause)}. Resume it on the dashboard, ${dashboardPath}resume/.` }
