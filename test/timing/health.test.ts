import { describe, expect, test } from 'vitest'
import { keyring } from '../../src/db/seal.ts'
import { sealedCheck } from '../../src/db/sealed-check.ts'
import { beat } from '../../src/queue/heartbeat.ts'
import { type Answer, type Stack, startStack } from '../api/stack.ts'
import { freshDatabase, freshRedis, installation, needs, ownRedis, proxyTo, rows, sql, until } from '../support/kit.ts'

const applies = (stack: Stack) => stack.get('/-/health/applies/')
const ready = (stack: Stack) => stack.get('/-/health/ready/')
const live = (stack: Stack) => stack.get('/-/health/live/')

/** `checks` by part: whether it is healthy. */
function healthOf({ json }: Answer): Record<string, boolean> {
  const { checks } = json as { checks: Record<string, { ok: boolean; detail: string }> }
  return Object.fromEntries(Object.entries(checks).map(([part, { ok }]) => [part, ok]))
}

const serving = { database: true, migrations: true, secrets: true, versions: true }
const allHealthy = { ...serving, changes: true, queue: true, pause: true, worker: true }

const untilStatus = (stack: Stack, status: number, withinMs: number) =>
  until(`the probe to answer ${status}`, async () => ((await applies(stack)).status === status ? true : null), {
    withinMs,
    everyMs: 100,
  })

function expectUnhealthy(answer: Answer, healthyParts: Record<string, boolean>): void {
  expect(answer.status).toBe(503)
  expect(answer.ms).toBeLessThan(1_000)
  expect(answer.headers.get('Retry-After')).toMatch(/^\d+$/)
  expect(answer.json).toMatchObject({
    status: 'not_applying',
    code: 'unavailable',
    detail: expect.stringMatching(/^Nothing is applied\. ./),
  })
  expect(healthOf(answer)).toEqual(healthyParts)
}

/** What holds for both stores of the queue. */
function claims(queue: () => Promise<string | null>): void {
  test('a database that hangs or is gone makes it 503 within a second, and back again', {
    timeout: 120_000,
  }, async () => {
    const { url } = await freshDatabase()
    const proxy = await proxyTo(url)
    const redisUrl = await queue()
    const stack = await startStack({ databaseUrl: proxy.url, redisUrl })
    const without = {
      ...{ database: false, migrations: false, secrets: false, versions: false },
      ...{ changes: false, queue: redisUrl !== null, pause: true, worker: false },
    }

    proxy.freeze(true)
    // More probes than the pool has connections: a frozen server must not exhaust the pool.
    for (let probe = 0; probe < 6; probe += 1) {
      const answers = await Promise.all(Array.from({ length: 10 }, () => applies(stack)))
      for (const answer of answers) expectUnhealthy(answer, without)
    }
    const frozen = await ready(stack)
    expect(frozen).toMatchObject({ status: 503, json: { status: 'not_ready', code: 'unavailable' } })
    expect(frozen.ms).toBeLessThan(1_000)
    expect((await live(stack)).status).toBe(200)
    proxy.freeze(false)
    await until('the database to be healthy', async () => healthOf(await applies(stack)).database === true, {
      withinMs: 5_000,
    })

    proxy.accept(false)
    proxy.cut()
    expectUnhealthy(await applies(stack), without)
    proxy.accept(true)
    await until('the queue to be healthy', async () => healthOf(await applies(stack)).queue === true, {
      withinMs: 5_000,
    })
    expect(healthOf(await applies(stack))).toEqual({ ...allHealthy, worker: false })
  })
}

/** A worker counts as missing after 11 s, which these tests wait for. */
describe.concurrent('a worker that is missing', () => {
  function consumes(queue: () => Promise<string | null>): void {
    test('what is submitted is applied where a worker consumes, not where it runs; the API is ready without', {
      timeout: 120_000,
    }, async ({ expect }) => {
      const { url } = await freshDatabase()
      const stack = await startStack({ databaseUrl: url, redisUrl: await queue() })
      const none = await applies(stack)
      expectUnhealthy(none, { ...allHealthy, worker: false })
      const served = await ready(stack)
      expect([served.status, healthOf(served)]).toEqual([200, serving])
      expect(none.json).toMatchObject({ checks: { worker: { detail: 'No worker has ever taken a job: start one.' } } })

      const worker = await stack.startWorker()
      await untilStatus(stack, 200, 8_000)
      const healthy = await applies(stack)
      expect(healthy.json).toMatchObject({ status: 'applying' })
      expect(healthOf(healthy)).toEqual(allHealthy)
      expect(await stack.get('/-/health/ready/', { method: 'HEAD' })).toMatchObject({ status: 200, text: '' })

      worker.signal('SIGSTOP')
      await untilStatus(stack, 503, 15_000)
      const stopped = await applies(stack)
      expect((await ready(stack)).status).toBe(200)
      expectUnhealthy(stopped, { ...allHealthy, worker: false })
      expect(stopped.json).toMatchObject({ detail: expect.stringMatching(/No worker has taken a job for 1\d s/) })
      expect(await live(stack)).toMatchObject({ status: 200, json: { status: 'ok' } })

      worker.signal('SIGCONT')
      await untilStatus(stack, 200, 10_000)
      expect(await worker.stop()).toEqual({ code: 0, signal: null })
    })
  }
  describe("the queue on PostgreSQL's", () => consumes(async () => null))
  describe.runIf(needs('redis-server'))('the queue on Redis', () => consumes(freshRedis))

  test('a worker that takes no jobs is logged once, and not while it may be starting', {
    timeout: 120_000,
  }, async ({ expect }) => {
    const { admin, db, log } = await installation({ workers: 'none' })
    const logged = () => log.map((line) => JSON.parse(line)).filter(({ part }) => part === 'worker')
    const status = async () => (await admin.get('/-/health/applies/')).status
    expect(await status()).toBe(503)
    await beat(db)
    expect(await status()).toBe(200)
    expect(logged()).toEqual([])

    await rows(db, sql`UPDATE worker_formats SET consumed_at = now() - interval '1 minute'`)
    await until('it to be logged', async () => (await status()) === 503 && logged().length > 0, { withinMs: 15_000 })
    expect(await status()).toBe(503)
    await beat(db)
    expect(await status()).toBe(200)
    expect(logged()).toEqual([
      expect.objectContaining({ level: 40, msg: expect.stringContaining('No worker has taken a job for') }),
      expect.objectContaining({ level: 30, msg: 'A worker takes jobs.' }),
    ])
  })
})

describe("the queue on PostgreSQL's", () => claims(async () => null))

describe.runIf(needs('redis-server'))('the queue on Redis', () => {
  claims(freshRedis)

  test('a Redis that hangs or is gone makes it 503 within a second, and back again', { timeout: 120_000 }, async () => {
    const { url } = await freshDatabase()
    const redis = await ownRedis()
    const stack = await startStack({ databaseUrl: url, redisUrl: redis.url })
    const worker = await stack.startWorker()
    await untilStatus(stack, 200, 8_000)

    process.kill(redis.pid, 'SIGSTOP')
    const frozen = await Promise.all([applies(stack), applies(stack), applies(stack)])
    for (const answer of frozen) expectUnhealthy(answer, { ...allHealthy, queue: false })
    expect((await ready(stack)).status).toBe(200)
    process.kill(redis.pid, 'SIGCONT')
    await untilStatus(stack, 200, 8_000)

    await redis.kill()
    expectUnhealthy(await applies(stack), { ...allHealthy, queue: false })
    await redis.start()
    await untilStatus(stack, 200, 15_000)
    await worker.stop()
  })
})

test('a database without all migrations is not ready', async () => {
  const { url, db } = await freshDatabase()
  const stack = await startStack({ databaseUrl: url, redisUrl: null })
  await db.$executeRaw`UPDATE _prisma_migrations SET finished_at = NULL`
  expect((await ready(stack)).status).toBe(503)
  const answer = await applies(stack)
  expectUnhealthy(answer, { ...allHealthy, migrations: false, worker: false })
  expect(answer.json).toMatchObject({
    checks: { migrations: { detail: expect.stringContaining('start the API again') } },
  })
})

test('a database whose secrets are sealed under another key is not ready', async () => {
  const { url, db } = await freshDatabase()
  const stack = await startStack({ databaseUrl: url, redisUrl: null })
  const { id } = await db.installation.findFirstOrThrow({ select: { id: true } })
  const foreign = sealedCheck(keyring('another secret key for tests, 32 or more'), id)
  await db.installation.updateMany({ data: { sealedCheck: foreign } })
  expect((await ready(stack)).status).toBe(503)
  const answer = await applies(stack)
  expectUnhealthy(answer, { ...allHealthy, worker: false, secrets: false })
  expect(answer.json).toMatchObject({
    checks: { secrets: { detail: expect.stringContaining('SECRET_KEY is not the key of this database') } },
  })
})
