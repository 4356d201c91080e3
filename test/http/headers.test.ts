import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { contentPolicy } from '../support/content-policy.ts'
import { answered, applyPath, installation } from '../support/kit.ts'

const service = await installation({ workers: 'none' })

test.each([
  ['GET', '/api/v3/core/users/', 200],
  ['GET', '/api/v3/core/users/?pgae=1', 400],
  ['GET', '/api/v3/core/users/?page=9000', 404],
  ['PUT', applyPath, 400],
  ['DELETE', applyPath, 405],
  ['GET', '/api/v3/auth/token/', 200],
  ['POST', '/api/v3/auth/token/', 400],
  ['GET', '/api/v3/rbac/trustedissuers/', 200],
  ['GET', '/nothing/', 404],
  ['GET', '/api/v3/schema/', 200],
  ['GET', '/', 200],
  ['GET', '/favicon.ico', 200],
  ['GET', '/docs/', 200],
  ['GET', '/docs/icon.svg', 200],
  ['GET', '/-/health/live/', 200],
  ['GET', '/-/metrics/', 200],
  ['GET', '/admin/login/', 200],
  ['GET', '/admin/', 303],
  ['GET', '/admin/queues/', 303],
  ['GET', '/admin/queues/api/queues', 401],
  ['PUT', '/admin/queues/api/queues/pause', 403],
] as const)('%s %s (%i) is not sniffed, framed or linked to other hosts', async (method, url, status) => {
  const answer = await answered(status, service.admin.send({ method, url, ...(method === 'PUT' && { payload: {} }) }))
  expectSecure(answer.headers)
})

test('so is an answer to a request without a token', async () => {
  const answer = await answered(401, service.as('gw_a_wrong').get('/api/v3/core/users/'))
  expectSecure(answer.headers)
})

test('so is an answer to what is not HTTP', async () => {
  const origin = new URL(await service.app.listen({ port: 0, host: '127.0.0.1' }))
  const socket = connect(Number(origin.port), origin.hostname)
  socket.end('nonsense\r\n\r\n')
  const [head = ''] = (await text(socket)).split('\r\n\r\n')
  const [status, ...lines] = head.split('\r\n')
  expect(status).toBe('HTTP/1.1 400 Bad Request')
  const headers = Object.fromEntries(
    lines.map((line) => [line.split(': ')[0]?.toLowerCase(), line.replace(/^.*?: /, '')]),
  )
  expectSecure(headers)
  expect(headers).toMatchObject({ 'cache-control': 'no-store' })
})

test('only files and objects with an entity tag are kept by a cache', async () => {
  const { pk } = await service.make.group({ name: 'cached' })
  const queryOf = (method: string) => ({ method, ...(method === 'PUT' && { payload: {} }) })
  for (const [method, url, status, caching] of [
    ['GET', '/api/v3/core/users/me/', 200, 'no-store'],
    ['HEAD', '/api/v3/core/users/me/', 200, 'no-store'],
    ['GET', '/api/v3/core/users/', 200, 'no-store'],
    ['GET', '/api/v3/core/groups/?name=cached', 200, 'no-store'],
    ['GET', '/api/v3/core/groups/?pgae=1', 400, 'no-store'],
    ['PATCH', `/api/v3/core/groups/${pk}/`, 400, 'no-store'],
    ['GET', '/api/v3/core/tokens/not-there/', 404, 'no-store'],
    ['GET', '/api/v3/blueprints/runs/', 200, 'no-store'],
    ['PUT', applyPath, 400, 'no-store'],
    ['DELETE', applyPath, 405, 'no-store'],
    ['GET', '/api/v3/auth/token/', 200, 'no-store'],
    ['POST', '/api/v3/auth/token/', 400, 'no-store'],
    ['GET', '/api/v3/rbac/trustedissuers/not-there/', 404, 'no-store'],
    ['GET', '/%', 400, 'no-store'],
    ['GET', '/api/v3/core/users/?search=%', 400, 'no-store'],
    ['GET', '/nothing/', 404, 'no-store'],
    ['GET', '/', 200, 'no-store'],
    ['GET', '/-/health/live/', 200, 'no-store'],
    ['GET', '/-/health/applies/', 503, 'no-store'],
    ['GET', '/-/metrics/', 200, 'no-store'],
    ['GET', '/admin/', 303, 'no-store'],
    ['GET', '/admin/queues/', 303, 'no-store'],
    ['GET', '/admin/login/', 200, 'no-store'],
    ['GET', '/admin/queues/api/queues', 401, 'no-store'],
    ['GET', '/api/v3/rbac/roles/Application%20deployer/', 200, 'private, no-cache'],
    ['GET', '/api/v3/rbac/roles/not-there/', 404, 'no-store'],
    ['GET', '/api/v3/schema/', 200, 'no-cache'],
    ['GET', '/api/v3/blueprints/schema/', 200, 'no-cache'],
    ['GET', '/docs/', 200, 'no-cache'],
    ['GET', '/docs/swagger-ui.css', 200, 'public, max-age=86400'],
    ['GET', '/favicon.ico', 200, 'public, max-age=86400'],
    ['GET', '/admin/icon.svg', 200, 'private, max-age=86400'],
  ] as const) {
    const answer = await service.admin.send({ url, ...queryOf(method) })
    expect([method, url, answer.status, answer.headers['cache-control']]).toEqual([method, url, status, caching])
  }
  const refused = await service.as('gw_a_wrong').get('/api/v3/rbac/roles/Application%20deployer/')
  expect([refused.status, refused.headers['cache-control']]).toEqual([401, 'no-store'])
})

test('JSON may load nothing at all', async () => {
  for (const url of ['/api/v3/core/users/', '/api/v3/schema/', '/-/health/live/', '/nothing/']) {
    const { headers } = await service.admin.get(url)
    expect(contentPolicy(headers['content-security-policy']), url).toEqual({
      'default-src': ["'none'"],
      'base-uri': ["'none'"],
      'form-action': ["'none'"],
      'frame-ancestors': ["'none'"],
    })
  }
})

function expectSecure(headers: Readonly<Record<string, string | undefined>>): void {
  expect(headers).toMatchObject({
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'same-origin',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
  })
  const policy = contentPolicy(headers['content-security-policy'])
  expect(policy).toMatchObject({ 'default-src': ["'none'"], 'frame-ancestors': ["'none'"] })
  expect(headers['content-security-policy']).not.toMatch(/unsafe|https?:|\*/)
  // The proxy decides whether a host is reached only by TLS.
  expect(headers).not.toHaveProperty('strict-transport-security')
}
