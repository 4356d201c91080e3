import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { loginFor, nextOf } from '../../src/dashboard/addresses.ts'
import { type Dashboard, dashboardOf, form, origin } from '../support/dashboard.ts'
import { type Installation, installation, type Made } from '../support/kit.ts'

/** Where a login leads. */

test.each([
  '/admin/',
  '/admin/workers/',
  '/admin/runs/01a1fd79-0573-7eeb-91d6-996288491dcb/',
  '/admin/queues/queue/apply?status=completed&page=2',
  '/admin/runs/?text=a%20b%2F%2Fc&object=application:shop',
])('leads back to %s', (path) => {
  expect(nextOf(path)).toBe(path)
})

test.each([
  ...[
    '',
    '/',
    '/admin',
    '/administrator/',
    '/api/v3/',
    'admin/',
    '//admin/',
    '//evil.example/admin/',
    '/\\evil.example',
  ],
  ...['https://evil.example/admin/', 'javascript:alert(1)', 'http:/admin/', '/admin/../', '/admin/..//evil.example'],
  ...['/admin/%2e%2e/%2e%2e/', '/admin/.%2e/api/', '/admin/\\..\\..\\', '/admin//evil.example/', '/admin/a//b'],
  ...['/admin/\t/evil', '/admin/\n', ' /admin/', '\u0000/admin/', '/admin/\u2028', '/admin/ä'],
  ...[
    '/admin/login/',
    '/admin/login',
    '/admin/login/?next=/admin/',
    '/admin/logout/',
    '/admin/changes/',
    `/admin/${'a'.repeat(2_000)}`,
  ],
])('does not follow %j', (path) => {
  expect(nextOf(path)).toBe('/admin/')
})

test('anything else than one text leads to the first page', () => {
  for (const sent of [undefined, null, ['/admin/workers/', '/admin/'], { 0: '/admin/' }, 1])
    expect(nextOf(sent)).toBe('/admin/')
})

test('whatever is sent, a browser stays below /admin/ of the same host', () => {
  const parts = fc.constantFrom(
    '/',
    '\\',
    '..',
    '.',
    '%2e',
    '%2f',
    '%5c',
    'admin',
    '@',
    ':',
    '?',
    '#',
    'evil.example',
    '\t',
    'a',
  )
  fc.assert(
    fc.property(fc.array(parts, { maxLength: 12 }), (tail) => {
      const { origin: to, pathname } = new URL(nextOf(`/admin/${tail.join('')}`), 'https://here.example/admin/login/')
      expect(to).toBe('https://here.example')
      expect(pathname).toMatch(/^\/admin\//)
    }),
  )
})

test('the login that leads back is an address of the login', () => {
  expect(loginFor('/admin/')).toBe('/admin/login/')
  expect(loginFor('/admin/workers/?a=b&c=d')).toBe('/admin/login/?next=%2Fadmin%2Fworkers%2F%3Fa%3Db%26c%3Dd')
})

describe('a login', () => {
  let service: Installation
  let dashboard: Dashboard
  let viewer: Made
  beforeAll(async () => {
    service = await installation({ workers: 'none' })
    dashboard = dashboardOf(service)
    viewer = await service.make.user({ permissions: ['view_queue'] })
  })
  const logIn = (url: string, token = viewer.token) =>
    dashboard.send({
      method: 'POST',
      url,
      headers: { origin, 'content-type': form },
      payload: new URLSearchParams({ access_token: token }).toString(),
    })
  const cookieOf = async () => dashboard.session(viewer.token)

  test('leads to the page that was asked for, also after a wrong token', async () => {
    const asked = await dashboard.send({ method: 'GET', url: '/admin/runs/?period=day' })
    const login = String(asked.headers.location)
    const wrong = await logIn(login, 'gw_a_wrong')
    expect(wrong.statusCode).toBe(401)
    const [, action = ''] = /<form method="post" action="([^"]+)"/.exec(wrong.body) ?? []
    expect(action).toBe(login)
    expect(await logIn(action)).toMatchObject({ statusCode: 303, headers: { location: '/admin/runs/?period=day' } })
  })

  test('leads to no other host, with a session or without', async () => {
    const cookie = await cookieOf()
    for (const next of ['//evil.example/', 'https://evil.example/', '/admin/../../', '/admin/login/']) {
      const url = `/admin/login/?next=${encodeURIComponent(next)}`
      expect((await logIn(url)).headers.location).toBe('/admin/')
      expect((await dashboard.send({ method: 'GET', url, headers: { cookie } })).headers.location).toBe('/admin/')
      expect((await dashboard.send({ method: 'GET', url })).body).not.toContain('evil.example')
    }
    expect((await logIn('/admin/login/?next=/admin/a&next=/admin/b')).headers.location).toBe('/admin/')
  })
})
