import { beforeAll, expect, test } from 'vitest'
import { type Installation, installation } from '../support/installation.ts'
import { readDescription, schemaPath } from '../support/openapi.ts'

let service: Installation

beforeAll(async () => {
  service = await installation({ workers: 'none' })
})

test('who may read it: anyone, and it hides what is for operators', async () => {
  const { document } = await readDescription(service.app)
  const answer = await service.app.inject({ url: schemaPath })
  expect(answer.statusCode).toBe(200)
  expect(answer.headers['content-type']).toBe('application/json; charset=utf-8')
  expect(Object.keys(document.paths).filter((path) => !path.startsWith('/api/v3/'))).toEqual([])
})

test('the page for people takes nothing from elsewhere', async () => {
  for (const path of ['/docs', '/docs/', '/docs/page.js', '/docs/swagger-ui.css', '/docs/swagger-ui-bundle.js']) {
    const { statusCode, headers, body } = await service.app.inject({ url: path })
    expect.soft(statusCode, path).toBe(200)
    const policy = String(headers['content-security-policy'])
    expect.soft(policy, path).toMatch(/^default-src 'none'; /)
    expect.soft(policy, path).not.toMatch(/unsafe|https?:|\*/)
    if (!path.includes('swagger-ui')) expect.soft(body, path).not.toMatch(/https?:\/\//)
  }
  expect((await service.app.inject({ url: '/docs/../package.json' })).statusCode).toBe(404)
})
