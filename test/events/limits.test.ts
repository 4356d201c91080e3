import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { uuid7 } from '../../src/ids.ts'
import { applyPath } from '../support/asker.ts'
import { adminToken } from '../support/engine.ts'
import { readEvents } from '../support/events.ts'
import { type Installation, installation, named } from '../support/installation.ts'
import { until } from '../support/until.ts'

const path = '/api/v3/blueprints/runs/events/'

async function listening(options: Parameters<typeof installation>[0] = {}) {
  const there = await installation({ ...options })
  const url = await there.app.listen({ port: 0, host: '127.0.0.1' })
  return { there, url, follow: (token: string) => readEvents(`${url}${path}`, { token }) }
}

async function endedFor(there: Installation, why: string): Promise<void> {
  const line = () => there.log.find((each) => each.includes('a stream of events ended') && JSON.parse(each).why === why)
  expect(await until(line, { what: `a stream to end: ${why}`, withinMs: 60_000 })).toContain('"kind":"runs"')
}

describe('how many streams', () => {
  test('four of a user, by any token: the fifth is refused, and there is room again when one is closed', async () => {
    const { there, follow } = await listening({ streams: { user: 4 } })
    const { pk, token } = await there.make.user()
    const another = await there.make.token(pk)
    const open = [await follow(token), await follow(token), await follow(another), await follow(another)]
    expect(open.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    const fifth = await follow(token)
    expect([fifth.status, fifth.headers.get('retry-after'), fifth.json]).toEqual([
      429,
      '1',
      {
        detail: 'At most 4 streams of events at the same time for one user. Close one, or try again later.',
        code: 'too_many_requests',
      },
    ])
    expect((await follow(adminToken)).status).toBe(200)
    expect((await there.admin.get('/-/metrics/')).text).toContain('gatewright_rate_limited_total{limit="streams"} 1')
    open[0]?.close()
    await endedFor(there, 'client')
    expect((await follow(token)).status).toBe(200)
  })

  test('so many with a process: the next one is told to come later', async () => {
    const { there, follow } = await listening({ streams: { process: 3 } })
    for (const _ of [1, 2, 3]) expect((await follow((await there.make.user()).token)).status).toBe(200)
    const next = await follow((await there.make.user()).token)
    expect([next.status, next.headers.get('retry-after'), next.json]).toEqual([
      503,
      '10',
      {
        detail: 'At most 3 streams of events at the same time with this process. Close one, or try again later.',
        code: 'unavailable',
      },
    ])
  })

  test('a refused stream takes no place', async () => {
    const { there, url, follow } = await listening()
    const token = await there.make.token(1)
    const none = `${url}/api/v3/blueprints/runs/6f7e0000-0000-7000-8000-000000000000/events/`
    for (const _ of [1, 2, 3, 4, 5]) expect((await readEvents(none, { token })).status).toBe(404)
    expect((await follow(token)).status).toBe(200)
  })
})

describe('rights are checked again', () => {
  const streams = { checkMs: 200, checkAgainMs: 100 }

  test('a stream ends when its token is gone', async () => {
    const { there, follow } = await listening({ streams })
    const user = await there.make.user()
    const reader = await follow(user.token)
    await there.db.token.deleteMany({ where: { userPk: user.pk } })
    await reader.ended
    await endedFor(there, 'rights')
  })

  test('a reader without view_run any more is sent its own runs only', async () => {
    const { there, follow } = await listening({ streams })
    const user = await there.make.user({ permissions: ['view_run'] })
    const [reader, witness] = [await follow(user.token), await follow(adminToken)]
    const apply = async (name: string) => {
      await there.admin.put(applyPath, await named('radius', name))
      await until(() => witness.events.some(({ event, data }) => event === 'ended' && data.slug === name), {
        what: name,
      })
    }
    await apply('before')
    await reader.got('ended')
    await there.db.groupRole.deleteMany({ where: { groupPk: user.group } })
    const checked = () => there.log.filter((line) => line.includes('the rights of a stream were read')).length
    const known = checked()
    await until(() => checked() >= known + 4, { what: 'its rights to be read again' })
    await apply('after')
    expect(reader.events.filter(({ event }) => event === 'ended').map(({ data }) => data.slug)).toEqual(['before'])
    expect(reader.isOver()).toBe(false)
    for (const each of [reader, witness]) each.close()
  })
})

test('a comment comes at intervals, with the id of the place', async () => {
  const { follow } = await listening({ streams: { commentMs: 100 } })
  const reader = await follow(adminToken)
  await until(() => reader.comments() >= 3, { what: 'three comments' })
  expect(reader.lastId()).toMatch(/^\d+-\d+$/)
  reader.close()
})

test.each([
  ['at the second comment after it has stopped', 300, 1],
  ['when too much waits for it', 60_000, 3],
])('a reader that does not read is closed: %s', async (_, commentMs, rounds) => {
  const { there, url, follow } = await listening({ streams: { commentMs } })
  const { port } = new URL(url)
  const socket = connect(Number(port), '127.0.0.1')
  await new Promise<void>((resolve) => socket.once('connect', resolve))
  socket.pause()
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${adminToken}\r\n\r\n`)
  const witness = await follow(await there.make.token(1))
  // More than sockets keep, and more than waits for a reader.
  const title = 'x'.repeat(30_000)
  for (let round = 1; round <= rounds; round += 1) {
    const rows = Array.from({ length: 300 }, () => ({ title, requestId: 'x', state: 'cancelled' as const }))
    await there.db.run.createMany({ data: rows.map((row) => ({ ...row, id: uuid7(), finishedAt: new Date() })) })
    await witness.got('ended', { count: 300 * round })
  }
  await endedFor(there, 'slow')
  expect(witness.isOver()).toBe(false)
  witness.close()
  socket.destroy()
})

test('the server closes at once while streams are open', async () => {
  const { there, follow } = await listening()
  const readers = [await follow(adminToken), await follow(adminToken)]
  await there.app.close()
  for (const reader of readers) await reader.ended
  await endedFor(there, 'stopping')
})
