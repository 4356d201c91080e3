import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { maxRings } from '../../../src/blueprint/run/life.ts'
import { reconcile } from '../../../src/blueprint/run/reconcile.ts'
import { sql } from '../../../src/db/sql.ts'
import type { ApplyQueue, ApplyWorker, Backend } from '../../../src/queue/backend.ts'
import { applyQueue, jobId } from '../../../src/queue/define.ts'
import { doorbell } from '../../../src/queue/doorbell.ts'
import { applyPath } from '../../support/asker.ts'
import { installation, named, type QueueKind } from '../../support/installation.ts'
import { needs } from '../../support/needs.ts'
import { queueOn } from '../../support/queue.ts'
import { freshRedis, ownRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'
import { type Stand, stand } from './stand.ts'

/** The reconciler beside a real queue: what a queue says of a job is what decides whether its run is lost. */

type Run = { id: string; title: string }

/** A run that was rung so often, the last time a minute ago. */
async function overdue({ db, recorded, run }: Stand, rings = 1): Promise<Run> {
  const { id } = await recorded()
  await db.query(sql`UPDATE runs SET rings = ${rings}, rung_at = now() - interval '1 minute' WHERE id = ${id}`)
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
    await there.db.prisma.run.deleteMany()
  })
  afterEach(async () => {
    release.work()
    await worker?.close()
    worker = undefined
    await queue.resume()
    await queue.obliterate({ force: true })
  })

  /** Has a worker take the job, and waits until the job is there. */
  async function taken(state: 'active' | 'completed' | 'failed', run: Run): Promise<void> {
    const { promise: released, resolve } = Promise.withResolvers<void>()
    release.work = resolve
    const work = async () => {
      if (state === 'active') await released
      if (state === 'failed') throw new Error('a surprise')
      return 'gone'
    }
    worker = await backend.openWorker(applyQueue, work, { concurrency: 1 })
    await until(async () => (await queue.getJobState(jobId(run.id, 1))) === state, { what: `the job to be ${state}` })
  }

  const add = (run: Run, options: { delay?: number; priority?: number }) =>
    queue.add(run.title, { run: run.id }, { jobId: jobId(run.id, 1), ...options })

  test.each<[string, (run: Run) => Promise<unknown>]>([
    ['waits', (run) => add(run, {})],
    ['is prioritized', (run) => add(run, { priority: 1 })],
    ['is delayed', (run) => add(run, { delay: 60_000 })],
    ['waits in a paused queue', (run) => add(run, {}).then(() => queue.pause())],
    ['came into a paused queue', (run) => queue.pause().then(() => add(run, {}))],
  ])('a run whose job %s is not rung again', async (_, arrange) => {
    const run = await overdue(there)
    await arrange(run)
    await reconcile(there.db, doorbell(queue), there.worker.log)
    const { state, rings, rungAt } = await there.run(run.id)
    expect({ state, rings }).toEqual({ state: 'queued', rings: 1 })
    expect(Date.now() - rungAt.getTime()).toBeLessThan(10_000)
    expect(await queue.getJobState(jobId(run.id, 2))).toBe('unknown')
  })

  test.each<[string, (run: Run) => Promise<unknown>]>([
    ['was never added', async () => {}],
    ['the queue has forgotten', (run) => add(run, {}).then(() => queue.obliterate({ force: true }))],
    ['a worker has, and not its row', (run) => add(run, {}).then(() => taken('active', run))],
    ['is completed', (run) => add(run, {}).then(() => taken('completed', run))],
    ['failed', (run) => add(run, {}).then(() => taken('failed', run))],
  ])('a queued run whose job %s is rung again', async (_, arrange) => {
    const run = await overdue(there)
    await arrange(run)
    await reconcile(there.db, doorbell(queue), there.worker.log)
    expect(await there.run(run.id)).toMatchObject({ state: 'queued', rings: 2 })
    expect(await queue.getJob(jobId(run.id, 2))).toMatchObject({ name: run.title, data: { run: run.id } })
  })

  test('a line of a hundred is asked about at once', async () => {
    const runs: Run[] = []
    while (runs.length < 100) runs.push(await overdue(there, maxRings))
    await Promise.all(runs.map((run) => queue.add(run.title, { run: run.id }, { jobId: jobId(run.id, maxRings) })))
    await reconcile(there.db, doorbell(queue), there.worker.log)
    const fresh = await there.db.prisma.run.count({
      where: { state: 'queued', rings: maxRings, rungAt: { gt: new Date(Date.now() - 10_000) } },
    })
    expect(fresh).toBe(100)
  })

  test('what waited in a paused queue beyond all patience is applied when it goes on', async () => {
    const there = await installation({ queue: kind, applyWaitMs: 20_000 })
    await there.queue.pause()
    const answers = Promise.all(
      ['early', 'late'].map(async (name) => there.admin.put(applyPath, await named('radius', name))),
    )
    await there.queued(2)
    const runs = await there.db.prisma.run.findMany()
    await Promise.all(runs.map((run) => there.ring(run, maxRings)))
    await there.db.query(sql`UPDATE runs SET rings = ${maxRings}, rung_at = now() - interval '1 minute'`)
    const looked = sql`SELECT count(*) AS runs FROM runs WHERE rung_at > now() - interval '10 seconds' OR state <> 'queued'`
    await until(async () => (await there.db.query<{ runs: number }>(looked))[0]?.runs === 2, {
      what: 'the reconciler to look at both',
    })
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

  test('while Redis is down nothing is counted; back and empty, it is rung at once', { timeout: 20_000 }, async () => {
    const [there, redis] = [await stand(), await ownRedis()]
    const { queue } = await queueOn({ redisUrl: redis.url, databaseUrl: there.url })
    const [fresh, last] = [await overdue(there), await overdue(there, maxRings - 1)]
    await redis.kill()
    for (let times = 0; times < maxRings; times += 1) {
      const looking = reconcile(there.db, doorbell(queue), there.worker.log)
      await expect(looking).rejects.toMatchObject({ code: 'unavailable' })
    }
    expect(await there.run(fresh.id)).toMatchObject({ state: 'queued', rings: 1 })
    expect(await there.run(last.id)).toMatchObject({ state: 'queued', rings: maxRings - 1 })
    await redis.start()
    await until(() => reconcile(there.db, doorbell(queue), there.worker.log).then(() => true), { what: 'Redis' })
    expect(await queue.getJobState(jobId(fresh.id, 2))).toBe('waiting')
    expect(await queue.getJobState(jobId(last.id, maxRings))).toBe('waiting')
  })

  test('a Redis that is full refuses the bell, and that does not count', async () => {
    const [there, redis] = [await stand(), await ownRedis({ flags: ['--maxmemory', '1'] })]
    const { queue } = await queueOn({ redisUrl: redis.url, databaseUrl: there.url })
    const run = await overdue(there)
    const looking = reconcile(there.db, doorbell(queue), there.worker.log)
    await expect(looking).rejects.toMatchObject({ code: 'unavailable' })
    expect(await there.run(run.id)).toMatchObject({ state: 'queued', rings: 1 })
  })
})
