import { Refusal } from '../../src/apply/refusal.ts'
import { CommitUnknown } from '../../src/db/client.ts'
import { databaseProblem, isConnectionLost } from '../../src/db/errors.ts'
import { runFormat } from '../../src/runs/format.ts'
import type { WorkerRun } from '../../src/runs/ledger.ts'
import { maxAttempts, patienceS, staleAfterS } from '../../src/runs/life.ts'
import type { Decided, ReconcilerLedger } from '../../src/runs/reconciler-ledger.ts'
import type { RunTx, WorkerLedger } from '../../src/runs/worker-ledger.ts'
import type { Database, Open } from './database.ts'
import type { Flaw } from './flaws.ts'
import type { SimulatedQueue } from './queue.ts'
import type { Fate, Row, Watch } from './watch.ts'
import { lostConnection, type Process, type World } from './world.ts'

/** The ledgers of worker and reconciler over the simulated database: each does what its SQL does. */

export type Stage = {
  readonly world: World
  readonly database: Database
  readonly queue: SimulatedQueue
  readonly watch: Watch
  readonly flaw: Flaw | undefined
  readonly fates: ReadonlyMap<string, Fate>
  /** What wakes the client of a run. */
  readonly heard: Map<string, () => void>
  /** Notifies the client of a run. */
  readonly notify: (id: string) => void
  /** Starts a worker again after a pause. */
  readonly startLater: (start: () => void) => void
}

const lockMs = 3_000
const ofKind = { kind: 'radius', slug: null, mode: 'apply' } as const
const busy = () => Object.assign(new Error('the statement ran out of time'), { code: '57014' })
const applied = { state: 'done', applied: true, reason: null, logs: ['applied'] } as const

export function workerLedger(stage: Stage, process: Process): WorkerLedger {
  const { database, flaw } = stage
  return {
    transaction: async (id, work) => {
      const tx = await database.ask<Open>(process, 'begin', (reply) => reply.ok(database.begin(process)))
      let isCommitting = false
      try {
        const result = await work(inTx(stage, tx, id))
        isCommitting = true
        const committing = commit(stage, tx)
        if (flaw === 'result reported before the commit') {
          committing.catch(() => {})
          return result
        }
        await committing.catch((error: unknown) => {
          if (flaw !== 'unknown commit taken for a success' || !isConnectionLost(error)) throw error
        })
        // The notification follows the commit, and is of what is in the row then.
        const row = database.rows.get(id)
        if (row !== undefined && asRun(row).state !== 'queued') stage.notify(id)
        return result
      } catch (error) {
        if (isCommitting && isConnectionLost(error)) {
          database.orphan(tx)
          throw new CommitUnknown('the connection was lost while committing', { cause: error })
        }
        await rollBack(stage, tx, error)
        throw databaseProblem(error)
      }
    },
    attemptFailed: async (id, _cause, { afterMs }) => {
      if (afterMs === undefined) return
      const isFree = database.rows.get(id)?.state === 'queued' && !database.isLocked(id)
      if (process.isAlive && isFree) database.write(id, { enqueuedAt: stage.world.now() + afterMs })
    },
    read: (id) =>
      database.ask(process, 'read the end', (reply) => {
        const row = database.rows.get(id)
        reply.ok(row === undefined ? null : asRun(row))
      }),
    notifyEnded: stage.notify,
  }
}

const asRun = ({ id, state, applied, reason, logs, createdAt }: Row) => ({
  ...{ id, applied, reason, logs: [...logs], createdAt: new Date(createdAt), startedAt: null, planTag: null },
  cancelledBy: null,
  // What is stored: `running` is not.
  state: state === 'running' ? 'queued' : state,
})

function commit({ database, world }: Stage, tx: Open): Promise<void> {
  return database.askIn(tx, 'commit', (reply) => {
    if (!world.random.chance(world.faults.limbo)) {
      database.commit(tx)
      return reply.ok(undefined)
    }
    world.note(`${tx.process.name}: commit: the connection is lost on the way`)
    tx.isInLimbo = true
    const isCommitted = world.random.chance(0.5)
    world.after(world.random.between(1, 5_000), () => (isCommitted ? database.commit(tx) : database.rollBack(tx)))
    reply.fail(lostConnection())
  })
}

async function rollBack({ database }: Stage, tx: Open, error: unknown): Promise<void> {
  if (isConnectionLost(error)) return database.orphan(tx)
  await database
    .askIn(tx, 'roll back', (reply) => {
      database.rollBack(tx)
      reply.ok(undefined)
    })
    .catch(() => database.orphan(tx))
}

function inTx(stage: Stage, tx: Open, id: string): RunTx {
  const { database, flaw, world, watch } = stage
  let lockedAt = 0
  const takeEffect = (id: string) => () => {
    const row = database.rows.get(id)
    if (row !== undefined) watch.applied(row, lockedAt)
  }
  return {
    lock: () =>
      database.askIn(tx, 'lock', (reply) =>
        database.whenFree(
          id,
          lockMs,
          () => tx.isOpen,
          reply.fail,
          () => {
            const row = database.rows.get(id)
            if (row === undefined) return reply.ok(undefined)
            if (flaw !== 'no lock') database.lock(tx, id)
            else tx.locks.add(id)
            lockedAt = world.now()
            reply.ok(asWorkerRun(stage, row))
          },
        ),
      ),
    apply: async ({ id }) => {
      await database.askIn(tx, 'apply the first entry', (reply) => {
        if (flaw === 'effect outside of the transaction') takeEffect(id)()
        else tx.writes.push(takeEffect(id))
        reply.ok(undefined)
      })
      const fate = stage.fates.get(id) ?? 'good'
      const now = fate === 'torn' ? world.random.pick(['good', 'refused', 'bug', 'busy']) : fate
      await database.askIn(tx, 'apply the second entry', (reply) => {
        if (now === 'fatal') return world.crash(tx.process)
        if (now === 'busy' && world.random.chance(0.3)) return reply.fail(busy())
        reply.ok(undefined)
      })
      if (now === 'refused') throw new Refusal([{ is: 'stated', reason: 'invalid', text: 'it is refused' }])
      if (now === 'bug') throw new Error('a bug')
      return { ...applied, audited: [] }
    },
    finish: ({ id }, { state, applied, reason, logs }) => {
      const attempts = () => (state === 'failed' ? attempted(database.rows.get(id)) : {})
      const finish = () => database.write(id, { state, applied, reason, logs, ...attempts() })
      if (flaw === 'result outside of the transaction') world.after(500, finish)
      else tx.writes.push(finish)
    },
    cancel: ({ id }, why) => {
      tx.writes.push(() => database.write(id, cancelled(why.sentence)))
    },
    takeTurn: async () => true,
    leaveQueued: () => {
      throw new Error('all runs are of the format that the worker knows, and have their turn')
    },
  }
}

/** Records that the present attempt failed. */
const attempted = (row: Row | undefined): Partial<Row> =>
  row === undefined ? {} : { failedAttempts: [...new Set([...row.failedAttempts, row.attempts])] }

export const cancelled = (why: string): Partial<Row> => ({ state: 'cancelled', reason: 'cancelled', logs: [why] })

function asWorkerRun({ flaw, world }: Stage, row: Row): WorkerRun {
  const ageMs = world.now() - row.createdAt
  const state = flaw === 'no state check' ? 'queued' : asRun(row).state
  return {
    ...{ id: row.id, title: row.id, attempts: row.attempts, applied: row.applied, reason: row.reason, state },
    ...{ logs: [...row.logs], submitterPk: null, submitterName: null, requestId: row.id, blueprint: null, options: {} },
    ...{ ...ofKind, format: runFormat, lockTimeout: '3s' },
    ...{ ageMs, queueMs: ageMs },
    isStale: flaw !== 'no age check' && ageMs > staleAfterS * 1_000,
  }
}

/** What a round of the reconciler does before it reconciles, too. */
export type RoundLedger = ReconcilerLedger & { waiting(): Promise<number>; cancelStale(): Promise<void> }

export function reconcilerLedger(stage: Stage, process: Process): RoundLedger {
  const { database, flaw, world, watch, notify } = stage
  const queued = () => [...database.rows.values()].filter(({ state }) => state === 'queued')
  const free = () => queued().filter(({ id }) => !database.isLocked(id))

  /** Runs whose attempt this process has counted and may not have enqueued. */
  const counted = new Set<string>()
  process.atCrash.push(() => counted.forEach(watch.excused))

  function save(runs: readonly Decided[]): Set<string> {
    const written = new Set<string>()
    for (const { id, attempts, next } of runs) {
      const row = database.rows.get(id)
      if (row === undefined) continue
      const isFree = row.state === 'queued' && !database.isLocked(id)
      const isSame = isFree && row.attempts === attempts
      if (!isSame && flaw !== 'reconciler writes without a check') {
        // Another reconciler was quicker: the attempt without a job counts.
        if (next.attempts < attempts) watch.excused(id)
        continue
      }
      written.add(id)
      if (next.attempts > attempts) {
        if (process.isAlive) counted.add(id)
        else watch.excused(id)
      }
      if (next.state === 'failed') database.write(id, { ...next, attempts: row.attempts, ...failed, ...attempted(row) })
      else if (flaw === 'attempts are not counted') database.write(id, { enqueuedAt: world.now() })
      else if (flaw === 'failed enqueue is counted' && next.attempts < attempts) continue
      else database.write(id, { ...next, enqueuedAt: world.now(), ...(next.attempts > attempts && attempted(row)) })
    }
    return written
  }

  return {
    waiting: () => database.ask(process, 'count', (reply) => reply.ok(queued().length)),
    cancelStale: () =>
      database.ask(process, 'cancel what is stale', (reply) => {
        for (const { id, createdAt } of free())
          if (world.now() - createdAt > staleAfterS * 1_000) database.write(id, cancelled('stale'))
        reply.ok(undefined)
      }),
    overdue: () =>
      database.ask(process, 'read overdue runs', (reply) => {
        counted.clear()
        const due = free().filter(
          ({ attempts, enqueuedAt }) => world.now() - enqueuedAt > patienceS(Math.min(attempts, maxAttempts)) * 1_000,
        )
        due.sort((one, other) => one.enqueuedAt - other.enqueuedAt)
        const fields = { ...ofKind, request: '', user: null, realUser: null }
        const isExplained = (row: Row) => row.failedAttempts.includes(row.attempts)
        reply.ok(
          due.map((row) => ({
            ...fields,
            id: row.id,
            attempts: row.attempts,
            title: row.id,
            isExplained: isExplained(row),
          })),
        )
      }),
    save: (runs) =>
      database
        .ask<ReadonlySet<string>>(process, 'save', (reply) => reply.ok(save(runs)))
        .catch((error: unknown) => {
          for (const { id } of runs) watch.excused(id)
          throw error
        }),
    due: async () => [],
    notifyEnded: notify,
  }
}

const failed = { applied: false, reason: 'unavailable', logs: ['no worker finished it'] } as const
