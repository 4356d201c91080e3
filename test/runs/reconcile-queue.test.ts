import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ApplyQueue, ApplyWorker, Backend } from '../../src/queue/backend.ts'
import { jobId } from '../../src/queue/define.ts'
import { runQueue } from '../../src/queue/enqueue.ts'
import { maxAttempts } from '../../src/runs/life.ts'
import { reconcile } from '../../src/runs/reconcile.ts'
import { reconcilerLedger } from '../../src/runs/reconciler-ledger.ts'
import { freshRedis, installation, needs, ownRedis, type QueueKind, queueOn, rows, sql, until } from '../support/kit.ts'
import { type Stand, stand } from './stand.ts'

/** The reconciler with a real queue: the state of a job decides whether its run is enqueued again. */

type Run = { id: string; title: string }

/** A run with this number of attempts, the last of them a minute ago. */
async function overdue({ db, recorded, run }: Stand, attempts = 1): Promise<Run> {
  const { id } = await recorded()
  await rows(
    db,
    sql`UPDATE runs SET attempts = ${attempts}, enqueued_at = now() - interval '1 minute' WHERE id = ${id}`,
  )
  return { id, title: (await run(id)).title }
}

function claims(kind: QueueKind, redis: () => Promise<string | null>): void {
  let there: Stand
  let backend: Backend
  let queue: ApplyQueue
  beforeAll(async () => {
    there = await stand()
    ;({ backend, queue } = await queueOn({ redisUrl: await redis(), databaseUrl: there.url }))
  })
  let worker: ApplyWorker | undefined
  const release = { work: () => {} }
  beforeEach(async () => {
    await there.db.run.deleteMany()
  })
  afterEach(async () => {
    release.work()
    await worker?.close()
    worker = undefined
    await queue.resume()
    await queue.obliterate({ force: true })
  })

  /** Lets a worker take the job, and waits for the state. */
  async function taken(state: 'active' | 'completed' | 'failed', run: Run): Promise<void> {
    const { promise: released, resolve } = Promise.withResolvers<void>()
    release.work = resolve
    const work = async () => {
      if (state === 'active') await released
      if (state === 'failed') throw new Error('a bug')
      return null
    }
    worker = await backend.openWorker(work, { concurrency: 1 })
    await until(`the job to be ${state}`, async () => (await queue.getJobState(jobId(run.id, 1))) === state)
  }

  const add = (run: Run, options: { delay?: number; priority?: number }) =>
    queue.add(run.title, { run: run.id }, { jobId: jobId(run.id, 1), ...options })

  test.each<[string, (run: Run) => Promise<unknown>]>([
    ['waits', (run) => add(run, {})],
    ['is prioritized', (run) => add(run, { priority: 1 })],
    ['waits in a paused queue', (run) => add(run, {}).then(() => queue.pause())],
    ['came into a paused queue', (run) => queue.pause().then(() => add(run, {}))],
  ])('a run whose job %s is not enqueued again', async (_, arrange) => {
    const run = await overdue(there)
    await arrange(run)
    await reconcile(reconcilerLedger(there.db), runQueue(queue), there.worker)
    const { state, attempts, enqueuedAt } = await there.run(run.id)
    expect({ state, attempts }).toEqual({ state: 'queued', attempts: 1 })
    expect(Date.now() - enqueuedAt.getTime()).toBeLessThan(10_000)
    expect(await queue.getJobState(jobId(run.id, 2))).toBe('unknown')
  })

  test.each<[string, (run: Run) => Promise<unknown>]>([
    ['was never added', async () => {}],
    ['the queue has forgotten', (run) => add(run, {}).then(() => queue.obliterate({ force: true }))],
    ['a worker has, but not the lock of its row', (run) => add(run, {}).then(() => taken('active', run))],
    ['is completed', (run) => add(run, {}).then(() => taken('completed', run))],
    ['failed', (run) => add(run, {}).then(() => taken('failed', run))],
    ['is delayed after an attempt', (run) => add(run, { delay: 60_000 })],
  ])('a queued run whose job %s is enqueued again', async (_, arrange) => {
    const run = await overdue(there)
    await arrange(run)
    await reconcile(reconcilerLedger(there.db), runQueue(queue), there.worker)
    expect(await there.run(run.id)).toMatchObject({ state: 'queued', attempts: 2 })
    expect(await queue.getJob(jobId(run.id, 2))).toMatchObject({ name: run.title, data: { run: run.id } })
  })

  test('a hundred are checked at once', async () => {
    const runs: Run[] = []
    while (runs.length < 100) runs.push(await overdue(there, maxAttempts))
    await Promise.all(runs.map((run) => queue.add(run.title, { run: run.id }, { jobId: jobId(run.id, maxAttempts) })))
    await reconcile(reconcilerLedger(there.db), runQueue(queue), there.worker)
    const fresh = await there.db.run.count({
      where: { state: 'queued', attempts: maxAttempts, enqueuedAt: { gt: new Date(Date.now() - 10_000) } },
    })
    expect(fresh).toBe(100)
  })

  test('a run that waited for long in a paused queue is applied when the queue is resumed', async () => {
    const there = await installation({ queue: kind, applyWaitMs: 20_000 })
    await there.queue.pause()
    const answers = Promise.all(['early', 'late'].map(async (name) => there.admin.submit('radius', name)))
    await there.queued(2)
    const runs = await there.db.run.findMany()
    await Promise.all(runs.map((run) => there.enqueue(run, maxAttempts)))
    await rows(there.db, sql`UPDATE runs SET attempts = ${maxAttempts}, enqueued_at = now() - interval '1 minute'`)
    const waiting = sql`SELECT count(*) AS runs FROM runs WHERE enqueued_at > now() - interval '10 seconds' OR state <> 'queued'`
    await until(
      'the reconciler to ask about both',
      async () => (await rows<{ runs: number }>(there.db, waiting))[0]?.runs === 2,
    )
    await there.queue.resume()
    expect((await answers).map(({ status, json }) => [status, json])).toEqual([
      [200, expect.objectContaining({ applied: true })],
      [200, expect.objectContaining({ applied: true })],
    ])
  })
}

describe("on PostgreSQL's", () => claims('postgres', async () => null))

describe.runIf(needs('redis-server'))('on Redis', () => {
  claims('redis', freshRedis)

  test('while Redis is down nothing is counted; once it is back, and empty, runs are enqueued at once', async () => {
    const [there, redis] = [await stand(), await ownRedis()]
    const { queue } = await queueOn({ redisUrl: redis.url, databaseUrl: there.url })
    const [fresh, last] = [await overdue(there), await overdue(there, maxAttempts - 1)]
    await redis.kill()
    for (let times = 0; times < maxAttempts; times += 1) {
      const asking = reconcile(reconcilerLedger(there.db), runQueue(queue), there.worker)
      await expect(asking).rejects.toMatchObject({ code: 'unavailable' })
    }
    expect(await there.run(fresh.id)).toMatchObject({ state: 'queued', attempts: 1 })
    expect(await there.run(last.id)).toMatchObject({ state: 'queued', attempts: maxAttempts - 1 })
    await redis.start()
    await until('Redis', () => reconcile(reconcilerLedger(there.db), runQueue(queue), there.worker).then(() => true))
    expect(await queue.getJobState(jobId(fresh.id, 2))).toBe('waiting')
    expect(await queue.getJobState(jobId(last.id, maxAttempts))).toBe('waiting')
  })

  test('a Redis that is full refuses the job, and the attempt does not count', async () => {
    const [there, redis] = [await stand(), await ownRedis({ flags: ['--maxmemory', '1'] })]
    const { queue } = await queueOn({ redisUrl: redis.url, databaseUrl: there.url })
    const run = await overdue(there)
    const asking = reconcile(reconcilerLedger(there.db), runQueue(queue), there.worker)
    await expect(asking).rejects.toMatchObject({ code: 'unavailable' })
    expect(await there.run(run.id)).toMatchObject({ state: 'queued', attempts: 1 })
  })
})
