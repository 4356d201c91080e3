import { randomUUID } from 'node:crypto'
import type { InjectOptions } from 'fastify'
import { describe, expect, test } from 'vitest'
import type { acts } from '../../src/dashboard/acts.ts'
import { applyPath, dashboardOf, example, form, installation, login, origin } from '../support/kit.ts'

/** What operators do on the dashboard, beside looking at the queue. */

const service = await installation()
const dashboard = dashboardOf(service)
const viewer = await service.make.user({ permissions: ['view_queue'] })
await service.admin.put(applyPath, await example('oauth2'))

/** A time as pages write it. */
const spoken = (at: Date) => at.toISOString().slice(11, 19)
const act = (name: keyof typeof acts) => `/admin/${name}/`
const send = (request: InjectOptions) => dashboard.send(request)
const session = (token: string) => dashboard.session(token)

describe('an operator', () => {
  test('pauses and resumes the queue, and the audit names the operator, the object and the value', async () => {
    const { token, username } = await service.make.user({ permissions: ['view_queue', 'manage_queue'] })
    const headers = { origin, cookie: await session(token), 'content-type': form }
    const post = (url: string) => send({ method: 'POST', url, headers, payload: '' })
    const see = async () => (await send({ method: 'GET', url: '/admin/', headers })).body
    const described = async () =>
      (await send({ method: 'GET', url: '/admin/queues/api/queues', headers })).json().queues[0].description
    expect(await see()).not.toMatch(/queue paused/i)
    // Resuming a queue that is not paused changes nothing.
    expect((await post(act('resume'))).statusCode).toBe(303)

    expect(await post(act('pause'))).toMatchObject({ statusCode: 303, headers: { location: '/admin/' } })
    expect(await service.queue.isPaused()).toBe(true)
    const row = await service.db.queuePause.findUniqueOrThrow({ where: { queue: 'apply' } })
    const sentence = `The queue is paused, by ${username} since ${row.pausedAt.toISOString()}.`
    expect((await see()).replaceAll(/<[^>]+>/g, '')).toContain(`Queue paused by ${username} ${spoken(row.pausedAt)}.`)
    expect(await described()).toBe(sentence)
    // A second one does not take the pause over.
    expect((await post(act('pause'))).statusCode).toBe(303)

    expect((await post(act('resume'))).statusCode).toBe(303)
    expect(await service.queue.isPaused()).toBe(false)
    expect(await see()).not.toMatch(/queue paused/i)
    expect(await described()).not.toMatch(/paused/i)

    const audited = await service.db.auditRow.findMany({ where: { actorName: username }, orderBy: { pk: 'asc' } })
    const change = { model: 'queue', key: 'apply', action: 'update', fields: ['paused'] }
    expect(audited).toMatchObject([
      { action: 'pause_queue', changes: [{ ...change, value: true }], requestId: expect.any(String) },
      { action: 'resume_queue', changes: [{ ...change, value: false }] },
    ])
  })

  test('says why, and the reason stands wherever the pause is named', async () => {
    const { token, username } = await service.make.user({ permissions: ['view_queue', 'manage_queue'] })
    const headers = { origin, cookie: await session(token), 'content-type': form }
    const get = async (url: string) => (await send({ method: 'GET', url, headers })).body
    const pause = (reason: string) =>
      send({ method: 'POST', url: act('pause'), headers, payload: new URLSearchParams({ reason }).toString() })

    for (const wrong of ['x'.repeat(201), 'two\nlines', 'nul\0']) {
      const { statusCode, body } = await pause(wrong)
      expect([statusCode, body.includes('aria-invalid="true"')]).toEqual([400, true])
    }
    expect(await service.queue.isPaused()).toBe(false)

    const asked = await get(act('pause'))
    expect(asked.indexOf('Cancel')).toBeLessThan(asked.indexOf('<button type="submit">Pause the queue'))
    expect((await pause('  <b>new</b> disks  ')).statusCode).toBe(303)
    const { pausedAt, reason } = await service.db.queuePause.findUniqueOrThrow({ where: { queue: 'apply' } })
    expect(reason).toBe('<b>new</b> disks')
    const said = `by ${username} since ${pausedAt.toISOString()} ("<b>new</b> disks")`
    const shown = `Queue paused by ${username} ${spoken(pausedAt)}, &lt;b&gt;new&lt;/b&gt; disks.`
    for (const url of ['/admin/', act('resume'), act('pause')])
      expect((await get(url)).replaceAll(/<[^>]+>/g, '')).toContain(shown)
    expect(JSON.parse(await get('/admin/queues/api/queues')).queues[0].description).toContain(said)
    expect(JSON.parse(await get('/-/health/applies/')).checks.worker.detail).toContain(said)
    expect((await send({ method: 'POST', url: act('resume'), headers, payload: '' })).statusCode).toBe(303)
    expect(await get(act('resume'))).toContain('The queue is not paused.')
  })

  test('a queue that was paused by other means says so', async () => {
    const cookie = await session(viewer.token)
    await service.queue.pause()
    try {
      const { body } = await send({ method: 'GET', url: '/admin/', headers: { cookie } })
      expect(body).toContain('Queue paused, by other means than the dashboard.')
      // The viewer may not act.
      expect(body).not.toContain('/admin/resume/"')
      expect((await send({ method: 'GET', url: act('resume'), headers: { cookie } })).statusCode).toBe(403)
    } finally {
      await service.queue.resume()
    }
  })

  test('cleared the failed jobs in earlier versions, and the audit still shows it', async () => {
    const { username } = await service.make.user({ permissions: ['view_queue'] })
    const change = { model: 'queue', key: 'apply', action: 'update', fields: ['failed_jobs'], value: 33 }
    const row = { actorPk: null, actorName: username, action: 'clear_failed_jobs', requestId: 'earlier' }
    await service.db.auditRow.create({ data: { ...row, changes: [change] } })
    const admin = await service.make.user({ superuser: true })
    const { statusCode, body } = await dashboard.get(admin, `/admin/audit/?action=clear_failed_jobs&who=${username}`)
    expect([statusCode, body.includes('clear failed jobs'), body.includes('failed_jobs')]).toEqual([200, true, true])
    const gone = await dashboard.get(admin, '/admin/clear/')
    expect(gone.statusCode).toBe(404)
  })
})

test('a run has a page that its job links to, for its submitter and for users with view_run', async () => {
  const { id, requestId } = await service.db.run.findFirstOrThrow()
  const reader = await service.make.user({ permissions: ['view_queue', 'view_run'] })
  const see = async (token: string, url: string) =>
    send({ method: 'GET', url, headers: { cookie: await session(token) } })
  const [job] = (await see(reader.token, '/admin/queues/api/queues?activeQueue=apply&status=completed')).json()
    .queues[0].jobs
  expect(job.externalUrl).toEqual({ displayText: 'Run', href: `/admin/runs/${id}/` })
  const { statusCode, body } = await see(reader.token, job.externalUrl.href)
  expect(statusCode).toBe(200)
  for (const shown of ['applied', 'created', requestId, `/api/v3/blueprints/runs/${id}/`]) expect(body).toContain(shown)
  for (const [token, url] of [
    [viewer.token, job.externalUrl.href],
    [reader.token, '/admin/runs/01a1fd79-0573-7eeb-91d6-996288491dcb/'],
  ] as const)
    expect(await see(token, url)).toMatchObject({ statusCode: 404, body: expect.not.stringContaining(requestId) })
})

describe('logging out', () => {
  test('ends the session on the server, and no other session of the same token', async () => {
    const [left, kept] = [await session(viewer.token), await session(viewer.token)]
    const status = async (cookie: string) =>
      (await send({ method: 'GET', url: '/admin/queues/api/queues', headers: { cookie } })).statusCode
    expect([await status(left), await status(kept)]).toEqual([200, 200])
    const logout = { method: 'POST', url: '/admin/logout/', headers: { origin, cookie: left } } as const
    expect(await send(logout)).toMatchObject({ statusCode: 303, headers: { location: login } })
    // A copy of the cookie, taken before.
    expect([await status(left), await status(kept)]).toEqual([401, 200])
    expect((await send(logout)).statusCode).toBe(303)
  })

  test('a token has ten sessions at most, and expired ones are removed', async () => {
    const owner = await service.make.user({ permissions: ['view_queue'] })
    const { pk: tokenPk } = await service.db.token.findFirstOrThrow({ where: { userPk: owner.pk } })
    const expires = new Date(Date.now() - 1_000)
    await service.db.dashboardSession.create({ data: { pk: randomUUID(), tokenPk, expires } })
    for (let each = 0; each < 12; each += 1) await session(owner.token)
    const left = await service.db.dashboardSession.findMany({ where: { tokenPk } })
    expect(left).toHaveLength(10)
    expect(left.every((each) => each.expires > new Date())).toBe(true)
  })
})
