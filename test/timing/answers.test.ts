import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { connect, transaction } from '../../src/db/client.ts'
import { openRateStore } from '../../src/http/rate-store.ts'
import { startStack } from '../api/stack.ts'
import { atEnd, freshDatabase, installation, needs, ownRedis, proxyTo, statementsOf, until } from '../support/kit.ts'
import { rows, sql } from '../support/sql.ts'

/** Answers that come in time while a part is away, and reads that are limited by time. */

const example = JSON.parse(await readFile(new URL('../../examples/radius.json', import.meta.url), 'utf8'))

async function msOf(work: () => Promise<unknown>): Promise<number> {
  const from = performance.now()
  await work()
  return performance.now() - from
}

test('metrics are answered within a second while the database hangs', async () => {
  const { url } = await freshDatabase()
  const proxy = await proxyTo(url)
  const stack = await startStack({ databaseUrl: proxy.url, redisUrl: null })
  proxy.freeze(true)
  expect(await stack.get('/-/metrics/')).toMatchObject({ status: 200, ms: expect.toSatisfy((ms) => ms < 1_000) })
  proxy.freeze(false)
})

test('gauges are read once a second at most', async () => {
  const { url } = await freshDatabase()
  const stack = await startStack({ databaseUrl: url, redisUrl: null })
  await stack.get('/-/metrics/')
  const counted = await statementsOf(async () => {
    for (let i = 0; i < 20; i += 1) await stack.get('/-/metrics/')
  })
  expect(counted.filter((text) => /queue_heartbeats/.test(text)).length).toBeLessThanOrEqual(2)
})

test('without a worker for ten seconds, a submission is refused within a second', async () => {
  const { url, db } = await freshDatabase()
  const stack = await startStack({ databaseUrl: url, redisUrl: null })
  await rows(db, sql`INSERT INTO queue_heartbeats (queue, consumed_at) VALUES ('apply', now() - interval '12 s')`)
  const refused = await stack.put(example)
  expect(refused).toMatchObject({ status: 503, ms: expect.toSatisfy((ms) => ms < 1_000) })
})

test('a pool of which all connections are taken refuses within a second', async () => {
  const { url } = await freshDatabase()
  const single = connect(url, { applicationName: 'gatewright-test', max: 1 })
  await transaction(single.db, async () => {
    const refused = () => expect(transaction(single.db, async () => {})).rejects.toMatchObject({ code: 'unavailable' })
    expect(await msOf(refused)).toBeLessThan(1_200)
  })
  await single.db.$disconnect()
})

test('a database that is away is reported within a second', async () => {
  const { url } = await freshDatabase()
  const proxy = await proxyTo(url)
  const { db } = connect(proxy.url, { applicationName: 'gatewright-test', max: 1 })
  proxy.accept(false)
  const refused = () => expect(transaction(db, async () => {})).rejects.toMatchObject({ code: 'unavailable' })
  expect(await msOf(refused)).toBeLessThan(1_000)
  await db.$disconnect()
})

test.runIf(needs('redis-server'))('rates in Redis: are waited for little while it is stuck or away', async () => {
  const redis = await ownRedis()
  const rateStore = openRateStore(redis.url)
  atEnd(() => rateStore?.disconnect())
  await until('the connection to Redis', () => rateStore?.status === 'ready')
  const there = await installation({ workers: 'none', rateStore })
  const ask = async () => {
    for (let count = 0; count < 3; count += 1) {
      const { status } = await there.admin.get('/api/v3/core/users/me/')
      expect(status).toBe(200)
    }
  }
  process.kill(redis.pid, 'SIGSTOP')
  expect(await msOf(ask)).toBeLessThan(2_000)
  process.kill(redis.pid, 'SIGCONT')
  await redis.kill()
  expect(await msOf(ask)).toBeLessThan(2_000)
})
