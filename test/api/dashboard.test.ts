import type { InjectOptions } from 'fastify'
import { describe, expect, test } from 'vitest'
import { acts } from '../../src/dashboard/acts.ts'
import { isServed, openBoard } from '../../src/dashboard/board/board.ts'
import type { Prisma } from '../../src/db/generated/client.ts'
import { contentPolicy } from '../support/content-policy.ts'
import { applyPath, dashboardOf, example, form, host, installation, login, type Made, origin } from '../support/kit.ts'

const pages = [
  '/admin/',
  '/admin/workers/',
  '/admin/refusals/',
  '/admin/search/',
  '/admin/pause/',
  '/admin/queues/',
  '/admin/times/',
  '/admin/logout/',
]
const act = (name: keyof typeof acts) => `/admin/${name}/`

const service = await installation()
const dashboard = dashboardOf(service)
const viewer = await service.make.user({ permissions: ['view_queue'] })
const manager = await service.make.user({ permissions: ['view_queue', 'manage_queue'] })
await service.admin.put(applyPath, await example('oauth2'))
const filled = (route: string) =>
  `/admin/queues${route.replace(':queueName', 'apply').replace(':queueStatus', 'completed').replace(/:\w+/g, 'run-x-1')}`
/** Every call of the board and every act, with values for its parameters. */
const calls: { method: 'get' | 'post' | 'put' | 'patch'; url: string; served: boolean }[] = openBoard().routes.flatMap(
  (each) =>
    [each.route]
      .flat()
      .flatMap((path) => [each.method].flat().map((method) => ({ method, url: filled(path), served: isServed(each) }))),
)

const send = (request: InjectOptions) => dashboard.send(request)
const logIn = (token: string, headers?: Record<string, string>) => dashboard.logIn(token, headers)
const session = (token: string) => dashboard.session(token)

const changes = () => [
  ...calls.filter(({ method }) => method !== 'get'),
  ...Object.keys(acts).map((name) => ({ method: 'post' as const, url: `/admin/${name}/`, served: true })),
]

describe('without a session', () => {
  test("pages and files lead to the login and back, the board's own calls are 401", async () => {
    for (const url of [
      '/admin/runs/?period=day',
      '/admin/workers/',
      '/admin/pause/',
      '/admin/queues',
      '/admin/queues/',
      '/admin/queues/queue/apply',
      '/admin/queues/queue/apply/1',
      '/admin/queues/job-schedulers',
      '/admin/queues/static/images/logo.svg',
      '/admin/runs/01a1fd79-0573-7eeb-91d6-996288491dcb/',
    ]) {
      const { statusCode, headers, body } = await send({ method: 'GET', url })
      const to = `${login}?next=${encodeURIComponent(url)}`
      // `/admin/queues` is below `/admin/`, too.
      expect([url, statusCode, headers.location, body]).toEqual([url, 303, to, ''])
    }
    for (const url of ['/admin', '/admin/', '/admin/logout/'])
      expect([url, (await send({ method: 'GET', url })).headers.location]).toEqual([url, login])
    expect(calls.length).toBeGreaterThan(30)
    for (const { method, url } of calls) {
      const { statusCode, body } = await send({ method, url, headers: { origin } })
      expect([method, url, statusCode]).toEqual([method, url, 401])
      expect(JSON.parse(body)).toMatchObject({ code: 'not_authenticated' })
    }
  })

  test('a bearer token is no session', async () => {
    const { statusCode } = await send({
      method: 'GET',
      url: '/admin/queues/api/queues',
      headers: { authorization: `Bearer ${manager.token}` },
    })
    expect(statusCode).toBe(401)
  })
})

test('a job id or a queue with NUL, or one that is not there, is 404', async () => {
  const cookie = await session(viewer.token)
  const paths = calls
    .filter(({ method, served }) => method === 'get' && served)
    .flatMap(({ url }) =>
      ['%00', 'run-x-1%00', 'a%00b', '%00'.repeat(50)].flatMap((id) =>
        ['run-x-1', 'apply'].flatMap((part) => (url.includes(part) ? [url.replace(part, id)] : [])),
      ),
    )
  expect(paths.length).toBeGreaterThan(20)
  for (const url of paths) {
    const { statusCode } = await send({ method: 'GET', url, headers: { cookie } })
    expect([url, statusCode]).toEqual([url, 404])
  }
  for (const query of [
    'activeQueue=%00',
    'activeQueue=apply&status=%00',
    'activeQueue=apply&page=%00',
    'activeQueue=apply&status=nonsense',
    'activeQueue=%25',
  ]) {
    const url = `/admin/queues/api/queues?${query}`
    const { statusCode } = await send({ method: 'GET', url, headers: { cookie } })
    expect([url, statusCode < 500]).toEqual([url, true])
  }
  for (const url of ['/admin/queues/static/%00', '/admin/runs/%00/', '/admin/queues/api/%00']) {
    const { statusCode } = await send({ method: 'GET', url, headers: { cookie } })
    expect([url, statusCode]).toEqual([url, 404])
  }
  const absent = await send({ method: 'GET', url: '/admin/queues/api/queues/apply/run-x-1', headers: { cookie } })
  expect(absent.statusCode).toBe(404)
})

describe('logging in', () => {
  test.each([
    ['unknown', 'gw_a_unknown'],
    ['empty', ''],
    ['too long', 'x'.repeat(600)],
  ])('with an %s token: 401 and no cookie', async (_, token) => {
    const { statusCode, headers, body } = await logIn(token)
    expect([statusCode, headers['set-cookie']]).toEqual([401, undefined])
    expect(body).toContain('This access token is not valid.')
    if (token !== '') expect(body).not.toContain(token)
  })

  test('with the token of a user who may not view the queue: 403 and no cookie', async () => {
    const other = await service.make.user({ permissions: ['view_application'] })
    const { statusCode, headers } = await logIn(other.token)
    expect([statusCode, headers['set-cookie']]).toEqual([403, undefined])
  })

  test.each<Record<string, string>>([{}, { origin: 'https://evil.example.com' }, { origin: 'null' }])(
    'from another origin or none: 403, %o',
    async (headers) => {
      const answer = await logIn(viewer.token, headers)
      expect([answer.statusCode, answer.headers['set-cookie']]).toEqual([403, undefined])
    },
  )

  test('if the browser uses TLS, the cookie is for TLS only', async () => {
    const plain = await logIn(viewer.token)
    expect(plain.headers['set-cookie']).toMatch(
      /^gatewright_admin=[\w.+/-]+; Max-Age=28800; Path=\/admin; HttpOnly; SameSite=Lax$/,
    )
    const tls = await logIn(viewer.token, { origin: `https://${host}` })
    expect(tls.headers['set-cookie']).toMatch(/; Secure; SameSite=Lax$/)
  })

  test('a large body is 413, another media type 415', async () => {
    const large = await send({
      method: 'POST',
      url: login,
      headers: { origin, 'content-type': form },
      payload: 'x'.repeat(5_000),
    })
    expect(large.statusCode).toBe(413)
    const text = await send({
      method: 'POST',
      url: login,
      headers: { origin, 'content-type': 'text/plain' },
      payload: 'x',
    })
    expect(text.statusCode).toBe(415)
  })
})

describe('acting', () => {
  test('is refused to a user who may only view, call by call', async () => {
    const cookie = await session(viewer.token)
    expect(changes().length).toBeGreaterThan(20)
    for (const { method, url } of changes()) {
      const { statusCode, body } = await send({ method, url, headers: { origin, cookie } })
      expect([method, url, statusCode]).toEqual([method, url, 403])
      expect(JSON.parse(body)).toMatchObject({
        code: 'permission_denied',
        detail: 'You lack the permission manage_queue.',
      })
    }
  })

  test('is refused without an origin and from others, call by call', async () => {
    const cookie = await session(manager.token)
    for (const { method, url } of [...changes(), { method: 'post' as const, url: '/admin/logout/' }]) {
      for (const from of [{}, { origin: 'https://evil.example.com' }, { origin: 'null' }]) {
        const { statusCode } = await send({ method, url, headers: { cookie, ...from } })
        expect([method, url, from, statusCode]).toEqual([method, url, from, 403])
      }
    }
    expect(await service.queue.getJobCounts('completed')).toEqual({ completed: 1 })
  })

  test('what has no purpose here is not served, call by call', async () => {
    const cookie = await session(manager.token)
    const others = calls.filter(({ served, url }) => !served && url.includes('/api/queues'))
    expect(others.map(({ url }) => url).join()).toMatch(/add.*retry.*promote.*concurrency.*rate-limit.*obliterate/)
    const before = await service.queue.getJobCounts()
    for (const { method, url } of others) {
      const { statusCode, body } = await send({ method, url, headers: { origin, cookie } })
      expect([method, url, statusCode]).toEqual([method, url, 404])
      if (method !== 'get') expect(JSON.parse(body)).toMatchObject({ code: 'not_found' })
    }
    expect(await service.queue.getJobCounts()).toEqual(before)
    expect(await service.queue.isPaused()).toBe(false)
  })

  test('ends with the permission', async () => {
    const demoted = await service.make.user({ permissions: ['view_queue', 'manage_queue'] })
    const cookie = await session(demoted.token)
    const view = () => send({ method: 'GET', url: '/admin/queues/api/queues', headers: { cookie } })
    const act = () => send({ method: 'POST', url: '/admin/resume/', headers: { origin, cookie } })
    expect((await act()).statusCode).toBe(303)
    expect((await view()).json()).toMatchObject({ queues: [{ name: 'apply', readOnlyMode: true }] })
    const [role] = await service.db.groupRole.findMany({ where: { groupPk: demoted.group } })
    await service.db.role.update({ where: { pk: role?.rolePk ?? '' }, data: { permissions: ['view_queue'] } })
    expect((await act()).statusCode).toBe(403)
    expect((await view()).json()).toMatchObject({ queues: [{ name: 'apply', readOnlyMode: true }] })
    await service.db.role.update({ where: { pk: role?.rolePk ?? '' }, data: { permissions: [] } })
    expect((await view()).statusCode).toBe(401)
  })
})

describe('a session ends at its next request when the token it was made with', () => {
  const token = () => service.db.token
  const user = () => service.db.user
  const changed = (data: Prisma.TokenUpdateInput) => (where: { pk: string }) => token().update({ where, data })

  test.each<[string, (where: { pk: string }, owner: Made) => Promise<unknown>]>([
    ['is deleted', (where) => token().delete({ where })],
    ['expires', changed({ expiring: true, expires: new Date(Date.now() - 1_000) })],
    ['becomes one for another purpose', changed({ intent: 'app_password' })],
    ['belongs to an inactive user', (_, { pk }) => user().update({ where: { pk }, data: { isActive: false } })],
  ])('%s', async (_, end) => {
    const owner = await service.make.user({ permissions: ['view_queue', 'manage_queue'] })
    const { pk } = await token().findFirstOrThrow({ where: { userPk: owner.pk } })
    const cookie = await session(owner.token)
    const ask = (url: string, method: 'GET' | 'POST' = 'GET') => send({ method, url, headers: { origin, cookie } })
    expect((await ask('/admin/queues/api/queues')).statusCode).toBe(200)
    await end({ pk }, owner)
    expect((await ask('/admin/queues/api/queues')).statusCode).toBe(401)
    expect((await ask(act('pause'), 'POST')).headers.location).toBe(login)
    expect(await service.queue.isPaused()).toBe(false)
    for (const url of ['/admin/', '/admin/logout/'])
      expect([url, (await ask(url)).headers.location]).toEqual([url, login])
    // Otherwise login and queue would redirect to each other for ever.
    expect((await ask(login)).statusCode).toBe(200)
  })

  test('is deleted, and no other session of the same user', async () => {
    const owner = await service.make.user({ permissions: ['view_queue'] })
    const { pk } = await token().findFirstOrThrow({ where: { userPk: owner.pk } })
    const [first, second] = [await session(owner.token), await session(await service.make.token(owner.pk))]
    await token().delete({ where: { pk } })
    const view = async (cookie: string) =>
      (await send({ method: 'GET', url: '/admin/queues/api/queues', headers: { cookie } })).statusCode
    expect([await view(first), await view(second)]).toEqual([401, 200])
  })
})

describe('every answer', () => {
  test('forbids frames, other hosts, sniffing and caching', async () => {
    const cookie = await session(manager.token)
    for (const url of [login, ...pages, '/admin/queues/api/queues']) {
      const { statusCode, headers } = await send({ method: 'GET', url, headers: url === login ? {} : { cookie } })
      expect([url, statusCode]).toEqual([url, 200])
      expect(headers).toMatchObject({
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'same-origin',
      })
      const policy = contentPolicy(headers['content-security-policy'])
      expect(policy, url).toMatchObject({ 'default-src': ["'none'"], 'frame-ancestors': ["'none'"] })
      // JSON loads nothing, a page only files of this host.
      const isPage = headers['content-type']?.toString().startsWith('text/html')
      expect(policy['script-src'], url).toEqual(isPage ? ["'self'"] : undefined)
      const isOurs = isPage && !url.startsWith('/admin/queues')
      if (isOurs) expect(policy['style-src'], url).toEqual(["'self'"])
      expect(Object.values(policy).flat().join(' '), url).toMatch(/^('none'|'self'|'sha256-[\w+/=]+'| )+$/)
    }
  })

  test('is the requested file, and only one of the board', async () => {
    const cookie = await session(viewer.token)
    const get = (url: string) => send({ method: 'GET', url, headers: { cookie } })
    const [script] = /static\/js\/main\.\w+\.js/.exec((await get('/admin/queues/')).body) ?? []
    const { statusCode, headers } = await get(`/admin/queues/${script}`)
    expect([statusCode, headers['content-type']]).toEqual([200, 'text/javascript; charset=utf-8'])
    expect(headers['cache-control']).toContain('immutable')
    for (const path of ['../index.ejs', '..%2findex.ejs', '%2e%2e/package.json', 'js', 'nothing.js', '__proto__']) {
      expect([path, (await get(`/admin/queues/static/${path}`)).statusCode]).toEqual([path, 404])
    }
  })

  test('holds at most a hundred jobs', async () => {
    const cookie = await session(viewer.token)
    const ask = (jobs: string) =>
      send({
        method: 'GET',
        url: `/admin/queues/api/queues?activeQueue=apply&jobsPerPage=${jobs}`,
        headers: { cookie },
      })
    expect((await ask('100')).statusCode).toBe(200)
    expect((await ask('101')).statusCode).toBe(400)
    expect((await ask('many')).statusCode).toBe(400)
  })
})
