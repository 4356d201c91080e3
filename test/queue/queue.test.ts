import { beforeAll, describe, expect, test } from 'vitest'
import type { Db } from '../../src/db/client.ts'
import type { ApplyQueue, Backend } from '../../src/queue/backend.ts'
import { applyQueue, jobId, probeName } from '../../src/queue/define.ts'
import { runQueue } from '../../src/queue/enqueue.ts'
import { beat, sinceConsumptionS } from '../../src/queue/heartbeat.ts'
import { addProbe, cleanUp } from '../../src/queue/maintenance.ts'
import { atEnd, backendOn, freePort, freshDatabase, needs, proxyTo, queueOn, rows, sql, until } from '../support/kit.ts'
import { freshRedis, ownRedis } from '../support/redis.ts'

const run = { id: '01a1fd79-0573-7eeb-91d6-996288491dcb', title: 'apply oauth2 grafana' }

type Taken = { name: string; id: string | undefined; data: unknown }[]

/** Consumes all jobs, and records them. */
async function consume(backend: Backend): Promise<Taken> {
  const taken: Taken = []
  const work = async ({ name, id, data }: { name: string; id?: string | undefined; data: unknown }) => {
    taken.push({ name, id, data })
    return { run: '', state: 'done', applied: true, reason: null }
  }
  const worker = await backend.openWorker(work, { concurrency: 2 })
  atEnd(() => worker.close())
  return taken
}

function claims(redis: () => Promise<string | null>): void {
  let backend: Backend
  let queue: ApplyQueue
  let db: Db
  let taken: Taken
  beforeAll(async () => {
    const fresh = await freshDatabase()
    db = fresh.db
    ;({ backend, queue } = await queueOn({ redisUrl: await redis(), databaseUrl: fresh.url }))
    taken = await consume(backend)
  })

  test('a job names its run; one with a known id is not added again', async () => {
    await runQueue(queue).enqueue(run, 1)
    await runQueue(queue).enqueue(run, 1)
    await until('the job to be taken', () => taken.length === 1)
    await runQueue(queue).enqueue(run, 1)
    await runQueue(queue).enqueue(run, 2)
    await until('the second job to be taken', () => taken.length === 2)
    expect(taken.map(({ name, id, data }) => [name, id, data])).toEqual([
      [run.title, `run-${run.id}-1`, { run: run.id }],
      [run.title, `run-${run.id}-2`, { run: run.id }],
    ])
  })

  test('a finished job is kept for the dashboard', async () => {
    const job = await until('the job to end', async () => {
      const found = await queue.getJob(jobId(run.id, 2))
      return found?.returnvalue === undefined || found.returnvalue === null ? null : found
    })
    expect(job).toMatchObject({ name: run.title, returnvalue: { applied: true } })
  })

  test('PostgreSQL records no events of jobs, which nothing reads', async () => {
    expect(await rows(db, sql`SELECT event FROM bullmq.event`)).toEqual([])
  })

  test('the newest finished jobs are kept, up to an age', async () => {
    const completed = async () => (await queue.getJobs('completed')).map(({ id }) => id)
    const numbers = [101, 102, 103, 104, 105, 106]
    for (const number of numbers) {
      await runQueue(queue).enqueue(run, number)
      await until('the job to end', async () => (await completed()).includes(jobId(run.id, number)))
    }
    const failed = applyQueue.kept.failed
    await cleanUp(queue)
    expect(await completed()).toEqual(expect.arrayContaining(numbers.map((number) => jobId(run.id, number))))
    await Promise.all([1, 2, 3].map(() => cleanUp(queue, { completed: { age: 1_000, count: 3 }, failed })))
    expect((await completed()).toSorted()).toEqual(numbers.slice(-3).map((number) => jobId(run.id, number)))
    await cleanUp(queue, { completed: { age: 0, count: 1_000 }, failed })
    expect(await completed()).toEqual([])
  })

  test('a process has one probe in the queue, which is added again when it was taken', async () => {
    const probes = () => taken.filter(({ name }) => name === probeName)
    await queue.pause()
    await Promise.all([addProbe(queue), addProbe(queue)])
    await addProbe(queue)
    await queue.resume()
    await until('the probe', () => probes().length === 1)
    await until('the next probe', () => addProbe(queue).then(() => probes().length >= 2), { everyMs: 50 })
    expect(probes()[0]?.data).toEqual({ run: '' })
  })

  test('consumption records its time', async () => {
    expect(await sinceConsumptionS(db)).toBeNull()
    await beat(db)
    await beat(db)
    expect(await sinceConsumptionS(db)).toBeLessThan(5)
    await rows(db, sql`UPDATE queue_heartbeats SET consumed_at = now() - interval '1 minute'`)
    expect(Math.round((await sinceConsumptionS(db)) ?? 0)).toBe(60)
  })
}

/** A queue in a PostgreSQL that accepts no more connections. */
async function closedQueue(): Promise<{ backend: Backend; turnedAway(): number; letIn(): void }> {
  const { url } = await freshDatabase()
  const proxy = await proxyTo(url)
  const backend = await backendOn({ redisUrl: null, databaseUrl: proxy.url })
  proxy.accept(false)
  return { backend, turnedAway: proxy.turnedAway, letIn: () => proxy.accept(true) }
}

describe("on PostgreSQL's", () => {
  claims(async () => null)

  test('a first connection that fails is tried again, and then works', async () => {
    const { backend, turnedAway, letIn } = await closedQueue()
    const opening = Promise.all([backend.openQueue(), consume(backend)])
    await until('a connection to be refused', () => turnedAway() > 0)
    letIn()
    const [queue, taken] = await opening
    atEnd(() => queue.close())
    await runQueue(queue).enqueue(run, 1)
    await until('the job to be taken', () => taken.length > 0)
    expect(taken[0]).toMatchObject({ name: run.title, data: { run: run.id } })
  })

  test('a store that is away for longer is reported', async () => {
    const { backend } = await closedQueue()
    await expect(backend.openQueue()).rejects.toMatchObject({
      code: 'unavailable',
      message: 'The queue cannot be reached.',
    })
  })
})

describe.runIf(needs('redis-server'))('on Redis', () => {
  claims(freshRedis)

  test('one that evicts keys is refused at start, by its setting', async () => {
    const redis = await ownRedis({ flags: ['--maxmemory-policy', 'allkeys-lru'] })
    await expect(queueOn({ redisUrl: redis.url, databaseUrl: '' })).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('maxmemory-policy allkeys-lru'),
    })
  })

  test('and so it is where CONFIG is forbidden', async () => {
    const guest = ['--user', 'guest', 'on', '>secret', '~*', '&*', '+@all', '-config']
    const redis = await ownRedis({ flags: ['--maxmemory-policy', 'volatile-ttl', ...guest] })
    const backend = await backendOn({ redisUrl: redis.url.replace('//', '//guest:secret@'), databaseUrl: '' })
    await expect(backend.check()).rejects.toMatchObject({ message: expect.stringContaining('volatile-ttl') })
  })

  test('one without an append-only file is used, with a warning', async () => {
    const redis = await ownRedis()
    const backend = await backendOn({ redisUrl: redis.url, databaseUrl: '' })
    expect(await backend.check()).toEqual([
      'Redis keeps no append-only file (appendonly no): should it crash, the jobs in it are lost, and their runs wait until a worker enqueues them again. Set appendonly to yes.',
    ])
  })

  test('one with an append-only file and without eviction is used without a warning', async () => {
    const redis = await ownRedis({ durable: true })
    const backend = await backendOn({ redisUrl: redis.url, databaseUrl: '' })
    expect(await backend.check()).toEqual([])
  })

  test('one that does not show its settings is used, with a warning', async () => {
    const redis = await ownRedis({
      durable: true,
      flags: ['--user', 'guest', 'on', '>secret', '~*', '&*', '+@all', '-info'],
    })
    const url = redis.url.replace('//', '//guest:secret@')
    const backend = await backendOn({ redisUrl: url, databaseUrl: '' })
    expect(await backend.check()).toEqual([
      'How Redis is set up could not be checked. It must have maxmemory-policy noeviction and should have appendonly yes: see to it where it is run.',
    ])
  })

  test('one that is full refuses the job, and the run is not lost', async () => {
    const redis = await ownRedis({ flags: ['--maxmemory', '1'] })
    const { queue } = await queueOn({ redisUrl: redis.url, databaseUrl: '' })
    await expect(runQueue(queue).enqueue(run, 1)).rejects.toMatchObject({
      code: 'unavailable',
      message: 'The queue answers, but accepts no jobs: Redis is full (maxmemory). Try again shortly.',
      retryAfterS: 1,
    })
  })

  test('one that is not there is refused at start', async () => {
    const redisUrl = `redis://127.0.0.1:${await freePort()}`
    await expect(queueOn({ redisUrl, databaseUrl: '' })).rejects.toMatchObject({
      code: 'unavailable',
      message: 'Redis cannot be reached at REDIS_URL.',
    })
  })
})
