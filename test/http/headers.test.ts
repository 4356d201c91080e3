import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { beforeAll, expect, test } from 'vitest'
import { applyPath } from '../support/asker.ts'
import { contentPolicy } from '../support/content-policy.ts'
import { type Installation, installation } from '../support/installation.ts'

let service: Installation

beforeAll(async () => {
  service = await installation({ workers: 'none' })
})

test.each([
  ['GET', '/api/v3/core/users/', 200],
  ['GET', '/api/v3/core/users/?pgae=1', 400],
  ['GET', '/api/v3/core/users/?page=9000', 404],
  ['PUT', applyPath, 400],
  ['DELETE', applyPath, 405],
  ['GET', '/nothing/', 404],
  ['GET', '/api/v3/schema/', 200],
  ['GET', '/', 200],
  ['GET', '/favicon.ico', 200],
  ['GET', '/docs/', 200],
  ['GET', '/docs/icon.svg', 200],
  ['GET', '/-/health/live/', 200],
  ['GET', '/-/metrics/', 200],
  ['GET', '/admin/queues/login/', 200],
  ['GET', '/admin/queues/', 303],
  ['GET', '/admin/queues/api/queues', 401],
  ['PUT', '/admin/queues/api/queues/pause', 403],
] as const)('%s %s (%i) is not sniffed, framed or linked to other hosts', async (method, url, status) => {
  const answer = await service.admin.send({ method, url, ...(method === 'PUT' && { payload: {} }) })
  expect(answer.status, answer.text).toBe(status)
  expectSecure(answer.headers)
})

test('so is an answer to a request without a token', async () => {
  const answer = await service.as('gw_a_wrong').get('/api/v3/core/users/')
  expect(answer.status).toBe(401)
  expectSecure(answer.headers)
})

test('so is an answer to what is not HTTP', async () => {
  const origin = new URL(await service.app.listen({ port: 0, host: '127.0.0.1' }))
  const socket = connect(Number(origin.port), origin.hostname)
  socket.end('nonsense\r\n\r\n')
  const [head = ''] = (await text(socket)).split('\r\n\r\n')
  const [status, ...lines] = head.split('\r\n')
  expect(status).toBe('HTTP/1.1 400 Bad Request')
  expectSecure(
    Object.fromEntries(lines.map((line) => [line.split(': ')[0]?.toLowerCase(), line.replace(/^.*?: /, '')])),
  )
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
