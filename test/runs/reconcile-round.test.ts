import { beforeEach, expect, test } from 'vitest'
import { reconcile } from '../../src/runs/reconcile.ts'
import { reconcilerLedger } from '../../src/runs/reconciler-ledger.ts'
import { execute, sql } from '../support/sql.ts'
import { stand } from './stand.ts'

/** One round of the reconciler without a queue. */

const there = await stand()
beforeEach(async () => {
  await there.db.run.deleteMany()
  const { id } = await there.recorded()
  await execute(
    there.db,
    sql`UPDATE runs SET attempts = 1, enqueued_at = now() - interval '1 minute' WHERE id = ${id}::uuid`,
  )
})

const round = (queue: Parameters<typeof reconcile>[1]) => reconcile(reconcilerLedger(there.db), queue, there.worker)

const away = async (): Promise<never> => {
  throw new Error('the queue is away')
}

test.each([
  ['asked', { enqueue: async () => {}, isQueued: away, wake: async () => {} }],
  ['given a job', { enqueue: away, isQueued: async () => false, wake: async () => {} }],
])('fails when the queue cannot be %s, so that the outage is logged', async (_, queue) => {
  await expect(round(queue)).rejects.toThrow('the queue is away')
})
