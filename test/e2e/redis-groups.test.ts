import { beforeAll, describe, expect, test } from 'vitest'
import { openRateStore } from '../../src/http/rate-store.ts'
import { beat } from '../../src/queue/heartbeat.ts'
import { dashboardOf, form, origin } from '../support/dashboard.ts'
import { type Installation, installation } from '../support/installation.ts'
import { answered, applyPath, atEnd, backendOn, freePort, named, needs, ownRedis, until } from '../support/kit.ts'
import { masterName, startCluster, startSentinelGroup } from '../support/redis-groups.ts'

/** Redis behind Sentinels and in a Cluster: everything that uses it. Lost masters are tested by `npm run faults`. */

const groups = { 'behind Sentinels': startSentinelGroup, 'in a Cluster': startCluster }

/** The message with which a start on this URL ends; null when it does not. */
async function whyNot(redisUrl: string): Promise<string | null> {
  const backend = await backendOn({ redisUrl, databaseUrl: '' })
  return backend.check().then(
    () => null,
    (error: Error) => error.message,
  )
}

describe.runIf(needs('redis-server'))('Redis', () => {
  describe.each(Object.entries(groups))('%s', (_, start) => {
    let url: string
    let there: Installation
    beforeAll(async () => {
      const group = await start()
      url = group.url
      const rateStore = openRateStore(url)
      atEnd(() => rateStore?.disconnect())
      await until('the connection to Redis', () => rateStore?.status === 'ready')
      const limits = { rateLimitRequestsPerSecond: 7 }
      there = await installation({ redisUrl: url, rateStore, limits, applyWaitMs: 5_000 })
    })

    test('applies what is sent at the same time', async () => {
      const { token } = await there.make.user({ superuser: true })
      const send = async (slug: string) => there.as(token).put(applyPath, await named('radius', slug))
      const slugs = ['one', 'two', 'three', 'four', 'five']
      const answers = await Promise.all(slugs.map(send))
      expect(answers.map(({ status, json }) => ({ status, json }))).toEqual(
        slugs.map(() => ({ status: 200, json: expect.objectContaining({ applied: true }) })),
      )
    })

    test('is paused and resumed on the dashboard, and readiness, metrics and the board know its jobs', async () => {
      await beat(there.db)
      const operator = await there.make.user({ permissions: ['view_queue', 'manage_queue'] })
      const dashboard = dashboardOf(there)
      const headers = { origin, cookie: await dashboard.session(operator.token), 'content-type': form }
      const act = (name: string) =>
        dashboard
          .send({ method: 'POST', url: `/admin/${name}/`, payload: '', headers })
          .then(({ statusCode }) => statusCode)
      expect(await act('pause')).toBe(303)
      const submitter = await there.make.user({ superuser: true })
      const options = { headers: { prefer: 'respond-async' } }
      await answered(202, there.as(submitter.token).put(applyPath, await named('radius', 'while-paused'), options))
      const health = await there.as('').get('/-/health/applies/')
      expect(health).toMatchObject({ status: 503, json: { checks: { queue: { ok: true }, worker: { ok: false } } } })
      const { body } = await dashboard.send({ method: 'GET', url: '/admin/queues/api/queues', headers })
      expect(JSON.parse(body).queues[0].counts).toMatchObject({ waiting: 1 })
      expect((await there.as('').get('/-/metrics/')).text).toMatch(/^gatewright_jobs\{state="waiting"\} 1$/m)
      expect(await act('resume')).toBe(303)
      await until('the apply', () => there.db.application.findUnique({ where: { slug: 'while-paused' } }))
      const workers = await dashboard.send({ method: 'GET', url: '/admin/queues/api/queues/apply/workers', headers })
      expect(workers.statusCode).toBe(200)
    })

    test('counts the requests of a token', async () => {
      const { token } = await there.make.user({})
      const ask = () => there.as(token).get('/api/v3/core/users/me/')
      const statuses = (await Promise.all(Array.from({ length: 20 }, ask))).map(({ status }) => status)
      expect([...new Set(statuses)].sort()).toEqual([200, 429])
    })

    test('warns of an append-only file that is off', async () => {
      const backend = await backendOn({ redisUrl: url, databaseUrl: '' })
      const isKept = url.startsWith('redis+cluster')
      expect(await backend.check()).toEqual(isKept ? [] : [expect.stringMatching(/appendonly/)])
    })

    test('a URL of another kind is refused, and says what to write', async () => {
      const [, first = ''] = /(127\.0\.0\.1:\d+)/.exec(url) ?? []
      const isCluster = url.startsWith('redis+cluster')
      expect(await whyNot(`redis://${first}`)).toBe(
        isCluster
          ? 'REDIS_URL names one Redis, but it is a node of a Redis Cluster: write redis+cluster://host:port,host:port.'
          : 'REDIS_URL names one Redis, but it is a Sentinel: write redis+sentinel://host:port,host:port/name.',
      )
      const [other, what] = isCluster
        ? [`redis+sentinel://${first}/x`, 'a node of a Redis Cluster']
        : [`redis+cluster://${first}`, 'a Sentinel']
      expect(await whyNot(other)).toContain(
        `but ${first} is ${what}: write redis+${isCluster ? 'cluster' : 'sentinel'}://`,
      )
    })
  })
})

describe.runIf(needs('redis-server'))('a URL of several Redis', () => {
  test('that does not know the master, or of hosts that do not answer, says so', async () => {
    const { url } = await startSentinelGroup()
    expect(await whyNot(url.replace(masterName, 'other'))).toBe(
      `The Sentinels of REDIS_URL do not know a master "other", only "${masterName}".`,
    )
    const port = await freePort()
    expect(await whyNot(`redis+sentinel://127.0.0.1:${port}/x`)).toBe(
      'Redis cannot be reached at REDIS_URL: none of its hosts answers.',
    )
    const single = await ownRedis()
    expect(await whyNot(`redis+cluster://127.0.0.1:${single.port}`)).toBe(
      `REDIS_URL names a Redis Cluster, but 127.0.0.1:${single.port} is one Redis by itself: write redis://host:port.`,
    )
  })
})
