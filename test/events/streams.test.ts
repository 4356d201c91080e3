import { beforeAll, describe, expect, test } from 'vitest'
import { applyPath } from '../support/asker.ts'
import { adminToken } from '../support/engine.ts'
import { type EventReader, readEvents } from '../support/events.ts'
import { type Installation, installation, named } from '../support/installation.ts'
import { until } from '../support/until.ts'

let there: Installation
let url: string
beforeAll(async () => {
  there = await installation()
  url = await there.app.listen({ port: 0, host: '127.0.0.1' })
})

const all = '/api/v3/blueprints/runs/events/'
const follow = (path = all, options: { token?: string; lastEventId?: string } = {}): Promise<EventReader> =>
  readEvents(`${url}${path}`, { token: adminToken, ...options })

/** @returns the id of the run */
async function apply(name: string, as = there.admin): Promise<string> {
  const answer = await as.put(applyPath, await named('oauth2', name))
  expect(answer.status).toBe(200)
  return answer.headers['content-location']?.split('/').at(-2) ?? ''
}

const known = (reader: EventReader, run: string) =>
  reader.events.filter(({ data }) => data.id === run).map(({ event }) => event)

describe('all runs', () => {
  test('a run is queued, and ends, once each', async () => {
    const reader = await follow()
    expect([reader.status, reader.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
    expect(reader.headers.get('cache-control')).toBe('no-store')
    const id = await apply('one-of-all')
    const [ended] = await reader.got('ended', { run: id })
    expect(known(reader, id)).toEqual(['queued', 'ended'])
    expect(ended?.data).toMatchObject({ state: 'done', applied: true, title: 'apply oauth2 one-of-all' })
    reader.close()
  })

  test('a reader that comes back is sent what it missed, with the same ids', async () => {
    const [first, other] = [await follow(), await follow()]
    const before = await apply('before-the-gap')
    await first.got('ended', { run: before })
    first.close()
    const missed = await apply('in-the-gap')
    await other.got('ended', { run: missed })
    const again = await follow(all, { lastEventId: first.lastId() })
    await again.got('ended', { run: missed })
    const after = await apply('after-the-gap')
    await again.got('ended', { run: after })
    for (const id of [missed, after]) expect(known(again, id)).toEqual(['queued', 'ended'])
    const ids = (reader: EventReader) =>
      new Set(reader.events.filter(({ data }) => data.id === missed).map(({ id }) => id))
    expect(ids(again)).toEqual(ids(other))
    for (const each of [other, again]) each.close()
  })

  test('a reader that saw nothing yet knows where it was', async () => {
    const reader = await follow()
    await until(() => reader.lastId() !== '', { what: 'an id' })
    reader.close()
    const missed = await apply('before-any-event')
    const again = await follow(all, { lastEventId: reader.lastId() })
    await again.got('ended', { run: missed })
    expect(again.events.map(({ event }) => event)).not.toContain('reset')
    again.close()
  })

  test.each([
    ['an id that is none', 'x'.repeat(300), 'unknown_id'],
    ['an id of another database', '999999999999999-1795445596', 'unknown_id'],
    ['an id of an hour ago', `3-${Math.floor(Date.now() / 1_000) - 3_700}-ended-x`, 'too_old'],
  ])('%s: reset, and from now on', async (_, lastEventId, reason) => {
    const reader = await follow(all, { lastEventId })
    const [reset] = await reader.got('reset')
    expect(reset?.data).toEqual({ reason })
    const id = await apply(`after-${reason}-${lastEventId.length}`)
    await reader.got('ended', { run: id })
    const again = await follow(all, { lastEventId: reader.lastId() })
    await until(() => again.events.length > 0, { what: 'the state of the queue' })
    expect(again.events.map(({ event }) => event)).not.toContain('reset')
    for (const each of [reader, again]) each.close()
  })
})

describe('one run', () => {
  const pathOf = (run: string) => `/api/v3/blueprints/runs/${run}/events/`

  test('one that has ended: its end, and the stream is over; then 204', async () => {
    const id = await apply('over')
    const reader = await follow(pathOf(id))
    await reader.ended
    expect(known(reader, id)).toEqual(['ended'])
    const again = await follow(pathOf(id), { lastEventId: reader.lastId() })
    expect(again.status).toBe(204)
    const anew = await follow(pathOf(id), { lastEventId: '1-1-queued-x' })
    await anew.ended
    expect(anew.events).toEqual(reader.events)
  })

  test('one that waits: queued, and its end closes the stream', async () => {
    const release = there.hold()
    const answer = there.admin.put(applyPath, await named('oauth2', 'waits'))
    await there.queued(1)
    const { id } = await there.db.run.findFirstOrThrow({ where: { state: 'queued' } })
    const reader = await follow(pathOf(id))
    await reader.got('queued')
    const other = apply('beside-the-one')
    release()
    await Promise.all([other, answer])
    await reader.ended
    expect(known(reader, id)).toEqual(['queued', 'ended'])
    expect(reader.events).toHaveLength(2)
  })
})
