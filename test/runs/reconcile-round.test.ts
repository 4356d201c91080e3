import { beforeEach, expect, test } from 'vitest'
import { locks } from '../../src/db/locks.ts'
import { reconcile } from '../../src/runs/reconcile.ts'
import { reconcilerLedger } from '../../src/runs/reconciler-ledger.ts'
import { rows, run, sql } from '../support/sql.ts'
import { held, stand } from './stand.ts'

/** One round of the reconciler, beside another one and without a queue. */

let id: string
const there = await stand()
beforeEach(async () => {
  await there.db.run.deleteMany()
  ;({ id } = await there.recorded())
  await run(
    there.db,
    sql`UPDATE runs SET attempts = 1, enqueued_at = now() - interval '1 minute' WHERE id = ${id}::uuid`,
  )
})

const round = (queue: Parameters<typeof reconcile>[1]) => reconcile(reconcilerLedger(there.db), queue, there.worker)

test('does nothing while another worker reconciles', async () => {
  const jobs: string[] = []
  const queue = {
    wake: async () => {},
    enqueue: async (job: { id: string }) => void jobs.push(job.id),
    isQueued: async () => false,
  }
  const lock = sql`SELECT pg_advisory_xact_lock(${locks.reconciler}::bigint)::text`
  const release = await held(there, (tx) => rows(tx, lock))
  await round(queue)
  expect(jobs).toEqual([])
  await release()
  await round(queue)
  expect(jobs).toEqual([id])
})

const away = async (): Promise<never> => {
  throw new Error('the queue is away')
}

test.each([
  ['asked', { enqueue: async () => {}, isQueued: away, wake: async () => {} }],
  ['given a job', { enqueue: away, isQueued: async () => false, wake: async () => {} }],
])('fails when the queue cannot be %s, so that the outage is logged', async (_, queue) => {
  await expect(round(queue)).rejects.toThrow('the queue is away')
})
