import { load } from 'js-yaml'
import { expect, test } from 'vitest'
import { contentPolicy } from '../support/content-policy.ts'
import { installation } from '../support/installation.ts'
import { readDescription, schemaPath } from '../support/openapi.ts'

const service = await installation({ workers: 'none' })

test('anyone may read it, and it does not show routes for operators', async () => {
  const { document } = await readDescription(service.app)
  const answer = await service.app.inject({ url: schemaPath })
  expect(answer.statusCode).toBe(200)
  expect(answer.headers['content-type']).toBe('application/json; charset=utf-8')
  expect(Object.keys(document.paths).filter((path) => !path.startsWith('/api/v3/'))).toEqual([])
})

test('the page loads nothing from other hosts', async () => {
  for (const path of ['/docs', '/docs/', '/docs/page.js', '/docs/swagger-ui.css', '/docs/swagger-ui-bundle.js']) {
    const { statusCode, headers, body } = await service.app.inject({ url: path })
    expect.soft(statusCode, path).toBe(200)
    const policy = String(headers['content-security-policy'])
    expect.soft(contentPolicy(policy), path).toMatchObject({ 'default-src': ["'none'"], 'script-src': ["'self'"] })
    expect.soft(policy, path).not.toMatch(/unsafe|https?:|\*/)
    if (!path.includes('swagger-ui')) expect.soft(body, path).not.toMatch(/https?:\/\//)
  }
  expect((await service.app.inject({ url: '/docs/../package.json' })).statusCode).toBe(404)
})

test('the description is YAML for those who ask for it, and says the same', async () => {
  const json = await service.app.inject({ url: schemaPath })
  for (const request of [
    { url: `${schemaPath}?format=yaml` },
    { url: schemaPath, headers: { accept: 'application/yaml, application/json;q=0.5' } },
  ]) {
    const { headers, body } = await service.app.inject(request)
    expect(headers).toMatchObject({
      'content-type': 'application/yaml; charset=utf-8',
      vary: 'Accept, Accept-Encoding',
    })
    expect(load(body)).toEqual(JSON.parse(json.body))
  }
  for (const accept of ['*/*', 'application/json, application/yaml'])
    expect((await service.app.inject({ url: schemaPath, headers: { accept } })).body).toBe(json.body)
  expect((await service.app.inject({ url: `${schemaPath}?format=toml` })).statusCode).toBe(400)
})

test.each([schemaPath, `${schemaPath}?format=yaml`, '/docs/', '/docs/page.js', '/docs/swagger-ui-bundle.js'])(
  '%s has an entity tag, by which a client need not get it again',
  async (url) => {
    const { headers } = await service.app.inject({ url })
    const again = await service.app.inject({ url, headers: { 'if-none-match': String(headers.etag) } })
    expect([again.statusCode, again.body, again.headers.etag]).toEqual([304, '', headers.etag])
  },
)
