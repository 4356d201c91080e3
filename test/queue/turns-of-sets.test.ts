import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { startConsumer } from '../../src/queue/consumer.ts'
import { runQueue } from '../../src/queue/enqueue.ts'
import { startReconciler } from '../../src/runs/reconcile.ts'
import { work } from '../../src/runs/work.ts'
import { type Asker, answered, atEnd, installation, needs, queueOn } from '../support/kit.ts'

/** One user's sets never hold what others need: at most one of them is at work, on at most half of the slots. */

const entries = 101

/** @param slots of each worker */
async function othersGoFirst(queue: 'redis' | 'postgres', slots: readonly number[]): Promise<void> {
  const there = await installation({ queue, workers: 'none' })
  const loader = await there.make.user({ superuser: true })
  const innocents = await Promise.all([1, 2, 3, 4].map(() => there.make.user({ superuser: true })))
  const send = async (as: Asker, count: number) => {
    const name = `set-${randomUUID()}`
    const of = (index: number) => ({ model: 'service_core.group', identifiers: { name: `${name} ${index}` } })
    const document = { version: 1, metadata: { name }, entries: Array.from({ length: count }, (_, index) => of(index)) }
    const answer = await answered(
      202,
      as.put('/api/v3/blueprints/', document, { headers: { prefer: 'respond-async' } }),
    )
    return answer.headers.location?.split('/').at(-2) ?? ''
  }
  const sets: string[] = []
  for (let count = 0; count < 8; count += 1) sets.push(await send(loader, entries))
  // Its own later run keeps behind them.
  const later = await send(loader, 1)
  const puts: string[] = []
  for (const each of innocents) puts.push(await send(each, 1))
  // Ends the test early: what is behind the first few sets says nothing more.
  const kept = sets.slice(0, 4)
  await there.db.run.deleteMany({ where: { id: { in: sets.slice(4) } } })

  /** The order in which they ended. */
  const ended: string[] = []
  const { backend } = await queueOn({ redisUrl: there.redisUrl, databaseUrl: there.url })
  for (const concurrency of slots) {
    const consumer = await startConsumer(backend, there.db, concurrency, async (run, onProgress) => {
      const end = await work(there.worker, run, onProgress)
      if (end !== undefined) ended.push(run)
      return end
    })
    atEnd(() => consumer.close())
  }
  const reconciler = startReconciler(there.db, runQueue(there.queue), there.worker)
  atEnd(() => reconciler.stop())
  await there.queued(0)
  const { length } = await there.db.run.findMany({ where: { state: 'done', applied: true } })
  expect(length).toBe(kept.length + puts.length + 1)
  await expect.poll(() => ended.length, { timeout: 45_000 }).toBe(length)
  const second = ended.indexOf(kept[1] ?? '')
  for (const put of puts) expect(ended.indexOf(put), 'before the second set').toBeLessThan(second)
  expect(ended.filter((run) => kept.includes(run) || run === later)).toEqual([...kept, later])
}

test.each([
  ['a worker with one slot', [1]],
  ['one worker', [4]],
] as const)("%s on PostgreSQL's queue", (_, slots) => othersGoFirst('postgres', slots))

test.runIf(needs('redis-server'))('on Redis: two workers', () => othersGoFirst('redis', [2, 2]))

test('what one user may have waiting is counted in entries', async () => {
  const there = await installation({ workers: 'none', queuedEntries: 10_000 })
  const loader = await there.make.user({ superuser: true })
  const send = (as: Asker, count: number, headers = { prefer: 'respond-async' }) => {
    const of = (index: number) => ({ model: 'service_core.group', identifiers: { name: `${count} ${index}` } })
    const document = { version: 1, metadata: { name: 'q' }, entries: Array.from({ length: count }, (_, i) => of(i)) }
    return as.put('/api/v3/blueprints/', document, { headers })
  }
  // More than all of it: alone, a document is taken.
  for (let count = 0; count < 4; count += 1) expect((await send(loader, 2_400)).status).toBe(202)
  expect(await send(loader, 401)).toMatchObject({
    status: 429,
    json: { code: 'too_many_requests', detail: expect.stringMatching(/have 9600 entries already.*QUEUED_ENTRIES/) },
  })
  for (const status of [202, 202, 202, 202, 429]) expect((await send(loader, 1)).status).toBe(status)
  expect((await send(there.admin, 401)).status).toBe(202)
})
