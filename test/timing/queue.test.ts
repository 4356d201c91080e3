import { describe, expect, test } from 'vitest'
import type { ApplyQueue } from '../../src/queue/backend.ts'
import { runQueue } from '../../src/queue/enqueue.ts'
import { freshDatabase, needs, ownRedis, proxyTo, queueOn, until } from '../support/kit.ts'

const run = { id: '01a1fd79-0573-7eeb-91d6-996288491dcb', title: 'apply oauth2 grafana' }

test("on PostgreSQL's queue, a store that hangs, and one that is away, are reported within a second; then it serves again", {
  timeout: 60_000,
}, async () => {
  const { url } = await freshDatabase()
  const proxy = await proxyTo(url)
  const { queue } = await queueOn({ redisUrl: null, databaseUrl: proxy.url })
  await runQueue(queue).enqueue(run, 1)
  proxy.freeze(true)
  await refusedSoon(queue, 2)
  await awaySoon(runQueue(queue).isQueued(run, 1))
  proxy.freeze(false)
  proxy.accept(false)
  proxy.cut()
  await refusedSoon(queue, 3)
  await awaySoon(runQueue(queue).isQueued(run, 1))
  proxy.accept(true)
  await until('a job to be added again', async () => [await runQueue(queue).enqueue(run, 4)])
  expect(await runQueue(queue).isQueued(run, 4)).toBe(true)
})

describe.runIf(needs('redis-server'))('on Redis', () => {
  test('a Redis that hangs, and one that is killed, are reported within a second; then it serves again', {
    timeout: 60_000,
  }, async () => {
    const redis = await ownRedis()
    const { url } = await freshDatabase()
    const { queue } = await queueOn({ redisUrl: redis.url, databaseUrl: url })
    await runQueue(queue).enqueue(run, 1)
    process.kill(redis.pid, 'SIGSTOP')
    await refusedSoon(queue, 2)
    await awaySoon(runQueue(queue).isQueued(run, 1))
    process.kill(redis.pid, 'SIGCONT')
    await redis.kill()
    await refusedSoon(queue, 3)
    await awaySoon(runQueue(queue).isQueued(run, 1))
    await redis.start()
    await until('a job to be added again', async () => [await runQueue(queue).enqueue(run, 4)])
    expect(await runQueue(queue).isQueued(run, 4)).toBe(true)
  })
})

async function refusedSoon(queue: ApplyQueue, number: number): Promise<void> {
  await awaySoon(runQueue(queue).enqueue(run, number))
}

async function awaySoon(call: Promise<unknown>): Promise<void> {
  const from = performance.now()
  await expect(call).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringMatching(/^The queue does not answer: .*, right\? Try again shortly\.$/),
    retryAfterS: 1,
  })
  expect(performance.now() - from).toBeLessThan(1_200)
}
