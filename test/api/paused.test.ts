import { beforeAll, describe, expect, test } from 'vitest'
import { beat } from '../../src/queue/heartbeat.ts'
import { answered } from '../support/asker.ts'
import { type Dashboard, dashboardOf, form, origin } from '../support/dashboard.ts'
import { type Installation, installation, type Made, needs, type QueueKind, until } from '../support/kit.ts'

/** A paused queue says so wherever it is noticed, with who paused it and when. */

function claims(queue: QueueKind): void {
  let there: Installation
  let operator: Made
  let send: Dashboard['send']
  let act: (name: string) => Promise<unknown>
  beforeAll(async () => {
    there = await installation({ queue, applyWaitMs: 2_000 })
    operator = await there.make.user({ permissions: ['view_queue', 'manage_queue'] })
    const dashboard = dashboardOf(there)
    const headers = { origin, cookie: await dashboard.session(operator.token), 'content-type': form }
    send = (request) => dashboard.send({ headers, ...request })
    act = (name) => send({ method: 'POST', url: `/admin/${name}/`, payload: '' })
  })
  const applies = () => there.admin.get('/-/health/applies/')
  const put = async (name: string, headers: Record<string, string> = {}) =>
    there.admin.submit('radius', name, { headers })

  /** Jobs of a lower lane are `prioritized`. */
  const waitingJobs = async () => {
    const states = ['waiting', 'prioritized']
    const { body } = await send({ method: 'GET', url: '/admin/queues/api/queues' })
    const { counts } = JSON.parse(body).queues[0]
    const { text } = await there.as('').get('/-/metrics/')
    const gauge = (state: string) =>
      Number(new RegExp(`^gatewright_jobs\\{state="${state}"\\} (\\d+)$`, 'm').exec(text)?.[1])
    const sum = (of: (state: string) => number) => states.reduce((total, state) => total + of(state), 0)
    return { board: sum((state) => counts[state]), metric: sum(gauge) }
  }

  test('in the probe and in the 503 of an apply, and no more when it is resumed; the API stays ready', async () => {
    await beat(there.db)
    expect(await applies()).toMatchObject({ status: 200, json: { status: 'applying' } })
    await act('pause')
    const { pausedAt } = await there.db.queuePause.findUniqueOrThrow({ where: { queue: 'apply' } })
    expect(Math.abs(Date.now() - pausedAt.getTime())).toBeLessThan(10_000)
    const paused = `queue is paused, by ${operator.username} since ${pausedAt.toISOString()}`

    const resume = 'Resume it on the dashboard, /admin/resume/.'
    const detail = `The ${paused}. ${resume}`
    const ok = { ok: true, detail: expect.any(String) }
    await answered(503, applies(), {
      detail: `Nothing is applied. ${detail}`,
      checks: { database: ok, queue: ok, pause: { ok: false, detail }, worker: { ok: false, detail } },
    })
    expect(await there.admin.get('/-/health/ready/')).toMatchObject({ status: 200, json: { status: 'ready' } })
    expect(await put('while-paused')).toMatchObject({
      status: 503,
      headers: { 'retry-after': expect.stringMatching(/^[12]$/) },
      json: {
        code: 'cancelled',
        detail: `Not applied: the ${paused}. ${resume} Nothing was changed; try again shortly.`,
      },
    })

    await act('resume')
    await beat(there.db)
    expect(await applies()).toMatchObject({ status: 200, json: { status: 'applying' } })
    expect(await put('afterwards')).toMatchObject({ status: 200 })
    expect(await there.db.application.count({ where: { slug: 'while-paused' } })).toBe(0)
  })

  test('an apply that waits is refused before it is recorded, and one that does not wait is recorded and applied later', async () => {
    await put('before-the-pause')
    await act('pause')
    // What an API knows of the pause is a second old at most.
    await until('a refusal at once', async () => (await put('at-once')).headers['retry-after'] === '2')
    const before = await there.db.run.count()
    await answered(503, put('at-once'), { detail: expect.stringContaining('the queue is paused, by ') })
    expect(await there.db.run.count()).toBe(before)
    const later = ['later-1', 'later-2', 'later-3']
    for (const name of later) expect(await put(name, { prefer: 'respond-async' })).toMatchObject({ status: 202 })
    // Jobs of runs that were cancelled meanwhile wait, too.
    const { board, metric } = await waitingJobs()
    expect(board).toBeGreaterThanOrEqual(later.length)
    expect(metric).toBe(board)
    await act('resume')
    const applied = () => there.db.application.count({ where: { slug: { in: later } } })
    await until('the recorded runs to be applied', async () => (await applied()) === 3)
    expect(await put('at-once')).toMatchObject({ status: 200 })
  })

  test('a row of a pause that is over refuses nothing', async () => {
    await there.db.queuePause.create({ data: { queue: 'apply', pausedBy: 'a process that was killed' } })
    await put('over')
    expect(await put('over')).toMatchObject({ status: 200 })
    await there.db.queuePause.deleteMany()
  })

  test('also when it was paused by other means', async () => {
    await beat(there.db)
    await there.queue.pause()
    const paused = 'queue is paused, by other means than the dashboard'
    expect(await applies()).toMatchObject({ status: 503, json: { detail: expect.stringContaining(paused) } })
    await answered(503, put('by-other-means'), { detail: expect.stringContaining(paused) })
    await there.queue.resume()
  })
}

describe("on PostgreSQL's queue", () => claims('postgres'))
describe.runIf(needs('redis-server'))('on Redis', () => claims('redis'))
