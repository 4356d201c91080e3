import { beforeAll, describe, expect, test } from 'vitest'
import { beat } from '../../src/queue/heartbeat.ts'
import { applyPath } from '../support/asker.ts'
import { dashboardOf, form, origin } from '../support/dashboard.ts'
import { type Installation, installation, named, type QueueKind } from '../support/installation.ts'
import type { Made } from '../support/make.ts'
import { needs } from '../support/needs.ts'

/** A paused queue says so wherever it is noticed, with who paused it and when. */

function claims(queue: QueueKind): void {
  let there: Installation
  let operator: Made
  let act: (name: string) => Promise<unknown>
  beforeAll(async () => {
    there = await installation({ queue, applyWaitMs: 2_000 })
    operator = await there.make.user({ permissions: ['view_queue', 'manage_queue'] })
    const dashboard = dashboardOf(there)
    const headers = { origin, cookie: await dashboard.session(operator.token), 'content-type': form }
    act = (name) => dashboard.send({ method: 'POST', url: `/admin/${name}/`, headers, payload: '' })
  })
  const ready = () => there.admin.get('/-/health/ready/')
  const put = async (name: string) => there.admin.put(applyPath, await named('radius', name))

  test('in readiness and in the 503 of an apply, and no more when it is resumed', async () => {
    await beat(there.db)
    expect(await ready()).toMatchObject({ status: 200 })
    await act('pause')
    const { pausedAt } = await there.db.queuePause.findUniqueOrThrow({ where: { queue: 'apply' } })
    expect(Math.abs(Date.now() - pausedAt.getTime())).toBeLessThan(10_000)
    const paused = `the queue is paused, by ${operator.username} since ${pausedAt.toISOString()}`

    const detail = `No worker takes jobs: ${paused}. Resume it on the dashboard, /admin/resume/.`
    const ok = { ok: true, detail: expect.any(String) }
    expect(await ready()).toMatchObject({
      status: 503,
      json: { detail: `Not ready. ${detail}`, checks: { database: ok, queue: ok, worker: { ok: false, detail } } },
    })
    expect(await put('while-paused')).toMatchObject({
      status: 503,
      headers: { 'retry-after': '1' },
      json: { code: 'cancelled', detail: `Not applied: ${paused}. Nothing was changed; try again shortly.` },
    })

    await act('resume')
    await beat(there.db)
    expect(await ready()).toMatchObject({ status: 200 })
    expect(await put('afterwards')).toMatchObject({ status: 200 })
    expect(await there.db.application.count({ where: { slug: 'while-paused' } })).toBe(0)
  })

  test('also when it was paused by other means', async () => {
    await beat(there.db)
    await there.queue.pause()
    const paused = 'the queue is paused, by other means than the dashboard'
    expect(await ready()).toMatchObject({ status: 503, json: { detail: expect.stringContaining(paused) } })
    expect(await put('by-other-means')).toMatchObject({
      status: 503,
      json: { detail: expect.stringContaining(paused) },
    })
    await there.queue.resume()
  })
}

describe("on PostgreSQL's queue", () => claims('postgres'))
describe.runIf(needs('redis-server'))('on Redis', () => claims('redis'))
