import { transaction } from '../../src/db/client.ts'
import { uuid7 } from '../../src/ids.ts'
import { cancelRun } from '../../src/runs/ledger.ts'
import { reconcilerLedger as realReconcilerLedger } from '../../src/runs/reconciler-ledger.ts'
import { cancelStale } from '../../src/runs/retention.ts'
import { late } from '../../src/runs/why.ts'
import type { WorkerLedger } from '../../src/runs/worker-ledger.ts'
import type { Stand } from '../runs/stand.ts'
import { execute, sql } from '../support/sql.ts'
import { cancel, newRow } from './client.ts'
import { newDatabase } from './database.ts'
import { type RoundLedger, reconcilerLedger, type Stage, workerLedger } from './ledgers.ts'
import { newQueue } from './queue.ts'
import { seeded } from './random.ts'
import { noFaults } from './scenario.ts'
import { newWatch } from './watch.ts'
import { newWorld } from './world.ts'

/** The ledgers of the product and those of the simulation, to be used by the same steps. */

export type Ages = { readonly attempts?: number; readonly enqueuedS?: number; readonly createdS?: number }

export type Twin = {
  /** Adds a queued run. Ages are in seconds. @returns its id */
  add(ages?: Ages): Promise<string>
  readonly worker: WorkerLedger
  readonly reconciler: Omit<RoundLedger, 'waiting'>
  /** Cancels a run as the API does. @returns whether it did */
  cancel(id: string): Promise<boolean>
  /** State, attempts, applied, reason. */
  row(id: string): Promise<readonly unknown[]>
  /** Numbers of the attempts that are recorded as failed. */
  failedAttempts(id: string): Promise<readonly number[]>
  /** Waits for it, and lets time pass. */
  until<Result>(result: Promise<Result>): Promise<Result>
}

/** The product, on PostgreSQL. */
export async function realTwin({ db, worker }: Stand): Promise<Twin> {
  await db.run.deleteMany()
  return {
    worker: worker.ledger,
    reconciler: { ...realReconcilerLedger(db), cancelStale: () => cancelStale(db, worker) },
    add: async ({ attempts = 1, enqueuedS = 0, createdS = enqueuedS } = {}) => {
      const id = uuid7()
      await execute(
        db,
        sql`INSERT INTO runs (id, title, kind, request_id, blueprint, logs, attempts, enqueued_at, created_at)
        VALUES (${id}::uuid, 'apply', 'radius', 'r', 'sealed', '{}', ${attempts}::integer,
          now() - make_interval(secs => ${enqueuedS}::float8), now() - make_interval(secs => ${createdS}::float8))`,
      )
      return id
    },
    cancel: (id) => transaction(db, (tx) => cancelRun(tx, id, late)),
    row: async (id) => {
      const { state, attempts, applied, reason } = await db.run.findUniqueOrThrow({ where: { id } })
      return [state, attempts, applied, reason]
    },
    failedAttempts: async (id) => {
      const found = await db.runAttempt.findMany({ where: { runId: id }, orderBy: { attempt: 'asc' } })
      return found.map(({ attempt }) => attempt)
    },
    until: (result) => result,
  }
}

/** The simulation, without faults. */
export function simulatedTwin(): Twin {
  const random = seeded(1)
  const world = newWorld(random, { ...noFaults }, undefined)
  const watch = newWatch(() => world)
  const [database, queue] = [newDatabase(world, watch, undefined), newQueue(world, watch)]
  const stage: Stage = {
    ...{ world, database, queue, watch, flaw: undefined, fates: new Map(), heard: new Map() },
    ...{ notify: () => {}, startLater: () => {} },
  }
  const process = world.start('twin')
  return {
    worker: workerLedger(stage, process),
    reconciler: reconcilerLedger(stage, process),
    add: async ({ attempts = 1, enqueuedS = 0, createdS = enqueuedS } = {}) => {
      const id = `run-${database.rows.size + 1}`
      const [enqueuedAt, createdAt] = [enqueuedS, createdS].map((seconds) => world.now() - seconds * 1_000)
      database.insert({ ...newRow(id, createdAt ?? 0), attempts, enqueuedAt: enqueuedAt ?? 0 }, true)
      return id
    },
    cancel: (id) => database.ask<boolean>(process, 'cancel', (reply) => cancel(stage, id, reply)),
    row: async (id) => {
      const row = database.rows.get(id)
      return [row?.state, row?.attempts, row?.applied, row?.reason]
    },
    failedAttempts: async (id) => database.rows.get(id)?.failedAttempts ?? [],
    until: async (result) => {
      let isOver = false
      const over = () => {
        isOver = true
      }
      result.then(over, over)
      // What the test itself has continued goes on before the next event.
      await new Promise((resolve) => setImmediate(resolve))
      await world.run(() => isOver)
      return result
    },
  }
}
