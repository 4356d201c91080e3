import { beforeAll, describe, expect, test } from 'vitest'
import { uuid7 } from '../../src/ids.ts'
import { startConsumer } from '../../src/queue/consumer.ts'
import { jobId } from '../../src/queue/define.ts'
import { recordAttempt } from '../../src/runs/finish.ts'
import { held } from '../runs/stand.ts'
import { applyPath } from '../support/asker.ts'
import { atEnd } from '../support/at-end.ts'
import { dashboardOf, form, origin } from '../support/dashboard.ts'
import { adminToken } from '../support/engine.ts'
import { readEvents } from '../support/events.ts'
import { type Installation, installation, named, type QueueKind } from '../support/installation.ts'
import { needs } from '../support/needs.ts'
import { queueOn } from '../support/queue.ts'
import { sql } from '../support/sql.ts'
import { until } from '../support/until.ts'

/** What is at work, the queue and the workers: how things stand now. */

const runs = '/api/v3/blueprints/runs/'

function claims(queue: QueueKind): void {
  let there: Installation
  let follow: (path?: string, token?: string) => ReturnType<typeof readEvents>
  beforeAll(async () => {
    there = await installation({ queue })
    const url = await there.app.listen({ port: 0, host: '127.0.0.1' })
    follow = (path = 'events/', token = adminToken) => readEvents(`${url}${runs}${path}`, { token })
  })

  test('a run that is at work for a second is running, with its progress; a short one is not', async () => {
    const reader = await follow()
    await there.admin.put(applyPath, await named('radius', 'to-lock'))
    await reader.got('ended')
    const release = await held(there, (tx) =>
      tx.$queryRaw(sql`SELECT 1 FROM applications WHERE slug = 'to-lock' FOR UPDATE`),
    )
    const answer = there.admin.put(applyPath, await named('radius', 'to-lock', { app: { name: 'changed' } }))
    const [running] = await reader.got('running')
    const id = String(running?.data.id)
    expect(running?.data).toMatchObject({ state: 'running', slug: 'to-lock', finished_at: null, progress: null })
    expect(running?.id).toBe(reader.events.find(({ event, data }) => event === 'queued' && data.id === id)?.id)
    const late = await follow(`${id}/events/`)
    await late.got('running')
    for (const job of await there.queue.getActive())
      await there.queue.getJob(job?.id ?? '').then((each) => each?.updateProgress({ done: 7, total: 500 }))
    const [progress] = await reader.got('progress')
    expect(progress?.data).toEqual({ id, done: 7, total: 500 })
    await release()
    await answer
    await reader.got('ended', { run: id })
    await late.ended
    // The lock may outlast a try, and an event may come twice: the run is running again then.
    const states = late.events.map(({ event }) => event).filter((event) => event !== 'attempt')
    expect([...new Set(states)].filter((state) => state !== 'queued')).toEqual(['running', 'progress', 'ended'])
    const runningIds = reader.events.filter(({ event }) => event === 'running').map(({ data }) => data.id)
    expect([...new Set(runningIds)]).toEqual([id])
    reader.close()
  })

  test('the stream of one run begins with how it is: with its attempts, and running when it is at work', async () => {
    const idle = await installation({ queue, workers: 'none' })
    const url = await idle.app.listen({ port: 0, host: '127.0.0.1' })
    const id = uuid7()
    await idle.db.run.create({ data: { id, title: 'apply x', requestId: 'x', attempts: 3 } })
    const followOne = () => readEvents(`${url}${runs}${id}/events/`, { token: adminToken })
    const waiting = await followOne()
    const [queued] = await waiting.got('queued')
    expect(queued?.data).toMatchObject({ state: 'queued', attempts: 3 })

    const work = Promise.withResolvers<undefined>()
    const { backend } = await queueOn({ redisUrl: idle.redisUrl, databaseUrl: idle.url })
    const consumer = await startConsumer(backend, idle.db, 1, () => work.promise)
    atEnd(() => consumer.close())
    const release = await held(idle, (tx) => tx.$queryRaw(sql`SELECT 1 FROM runs WHERE id = ${id}::uuid FOR UPDATE`))
    await idle.enqueue({ id, title: 'apply x' }, 3)
    const jobOf = () => idle.queue.getJob(jobId(id, 3))
    await until(async () => Date.now() - ((await jobOf())?.processedOn ?? Date.now()) > 1_000, {
      what: 'it to be at work for a second',
    })
    const late = await followOne()
    const [running] = await late.got('running')
    expect(late.events.map(({ event }) => event)).toEqual(['running'])
    expect(running?.data).toMatchObject({ state: 'running', attempts: 3, progress: null, finished_at: null })
    // The process sees it at work later than the worker does, and says so once.
    await waiting.got('running')
    await (await jobOf())?.updateProgress({ done: 7, total: 500 })
    for (const each of [waiting, late]) await each.got('progress')
    expect(late.events.map(({ event }) => event)).toEqual(['running', 'progress'])
    expect(waiting.events.map(({ event }) => event)).toEqual(['queued', 'running', 'progress'])
    for (const each of [waiting, late]) each.close()
    work.resolve(undefined)
    await release()
  })

  test('a pause and its end, for those who may view the queue', async () => {
    const [operator, other] = [
      await there.make.user({ permissions: ['view_queue', 'manage_queue', 'view_run'] }),
      await there.make.user({ permissions: ['view_run'] }),
    ]
    const dashboard = dashboardOf(there)
    const headers = { origin, cookie: await dashboard.session(operator.token), 'content-type': form }
    const act = (name: string) =>
      dashboard.send({
        method: 'POST',
        url: `/admin/${name}/`,
        headers,
        payload: name === 'pause' ? 'reason=new+disks' : '',
      })
    const [reader, blind] = [await follow('events/', operator.token), await follow('events/', other.token)]
    await reader.got('queue')
    await act('pause')
    await reader.got('queue', { count: 2 })
    await act('resume')
    const told = await reader.got('queue', { count: 3 })
    expect(told.map(({ data }) => data)).toEqual([
      { paused: false, by: null, since: null, reason: null },
      { paused: true, by: operator.username, since: expect.stringMatching(/Z$/), reason: 'new disks' },
      { paused: false, by: null, since: null, reason: null },
    ])
    expect(blind.events.filter(({ event }) => ['queue', 'worker'].includes(event))).toEqual([])
    for (const each of [reader, blind]) each.close()
  })
}

describe("on PostgreSQL's queue", () => claims('postgres'))
describe.runIf(needs('redis-server'))('on Redis', () => claims('redis'))

test('a worker that comes, falls silent, is heard again, and goes', async () => {
  const there = await installation({ workers: 'none' })
  const url = await there.app.listen({ port: 0, host: '127.0.0.1' })
  const id = uuid7()
  const worker = { id, host: 'machine-1', processId: 7, version: '9.9.9', format: 4, slots: 4 }
  const reader = await readEvents(`${url}${runs}events/`, { token: adminToken })
  const states = () => reader.events.filter(({ event }) => event === 'worker').map(({ data }) => data.state)
  const told = (wanted: string[]) =>
    until(() => states().join() === wanted.join(), { what: wanted.join(), withinMs: 30_000 })
  await there.db.workerProcess.create({ data: worker })
  await told(['heard'])
  await there.db.workerProcess.update({ where: { id }, data: { seenAt: new Date(Date.now() - 60_000) } })
  await told(['heard', 'silent'])
  await there.db.workerProcess.update({ where: { id }, data: { seenAt: new Date(Date.now() + 60_000) } })
  await told(['heard', 'silent', 'heard'])
  await there.db.workerProcess.delete({ where: { id } })
  await told(['heard', 'silent', 'heard', 'gone'])
  const [first] = reader.events.filter(({ event }) => event === 'worker')
  expect(first?.data).toMatchObject({ id, host: 'machine-1', version: '9.9.9', format: 4, slots: 4 })
  reader.close()
})

test('a failed attempt is told of, with its cause for those who may know it', async () => {
  const there = await installation({ workers: 'none' })
  const url = await there.app.listen({ port: 0, host: '127.0.0.1' })
  const user = await there.make.user()
  const id = uuid7()
  await there.db.run.create({ data: { id, title: 'apply x', requestId: 'x', submitterPk: user.pk } })
  const [reader, own, one] = [
    await readEvents(`${url}${runs}events/`, { token: adminToken }),
    await readEvents(`${url}${runs}events/`, { token: user.token }),
    await readEvents(`${url}${runs}${id}/events/`, { token: user.token }),
  ]
  await recordAttempt(there.db, id, 'the network is down (08006)')
  const wanted = { id, attempt: 1, at: expect.stringMatching(/Z$/) }
  const [full] = await reader.got('attempt')
  expect(full?.data).toEqual({ ...wanted, cause: 'the network is down (08006)' })
  for (const each of [own, one]) expect((await each.got('attempt'))[0]?.data).toEqual({ ...wanted, cause: null })
  expect(new Set([reader, own, one].map((each) => each.events.find(({ event }) => event === 'attempt')?.id)).size).toBe(
    1,
  )
  for (const each of [reader, own, one]) each.close()
})
