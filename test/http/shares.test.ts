import Fastify from 'fastify'
import { expect, test } from 'vitest'
import { Problem } from '../../src/errors.ts'
import { Share, shareOut } from '../../src/http/shares.ts'
import { system } from '../../src/permissions.ts'
import { until } from '../support/until.ts'

let refused = 0
const share = (waitMs: number) =>
  new Share({
    max: 1,
    waitMs,
    refuse: () => {
      refused += 1
      return new Problem('too_many_requests', 'None is free.')
    },
  })

test('one more is refused when no place is free in time, at once where it need not wait, and the others are not', async () => {
  for (const waitMs of [0, 20]) {
    const places = share(waitMs)
    const [give] = await Promise.all([places.take('a'), places.take('b')])
    const before = refused
    await expect(places.take('a')).rejects.toMatchObject({ code: 'too_many_requests' })
    expect(refused).toBe(before + 1)
    give()
    give()
    await places.take('a')
    await expect(places.take('a')).rejects.toMatchObject({ code: 'too_many_requests' })
  }
})

/** @param part of what is let in that one user may have now */
function sharing(part: () => number) {
  const app = Fastify()
  app.decorateRequest('actor')
  app.addHook('onRequest', async (request) => {
    request.actor = { ...system, pk: Number(request.headers.user) }
  })
  const limits = { rateLimitRequestsPerSecond: 1, rateLimitLongAnswers: 1, rateLimitWaitingRuns: 3 }
  const counted: string[] = []
  shareOut(app, limits, { countLimited: (limit) => void counted.push(limit), countFailedLogin: () => {} }, part)
  return { app, counted }
}

test('a user has a part of what is let in, and takes nothing from another', async () => {
  let part = 1
  const { app, counted } = sharing(() => part)
  const { promise: end, resolve } = Promise.withResolvers<void>()
  let inside = 0
  app.post('/', { config: { permission: 'authenticated', takes: 'run' } }, async () => {
    inside += 1
    await end
    return 'done'
  })
  const send = (user: number) => app.inject({ method: 'POST', url: '/', headers: { user: String(user) } })
  const waiting = [send(1), send(1)]
  await until('two to be inside', async () => inside === 2)
  // Fewer are let in now, of which two are a part already.
  part = 0.5
  const refusals = [await send(1), await send(1)]
  for (const { statusCode, body } of refusals)
    expect([statusCode, body]).toEqual([500, expect.stringContaining('At most 2 ')])
  expect(counted).toEqual(['waiting_runs', 'waiting_runs'])
  waiting.push(send(2), send(2))
  await until('the other user to be inside', async () => inside === 4)
  part = 1
  waiting.push(send(1))
  await until('the third of the first user to be inside', async () => inside === 5)
  resolve()
  for (const { statusCode } of await Promise.all(waiting)) expect(statusCode).toBe(200)
})

test('a list takes a place, and one row by a unique field none', async () => {
  const { app } = sharing(() => 1)
  const { promise: end, resolve } = Promise.withResolvers<void>()
  let inside = 0
  app.get('/', { config: { permission: 'authenticated', takes: 'list', exceptBy: ['slug'] } }, async () => {
    inside += 1
    await end
    return 'done'
  })
  const all = Array.from({ length: 12 }, (_, index) => app.inject(index < 10 ? '/?name=a' : '/?slug=a'))
  await until('eight lists and both rows to be inside', async () => inside === 8 + 2)
  resolve()
  for (const { statusCode } of await Promise.all(all)) expect(statusCode).toBe(200)
})

test('those who wait are let in one after the other', async () => {
  const places = share(60_000)
  const [order, give]: [number[], () => void] = [[], await places.take('a')]
  const all = [1, 2, 3].map(async (each) => {
    const giveBack = await places.take('a')
    order.push(each)
    giveBack()
  })
  await Promise.resolve()
  expect(order).toEqual([])
  give()
  await Promise.all(all)
  expect(order).toEqual([1, 2, 3])
})
