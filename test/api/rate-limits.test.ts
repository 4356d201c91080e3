import { describe, expect, test } from 'vitest'
import { readConfig } from '../../src/config.ts'
import type { RateLimits } from '../../src/http/rate-limit.ts'
import { openRateStore } from '../../src/http/rate-store.ts'
import type { RedisClient } from '../../src/queue/redis.ts'
import { held } from '../runs/stand.ts'
import { type Answer, applyPath, askAs } from '../support/asker.ts'
import { atEnd } from '../support/at-end.ts'
import { type Installation, installation, named } from '../support/installation.ts'
import { needs } from '../support/needs.ts'
import { freshRedis, ownRedis } from '../support/redis.ts'
import { rows, sql } from '../support/sql.ts'
import { until } from '../support/until.ts'

const me = '/api/v3/core/users/me/'
const refused = { status: 429, json: { detail: expect.any(String), code: 'too_many_requests' } }
const times = <Result>(count: number, work: (index: number) => Result): Result[] =>
  Array.from({ length: count }, (_, index) => work(index))
const statuses = (answers: readonly Answer[]) => answers.map(({ status }) => status)

async function storeAt(redisUrl: string): Promise<RedisClient | null> {
  const store = openRateStore(redisUrl)
  atEnd(() => store?.disconnect())
  await until(async () => store?.status === 'ready', { what: 'the connection to Redis' })
  return store
}

describe('rates, counted in each process', () => ratesWith(async () => null))
describe.runIf(needs('redis-server'))('rates, counted in Redis', () =>
  ratesWith(async () => storeAt(await freshRedis())),
)

function ratesWith(store: () => Promise<RedisClient | null>): void {
  const open = async (limits: Partial<RateLimits>) =>
    installation({ workers: 'none', limits, rateStore: await store() })

  test('the thirty-first failed authentication of a minute is 429, and a valid token is still taken', async () => {
    const { rateLimitFailuresPerMinute } = readConfig({})
    const there = await open({ rateLimitFailuresPerMinute })
    const stranger = there.as('gw_a_wrong')
    const first = await stranger.get(me)
    expect(first).toMatchObject({ status: 401, headers: { 'ratelimit-policy': '"failures";q=30;w=60' } })
    expect(first.headers.ratelimit).toMatch(/^"failures";r=29;t=\d+$/)
    const none = askAs(there.app, null)
    expect(statuses(await Promise.all(times(29, () => none.get(me))))).toEqual(times(29, () => 401))
    const over = await stranger.get(me)
    expect(over).toMatchObject(refused)
    expect(Number(over.headers['retry-after'])).toBeGreaterThan(0)
    expect(over.headers.ratelimit).toMatch(/^"failures";r=0;t=\d+$/)
    expect(await there.admin.get(me)).toMatchObject({ status: 200 })
    const elsewhere = { method: 'GET', url: me, remoteAddress: '192.0.2.7' } as const
    expect(await stranger.send(elsewhere)).toMatchObject({ status: 401 })
  })

  test('an expired token is named until its address has failed too often', async () => {
    const there = await open({ rateLimitFailuresPerMinute: 2 })
    const { pk } = await there.make.user()
    const expired = there.as(await there.make.token(pk, { identifier: 'expired', expires: new Date(1_000) }))
    const [first, second] = [await expired.get(me), await expired.get(me)]
    expect(first).toMatchObject({
      status: 401,
      json: { detail: expect.stringMatching(/^The token "expired" expired/) },
    })
    expect(second).toMatchObject({ status: 401, json: { detail: expect.stringMatching(/^Send a valid access token/) } })
    expect(await expired.get(me)).toMatchObject(refused)
  })

  test('failed logins of the dashboard count too, and a valid token still logs in', async () => {
    const there = await open({ rateLimitFailuresPerMinute: 3 })
    const logIn = (token: string) =>
      there.app.inject({
        method: 'POST',
        url: '/admin/login/',
        headers: { host: 'here', origin: 'http://here', 'content-type': 'application/x-www-form-urlencoded' },
        payload: new URLSearchParams({ access_token: token }).toString(),
      })
    const answers = [await logIn('a'), await logIn('b'), await logIn('c'), await logIn('d')]
    expect(answers.map(({ statusCode }) => statusCode)).toEqual([401, 401, 401, 429])
    expect(answers.at(-1)?.headers['retry-after']).toMatch(/^\d+$/)
    expect(answers.at(-1)?.body).toContain('Too many failed logins')
    expect(await there.as('wrong').get(me)).toMatchObject(refused)
    const { token } = await there.make.user({ permissions: ['view_queue'] })
    expect((await logIn(token)).statusCode).toBe(303)
  })

  test('requests of one token within a second are limited, those of another are not', async () => {
    const there = await open({ rateLimitRequestsPerSecond: 5 })
    const [one, other] = [await there.make.user(), await there.make.user()]
    let answers: readonly Answer[] = []
    const isLimited = async () => {
      answers = await Promise.all(times(20, () => one.get(me)))
      return answers.some(({ status }) => status === 429) && answers.some(({ status }) => status === 200)
    }
    expect(await until(isLimited, { what: 'twenty requests within a second' })).toBe(true)
    // Two windows at most.
    expect(answers.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(10)
    const passed = answers.find(({ status }) => status === 200)
    expect(passed?.headers).toMatchObject({ 'ratelimit-policy': '"token";q=5;w=1' })
    expect(passed?.headers.ratelimit).toMatch(/^"token";r=[0-4];t=1$/)
    const over = answers.find(({ status }) => status === 429)
    expect(over).toMatchObject({ ...refused, headers: { ratelimit: '"token";r=0;t=1', 'retry-after': '1' } })
    expect(await other.get(me)).toMatchObject({ status: 200 })
    const again = async () => (await one.get(me)).status === 200
    expect(await until(again, { what: 'the next window' })).toBe(true)
  })
}

describe.runIf(needs('redis-server'))('rates in Redis', () => {
  test('are counted for all processes together', async () => {
    const redis = await ownRedis()
    const [one, other] = [await counting(redis.url), await counting(redis.url)]
    expect(statuses([await one.get(me), await other.get(me), await one.get(me)])).toEqual([401, 401, 429])
  })

  test('are not counted while Redis is away, stuck or back: nothing is refused', async () => {
    const redis = await ownRedis()
    const stranger = await counting(redis.url)
    expect(await stranger.get(me)).toMatchObject({ status: 401 })
    const stop = async () => void process.kill(redis.pid, 'SIGSTOP')
    const goOn = async () => void process.kill(redis.pid, 'SIGCONT')
    for (const [hinder, recover] of [
      [stop, goOn],
      [redis.kill, redis.start],
    ] as const) {
      await hinder()
      const answers = [await stranger.get(me), await stranger.get(me), await stranger.get(me)]
      expect(statuses(answers)).toEqual([401, 401, 401])
      expect(answers.at(-1)?.headers).not.toHaveProperty('ratelimit')
      await recover()
    }
    const limited = async () => (await stranger.get(me)).status === 429
    expect(await until(limited, { what: 'failures to be counted again' })).toBe(true)
  })

  async function counting(redisUrl: string) {
    const rateStore = await storeAt(redisUrl)
    const there = await installation({ workers: 'none', limits: { rateLimitFailuresPerMinute: 2 }, rateStore })
    return there.as('wrong')
  }
})

describe('what is under way for one token', () => {
  const path = '/api/v3/authenticators/admin/totp/'

  /** Keeps lists of devices waiting. @returns lets them go on */
  const lockDevices = async ({ db }: Installation) => held({ db }, (tx) => tx.$executeRaw`LOCK TABLE totp_devices`)

  const listsWait = ({ db }: Installation, count: number) =>
    until(
      async () =>
        (await rows(db, sql`SELECT FROM pg_locks WHERE NOT granted AND mode = 'AccessShareLock'`)).length === count,
      { what: `${count} lists to wait` },
    )

  test('at most four lists; the next is 429, and that of another token is not', async () => {
    const there = await installation({ workers: 'none', limits: { rateLimitLists: readConfig({}).rateLimitLists } })
    const one = await there.make.user({ permissions: ['view_totpdevice'] })
    const other = await there.make.user({ permissions: ['view_group'] })
    const release = await lockDevices(there)
    const lists = times(4, () => one.get(path))
    await listsWait(there, 4)
    expect(await one.get(path)).toMatchObject({ ...refused, headers: { 'retry-after': '1' } })
    expect(await one.get(me)).toMatchObject({ status: 200 })
    expect(await other.get('/api/v3/core/groups/')).toMatchObject({ status: 200 })
    await release()
    expect(statuses(await Promise.all(lists))).toEqual([200, 200, 200, 200])
    expect(await one.get(path)).toMatchObject({ status: 200 })
  })

  test('a list whose client went away counts until its work has ended', async () => {
    const there = await installation({ workers: 'none', limits: { rateLimitLists: 1 } })
    const { token, get } = await there.make.user({ permissions: ['view_totpdevice'] })
    const url = await there.app.listen({ port: 0, host: '127.0.0.1' })
    const release = await lockDevices(there)
    const leave = new AbortController()
    const gone = fetch(`${url}${path}`, { headers: { authorization: `Bearer ${token}` }, signal: leave.signal })
    await listsWait(there, 1)
    leave.abort()
    await expect(gone).rejects.toThrow()
    expect(await get(path)).toMatchObject(refused)
    await release()
    const free = async () => (await get(path)).status === 200
    expect(await until(free, { what: 'the work to end' })).toBe(true)
  })

  test('at most 64 waiting runs; the next is 429 and not recorded, one of another token waits', async () => {
    const { rateLimitWaitingRuns } = readConfig({})
    // Long enough for 65 runs on a busy machine.
    const there = await installation({ limits: { rateLimitWaitingRuns }, applyWaitMs: 60_000 })
    const go = there.hold()
    const bodies = await Promise.all(times(65, (index) => named('radius', `waiting-${index}`)))
    const waiting = bodies.slice(0, 64).map((body) => there.admin.put(applyPath, body))
    await there.queued(64)
    expect(await there.admin.put(applyPath, bodies[64])).toMatchObject(refused)
    expect(await there.db.run.count()).toBe(64)
    const other = await there.make.user({ superuser: true })
    const another = other.put(applyPath, bodies[64])
    await there.queued(65)
    go()
    expect(statuses(await Promise.all([...waiting, another]))).toEqual(times(65, () => 200))
    expect(await there.admin.put(applyPath, bodies[0])).toMatchObject({ status: 200 })
  })
})
