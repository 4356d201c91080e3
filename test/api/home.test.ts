import { describe, expect, test } from 'vitest'
import { contentPolicy } from '../support/content-policy.ts'
import { applied, applyPath, installation } from '../support/kit.ts'

const service = await installation()

const chromium = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8'
const get = (url: string, headers: Record<string, string> = {}) => service.app.inject({ url, headers })
const page = (url: string, headers: Record<string, string> = {}) => get(url, { accept: chromium, ...headers })

describe('/', () => {
  test('programs get the addresses as JSON, without a token', async () => {
    const { statusCode, headers, body } = await get('/', { accept: '*/*' })
    expect([statusCode, headers['content-type']]).toEqual([200, 'application/json; charset=utf-8'])
    const { name, description, ...addresses } = JSON.parse(body)
    expect([name, description]).toEqual(['Gatewright', expect.stringContaining('in one call')])
    expect(Object.keys(addresses)).toEqual(['docs', 'schema', 'dashboard', 'health'])
    for (const address of Object.values<string>(addresses))
      expect.soft((await get(address)).statusCode, address).not.toBe(404)
  })

  test('browsers get a page, without a script and without a version', async () => {
    const { statusCode, headers, body } = await page('/')
    expect([statusCode, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
    expect(headers).toMatchObject({ vary: 'Accept', 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' })
    expect(contentPolicy(headers['content-security-policy'])).toEqual({
      'default-src': ["'none'"],
      'style-src': [expect.stringMatching(/^'sha256-/)],
      'img-src': ["'self'"],
      'base-uri': ["'none'"],
      'form-action': ["'none'"],
      'frame-ancestors': ["'none'"],
    })
    expect(body).not.toMatch(/<script|\d+\.\d+\.\d+(?!\.)/)
  })

  test('every link of the page leads to something', async () => {
    const links = [...(await page('/')).body.matchAll(/href="([^"]+)"/g)].map(([, href = '']) => href)
    expect(links).toEqual(['/favicon.svg', '/docs/', '/api/v3/schema/', '/admin/', '/-/health/ready/'])
    for (const link of links) expect.soft((await page(link)).statusCode, link).not.toBe(404)
  })

  test('its first call is one that is applied', async () => {
    const [, body = ''] = /-d &#39;(.*?)&#39;<\/code>/s.exec((await page('/')).body) ?? []
    await applied(service.admin.put(applyPath, body.replaceAll('&quot;', '"')))
  })

  test.each([
    [{ host: 'gatewright.test:9000' }, 'http://gatewright.test:9000/'],
    [{ host: '[::1]:9000' }, 'http://[::1]:9000/'],
    [{ host: 'gatewright.test', 'x-forwarded-proto': 'https' }, 'https://gatewright.test/'],
    [{ host: 'x"$(id)<b>' }, '&lt;ADDRESS&gt;/'],
    [{ host: "x';id;'" }, '&lt;ADDRESS&gt;/'],
  ])('its first call goes to the address of the page: %j', async (headers: Record<string, string>, origin) => {
    expect((await page('/', headers)).body).toContain(`curl -i -X PUT \\\n  ${origin}api/v3/core/`)
  })
})

describe('an address that does not exist', () => {
  test.each(['/nothing/', '/nothing?x=<script>', '/-/nothing/', '/docs/nothing', '/apiary'])(
    '%s is a page for browsers, and JSON for programs',
    async (url) => {
      const { statusCode, headers, body } = await page(url)
      expect([statusCode, headers['content-type']]).toEqual([404, 'text/html; charset=utf-8'])
      expect(headers).toMatchObject({ vary: 'Accept', 'x-content-type-options': 'nosniff' })
      expect(contentPolicy(headers['content-security-policy'])).not.toHaveProperty('script-src')
      expect([...body.matchAll(/<a [^>]*href="([^"]+)"/g)].map(([, href]) => href)).toEqual(['/', '/docs/'])
      expect(body).not.toContain('nothing?')
      for (const accept of ['*/*', 'application/json', 'text/html;q=0.5, application/json', 'text/html;q=0'])
        expect.soft((await get(url, { accept })).json(), accept).toEqual({
          detail: 'There is nothing here.',
          code: 'not_found',
        })
    },
  )

  test.each(['/api', '/api/', '/api/v3/nothing/', '/api?x', '/API/v3/'])('%s is JSON for all', async (url) => {
    const answer = await page(url)
    expect([answer.statusCode, answer.json().code]).toEqual([404, 'not_found'])
  })

  test('a request that changes something gets JSON', async () => {
    const answer = await service.app.inject({ method: 'POST', url: '/nothing/', headers: { accept: chromium } })
    expect([answer.statusCode, answer.json().code]).toEqual([404, 'not_found'])
  })
})

test.each(['/favicon.svg', '/favicon.ico'])('%s is the icon', async (url) => {
  const { statusCode, headers, body } = await get(url)
  expect([statusCode, headers['content-type']]).toEqual([200, 'image/svg+xml'])
  expect(body).toMatch(/^<svg /)
})
