import { describe, expect, test } from 'vitest'
import { transaction } from '../../src/db/client.ts'
import { uuid7 } from '../../src/ids.ts'
import { dashboardOf, origin } from '../support/dashboard.ts'
import { applyPath, execute, type Installation, installation, lockedOut, named, sql, until } from '../support/kit.ts'

/** The lines of API and worker about a submission belong together, and name those who are behind it. */

const there = await installation()

type Line = Readonly<Record<string, unknown>> & { readonly level: number; readonly msg: string }

/** What was logged about a request, without what is for debugging. The answer is logged after it was sent. */
async function linesOf(service: Installation, request: string): Promise<readonly Line[]> {
  const lines = () =>
    service.log.map((line): Line => JSON.parse(line)).filter((line) => line.request === request && line.level >= 30)
  await until('the line about the answer', () => lines().some(({ msg }) => msg === 'answered'))
  return lines()
}

let count = 0
/** Submits, and returns the lines about it. */
async function submit(
  service: Installation,
  body: unknown,
  { headers = {}, ...options }: { headers?: Record<string, string>; ifNoneMatch?: string } = {},
) {
  count += 1
  const id = `request-${count}`
  const answer = await service.admin.put(applyPath, body, { ...options, headers: { 'x-request-id': id, ...headers } })
  return { answer, lines: await linesOf(service, id), id }
}

const runOf = (service: Installation, slug: string) => service.db.run.findFirstOrThrow({ where: { slug } })

test('an applied run: one line of the worker and one of the API, with the same fields', async () => {
  const { lines, id } = await submit(there, await named('radius', 'applied'))
  const fields = {
    request: id,
    run: (await runOf(there, 'applied')).id,
    title: 'apply radius applied',
    user: 'admin',
    real_user: null,
    code: null,
  }
  expect(lines).toHaveLength(2)
  expect(lines.find(({ msg }) => msg === 'answered')).toMatchObject({ level: 30, ...fields, status: 200 })
  expect(lines.find(({ msg }) => msg === 'run ended')).toMatchObject({
    ...{ level: 30, ...fields },
    ...{ state: 'done', applied: true, attempts: 1, queue_ms: expect.any(Number), work_ms: expect.any(Number) },
  })
})

test('while impersonating, both lines name both users', async () => {
  const { username } = await there.make.user({ superuser: true })
  const { lines, answer } = await submit(there, await named('radius', 'impersonated'), {
    headers: { 'impersonate-user': username },
  })
  expect(answer.status).toBe(200)
  expect(lines.map(({ user, real_user }) => [user, real_user])).toEqual([
    [username, 'admin'],
    [username, 'admin'],
  ])
})

test('a refusal in the worker: both lines have its code', async () => {
  const release = there.hold()
  const sending = submit(there, await named('radius', 'refused'), { ifNoneMatch: '*' })
  await there.queued(1)
  await there.db.application.create({ data: { pk: uuid7(), name: 'Refused', slug: 'refused' } })
  release()
  const { lines, answer } = await sending
  expect(answer.status).toBe(412)
  const { id } = await runOf(there, 'refused')
  expect(
    lines.map(({ msg, code, run: of }) => ({ msg, code, of })).toSorted((a, b) => (a.msg < b.msg ? -1 : 1)),
  ).toEqual(['answered', 'run ended'].map((msg) => ({ msg, code: 'precondition_failed', of: id })))
})

test('a refusal in the API: one line with its code and title, and no run', async () => {
  const { lines } = await submit(there, await named('radius', 'wrong', { provider: { client_networks: 'x' } }))
  expect(lines).toMatchObject([
    { level: 30, status: 400, code: 'invalid', title: 'apply radius wrong', run: null, user: 'admin', real_user: null },
  ])
})

test('an attempt that comes to nothing: every line has the fields, and no stack', async () => {
  const letIn = await lockedOut(there.db, '57014')
  const sending = submit(there, await named('radius', 'later'))
  await until('another attempt', () => there.log.some((line) => line.includes('enqueueing a run again')))
  await letIn()
  const { answer, lines, id } = await sending
  expect(answer.status).toBe(200)
  const fields = { request: id, run: (await runOf(there, 'later')).id, title: 'apply radius later', user: 'admin' }
  for (const line of lines) expect(line).toMatchObject({ ...fields, real_user: null })
  for (const line of lines)
    expect([line.msg, 'code' in line, JSON.stringify(line)]).toEqual([
      line.msg,
      true,
      expect.not.stringContaining('stack'),
    ])
  const messages = lines.map(({ msg }) => msg)
  expect(new Set(messages)).toEqual(
    new Set(['trying the run again', 'this attempt failed', 'enqueueing a run again', 'run ended', 'answered']),
  )
  expect(messages.filter((msg) => msg === 'run ended')).toHaveLength(1)
  expect(lines.find(({ msg }) => msg === 'trying the run again')).toMatchObject({
    code: 'unavailable',
    cause: 'a statement took too long',
  })
})

test('a page that its script reads again is for debugging only, unless it fails or is another request', async () => {
  const { token } = await there.make.user({ permissions: ['view_queue'] })
  const dashboard = dashboardOf(there)
  const cookie = await dashboard.session(token)
  const levelOf = async (
    request: string,
    url: string,
    headers: Record<string, string>,
    method: 'GET' | 'POST' = 'GET',
  ) => {
    await dashboard.send({ method, url, headers: { cookie, origin, 'x-request-id': request, ...headers } })
    const line = () => there.log.find((each) => each.includes(`"${request}"`) && each.includes('"answered"'))
    return JSON.parse(await until('the line about the answer', line)).level
  }
  const again = { 'gatewright-refresh': '1' }
  expect(await levelOf('again', '/admin/', again)).toBe(20)
  expect(await levelOf('first', '/admin/', {})).toBe(30)
  expect(await levelOf('absent', `/admin/runs/${uuid7()}/`, again)).toBe(30)
  expect(await levelOf('logged-out', '/admin/', { ...again, cookie: '' })).toBe(30)
  expect(await levelOf('act', '/admin/logout/', again, 'POST')).toBe(30)
  const bearer = { ...again, authorization: `Bearer ${token}` }
  expect(await levelOf('api', '/api/v3/core/users/me/', bearer)).toBe(30)
})

test('a bug: the line of the worker has its stack, the line of the API has none', async () => {
  const release = there.hold()
  const sending = submit(there, await named('radius', 'bug'))
  await there.queued(1)
  await there.db.run.updateMany({ where: { slug: 'bug' }, data: { blueprint: 'v1.not.sealed.here' } })
  release()
  const { lines } = await sending
  expect(lines).toHaveLength(2)
  expect(lines.find(({ msg }) => msg === 'answered')).toMatchObject({ level: 40, status: 500, code: 'server_error' })
  expect(lines.find(({ msg }) => msg !== 'answered')).toMatchObject({
    ...{ level: 50, code: 'server_error', state: 'failed', title: 'apply radius bug' },
    err: { stack: expect.stringContaining('sealed under key') },
  })
})

describe('an expected 503 is one line without a stack', () => {
  const expectOneLine = (lines: readonly Line[], line: object) => {
    expect(lines).toMatchObject([{ level: 40, msg: 'answered', status: 503, user: 'admin', real_user: null, ...line }])
    expect(JSON.stringify(lines)).not.toMatch(/stack|\.ts/)
  }

  test('when no worker takes the run', async () => {
    const service = await installation({ workers: 'none', applyWaitMs: 2_000 })
    const { lines } = await submit(service, await named('radius', 'waiting'))
    const { id } = await runOf(service, 'waiting')
    const detail = 'Not applied: no worker has ever taken a job: start one. Nothing was changed; try again shortly.'
    expectOneLine(lines, { code: 'cancelled', run: id, title: 'apply radius waiting', detail })
  })

  test('when the queue is away', async () => {
    const service = await installation({ workers: 'none' })
    await service.queue.close()
    const { lines } = await submit(service, await named('radius', 'no-queue'))
    const { id } = await runOf(service, 'no-queue')
    expectOneLine(lines, {
      code: 'cancelled',
      run: id,
      title: 'apply radius no-queue',
      detail: expect.stringContaining('the queue does not answer: does its server run'),
      cause: expect.stringMatching(/./),
    })
  })

  test('when the database does not answer', async () => {
    const service = await installation({ workers: 'none' })
    await transaction(service.db, async (tx) => {
      await execute(tx, sql`LOCK TABLE providers IN ACCESS EXCLUSIVE MODE`)
      const { lines } = await submit(service, await named('radius', 'locked'))
      expectOneLine(lines, { code: 'unavailable', run: null, title: 'apply radius locked' })
    })
  })
})

describe('the line about an answer', () => {
  test('names the real user of an impersonation that is refused', async () => {
    const { token, username } = await there.make.user()
    const headers = { 'impersonate-user': 'admin', 'x-request-id': 'not-permitted' }
    expect(await there.as(token).get('/api/v3/core/users/me/', { headers })).toMatchObject({ status: 403 })
    expect(await linesOf(there, 'not-permitted')).toMatchObject([
      { user: username, real_user: null, code: 'permission_denied', status: 403 },
    ])
  })

  test('of a read while impersonating names both users, and the audit has the read', async () => {
    const { username, pk } = await there.make.user({ permissions: ['view_user'] })
    for (const key of ['/api/v3/core/users/me/', '/api/v3/core/users/']) {
      const requestId = `looked-through:${key}`
      const headers = { 'impersonate-user': username, 'x-request-id': requestId }
      const query = key.endsWith('me/') ? '' : '?search=a&page_size=1000'
      expect(await there.admin.get(`${key}${query}`, { headers })).toMatchObject({ status: 200 })
      expect(await linesOf(there, requestId)).toMatchObject([{ user: username, real_user: 'admin', code: null }])
      expect(await there.db.auditRow.findMany({ where: { requestId } })).toMatchObject([
        {
          ...{ actorPk: pk, actorName: username, realName: 'admin', action: 'read' },
          changes: [{ model: 'path', key, action: 'read', fields: [] }],
        },
      ])
    }
  })

  test('reads are not audited otherwise, and refused ones never', async () => {
    const { token, username } = await there.make.user()
    const before = await there.db.auditRow.count()
    expect(await there.as(token).get('/api/v3/core/users/me/')).toMatchObject({ status: 200 })
    const headers = { 'impersonate-user': username }
    expect(await there.admin.get('/api/v3/core/users/', { headers })).toMatchObject({ status: 403 })
    expect(await there.db.auditRow.count()).toBe(before)
  })
})
