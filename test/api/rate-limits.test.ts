import { describe, expect, test } from 'vitest'
import { readConfig } from '../../src/config.ts'
import type { RateLimits } from '../../src/http/rate-limit.ts'
import { openRateStore } from '../../src/http/rate-store.ts'
import type { RedisClient } from '../../src/queue/redis.ts'
import { held } from '../runs/stand.ts'
import { type Answer, type Asker, applyPath } from '../support/asker.ts'
import { atEnd, type Installation, installation, named, needs, rows, sql, until } from '../support/kit.ts'
import { freshRedis, ownRedis } from '../support/redis.ts'

const me = '/api/v3/core/users/me/'
const refused = { status: 429, json: { detail: expect.any(String), code: 'too_many_requests' } }
const times = <Result>(count: number, work: (index: number) => Result): Result[] =>
  Array.from({ length: count }, (_, index) => work(index))
const statuses = (answers: readonly Answer[]) => answers.map(({ status }) => status)

async function storeAt(redisUrl: string): Promise<RedisClient | null> {
  const store = openRateStore(redisUrl)
  atEnd(() => store?.disconnect())
  await until('the connection to Redis', async () => store?.status === 'ready')
  return store
}

describe('rates, counted in each process', () => ratesWith(async () => null))
describe.runIf(needs('redis-server'))('rates, counted in Redis', () =>
  ratesWith(async () => storeAt(await freshRedis())),
)

function ratesWith(store: () => Promise<RedisClient | null>): void {
  const open = async (limits: Partial<RateLimits>) =>
    installation({ workers: 'none', limits, rateStore: await store() })

  test('requests of one user within a second are limited, by whatever token, those of another are not', async () => {
    const there = await open({ rateLimitRequestsPerSecond: 5 })
    const [one, other] = [await there.make.user(), await there.make.user()]
    const hands = [one, ...(await Promise.all(times(3, async () => there.as(await there.make.token(one.pk)))))]
    let answers: readonly Answer[] = []
    const isLimited = async () => {
      answers = await Promise.all(times(5, () => hands.map((each) => each.get(me))).flat())
      return answers.some(({ status }) => status === 429) && answers.some(({ status }) => status === 200)
    }
    expect(await until('twenty requests within a second', isLimited)).toBe(true)
    // Two windows at most.
    expect(answers.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(10)
    const passed = answers.find(({ status }) => status === 200)
    expect(passed?.headers).toMatchObject({ 'ratelimit-policy': '"user";q=5;w=1' })
    expect(passed?.headers.ratelimit).toMatch(/^"user";r=[0-4];t=1$/)
    const over = answers.find(({ status }) => status === 429)
    expect(over).toMatchObject({ ...refused, headers: { ratelimit: '"user";r=0;t=1', 'retry-after': '1' } })
    expect(await other.get(me)).toMatchObject({ status: 200 })
    const again = async () => (await one.get(me)).status === 200
    expect(await until('the next window', again)).toBe(true)
  })

  test('exchanges of identity tokens are those of one address', async () => {
    const there = await open({ rateLimitRequestsPerSecond: 5 })
    const payload = new URLSearchParams({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      ...{ subject_token: 'a.b.c', subject_token_type: 'urn:ietf:params:oauth:token-type:jwt' },
    }).toString()
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const exchange = () => there.as('').send({ method: 'POST', url: '/api/v3/auth/token/', headers, payload })
    let over: Answer | undefined
    const isLimited = async () => {
      over = (await Promise.all(times(20, exchange))).find(({ status }) => status === 429)
      return over !== undefined
    }
    expect(await until('twenty exchanges within a second', isLimited)).toBe(true)
    expect(over?.headers).toMatchObject({ 'ratelimit-policy': '"address";q=5;w=1', ratelimit: '"address";r=0;t=1' })
    expect(over?.detail).toBe('Too many requests of this address. Try again in 1 s.')
  })
}

describe.runIf(needs('redis-server'))('rates in Redis', () => {
  const limits = { rateLimitRequestsPerSecond: 1 }
  /** The smallest count that is left while so many ask at once. */
  const isLimited = async (those: readonly { get: Asker['get'] }[]) =>
    (await Promise.all(those.map((each) => each.get(me)))).some(({ status }) => status === 429)

  test('are counted for all processes together', async () => {
    const redis = await ownRedis()
    const [one, other] = [await storeAt(redis.url), await storeAt(redis.url)]
    const here = await installation({ workers: 'none', limits, rateStore: one })
    const there = await installation({ workers: 'none', limits, rateStore: other })
    // Both have the admin under the same key. Each of two requests alone is within the limit.
    expect(await until('both in one second', () => isLimited([here.admin, there.admin]))).toBe(true)
  })

  test('are not counted while Redis is away, stuck or back: nothing is refused', async () => {
    const redis = await ownRedis()
    const { admin } = await installation({ workers: 'none', limits, rateStore: await storeAt(redis.url) })
    const both = [admin, admin]
    const stop = async () => void process.kill(redis.pid, 'SIGSTOP')
    const goOn = async () => void process.kill(redis.pid, 'SIGCONT')
    for (const [hinder, recover] of [
      [stop, goOn],
      [redis.kill, redis.start],
    ] as const) {
      await hinder()
      const answers = [await admin.get(me), await admin.get(me), await admin.get(me)]
      expect(statuses(answers)).toEqual([200, 200, 200])
      expect(answers.at(-1)?.headers).not.toHaveProperty('ratelimit')
      await recover()
    }
    expect(await until('requests to be counted again', () => isLimited(both))).toBe(true)
  })
})

describe('what is under way for one user', () => {
  const path = '/api/v3/authenticators/admin/totp/'

  /** Keeps lists of devices waiting. @returns lets them go on */
  const lockDevices = async ({ db }: Installation) => held({ db }, (tx) => tx.$executeRaw`LOCK TABLE totp_devices`)

  const listsWait = ({ db }: Installation, count: number) =>
    until(
      `${count} lists to wait`,
      async () =>
        (await rows(db, sql`SELECT FROM pg_locks WHERE NOT granted AND mode = 'AccessShareLock'`)).length === count,
    )

  test.each([10, 40])('%i parallel reads are all answered, of lists and of single objects', async (count) => {
    const there = await installation({ workers: 'none', limits: readConfig({}) })
    const one = await there.make.user({ permissions: ['view_user', 'view_group'] })
    const paths = [
      '/api/v3/core/users/?page_size=20',
      `/api/v3/core/groups/${one.group}/`,
      `/api/v3/core/groups/${one.group}/members/`,
    ]
    for (const path of paths) {
      const answers = await Promise.all(times(count, () => one.get(path)))
      expect(statuses(answers)).toEqual(times(count, () => 200))
      const left = answers.map(({ headers }) => Number(/^"user";r=(\d+);t=1$/.exec(String(headers.ratelimit))?.[1]))
      expect(Math.min(...left)).toBeGreaterThan(1_000)
      expect(new Set(left).size).toBeGreaterThan(1)
    }
  })

  test('eight lists are read at once; more wait, one of another user does not, and an object is no list', async () => {
    const there = await installation({ workers: 'none' })
    const one = await there.make.user({ permissions: ['view_totpdevice', 'view_group'] })
    const again = there.as(await there.make.token(one.pk))
    const other = await there.make.user({ permissions: ['view_totpdevice', 'view_group'] })
    const release = await lockDevices(there)
    const lists = times(10, (index) => (index % 2 === 0 ? one : again).get(path))
    await listsWait(there, 8)
    expect(await one.get(`/api/v3/core/groups/${one.group}/`)).toMatchObject({ status: 200 })
    expect(await other.get('/api/v3/core/groups/')).toMatchObject({ status: 200 })
    await release()
    expect(statuses(await Promise.all(lists))).toEqual(times(10, () => 200))
  })

  test('a list whose client went away keeps its place until its work has ended', async () => {
    const there = await installation({ workers: 'none' })
    const { token, get } = await there.make.user({ permissions: ['view_totpdevice', 'view_group'] })
    const url = await there.app.listen({ port: 0, host: '127.0.0.1' })
    const release = await lockDevices(there)
    const leave = new AbortController()
    const headers = { authorization: `Bearer ${token}` }
    const gone = times(8, () => fetch(`${url}${path}`, { headers, signal: leave.signal }))
    await listsWait(there, 8)
    leave.abort()
    for (const each of gone) await expect(each).rejects.toThrow()
    const next = get(path)
    expect(await get(me)).toMatchObject({ status: 200 })
    await listsWait(there, 8)
    await release()
    expect(await next).toMatchObject({ status: 200 })
  })

  test('at most 64 waiting runs; the next is 429 by any token and not recorded, one of another user waits', async () => {
    const { rateLimitWaitingRuns } = readConfig({})
    // Long enough for 65 runs on a busy machine.
    const there = await installation({ limits: { rateLimitWaitingRuns }, applyWaitMs: 60_000 })
    const go = there.hold()
    const bodies = await Promise.all(times(65, (index) => named('radius', `waiting-${index}`)))
    const waiting = bodies.slice(0, 64).map((body) => there.admin.put(applyPath, body))
    await there.queued(64)
    expect(await there.as(await there.make.token(1)).put(applyPath, bodies[64])).toMatchObject(refused)
    expect(await there.db.run.count()).toBe(64)
    const other = await there.make.user({ superuser: true })
    const another = other.put(applyPath, bodies[64])
    await there.queued(65)
    go()
    expect(statuses(await Promise.all([...waiting, another]))).toEqual(times(65, () => 200))
    expect(await there.admin.put(applyPath, bodies[0])).toMatchObject({ status: 200 })
  })
})
