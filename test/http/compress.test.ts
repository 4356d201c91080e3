import { once } from 'node:events'
import { request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import Fastify from 'fastify'
import { describe, expect, test } from 'vitest'
import { compressAnswers } from '../../src/http/compress.ts'
import { adminToken, installation, named } from '../support/kit.ts'
import { readDescription } from '../support/openapi.ts'

/** Answers are compressed for clients that take it, and never one that may show a secret. */

const there = await installation()
for (let number = 0; number < 5; number += 1) await there.make.user()
await there.app.listen({ port: 0, host: '127.0.0.1' })

type Raw = { status: number; headers: Record<string, string | string[] | undefined>; body: Buffer }

/** The body as it came: `fetch` would decompress it. */
async function get(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Raw> {
  const { port } = there.app.server.address() as AddressInfo
  const sent = request({
    port,
    host: '127.0.0.1',
    path,
    method,
    headers: { authorization: `Bearer ${adminToken}`, ...headers },
  })
  sent.end()
  const [answer] = await once(sent, 'response')
  const chunks: Buffer[] = []
  for await (const chunk of answer) chunks.push(chunk)
  return { status: answer.statusCode, headers: answer.headers, body: Buffer.concat(chunks) }
}

const decoders = { gzip: gunzipSync, br: brotliDecompressSync } as const
const schema = '/api/v3/schema/'

describe.each(['gzip', 'br'] as const)('%s', (encoding) => {
  test.each([schema, '/docs/swagger-ui-bundle.js', '/api/v3/core/users/', '/-/metrics/'])('%s', async (path) => {
    const plain = await get(path)
    expect(plain.headers['content-encoding']).toBeUndefined()
    const packed = await get(path, { 'accept-encoding': encoding })
    expect(packed.headers).toMatchObject({
      'content-encoding': encoding,
      vary: expect.stringMatching(/accept-encoding/i),
    })
    expect(packed.body.length).toBeLessThan(plain.body.length / 2)
    // Each scrape counts itself.
    if (path !== '/-/metrics/') expect(decoders[encoding](packed.body)).toEqual(plain.body)
    expect(packed.headers.etag).toBe(plain.headers.etag)
  })
})

test.each(['br', 'gzip', 'identity'])(
  'a text that is the same for all is sent from one buffer: %s',
  async (encoding) => {
    const app = Fastify()
    compressAnswers(app)
    const sent: unknown[] = []
    const capture = async (_: unknown, __: unknown, payload: unknown) => sent.push(payload) && payload
    const config = { permission: 'anyone', constant: true } as const
    app.get('/constant', { config, onSend: [capture] }, async (_, reply) =>
      reply.header('etag', '"one"').send('x'.repeat(5_000)),
    )
    app.get('/other', { config, onSend: [capture] }, async (_, reply) =>
      reply.header('etag', '"two"').send('y'.repeat(5_000)),
    )
    const ask = (url: string) => app.inject({ url, headers: { 'accept-encoding': encoding } })
    const answers = await Promise.all([ask('/constant'), ask('/constant')])
    answers.push(await ask('/constant'))
    expect(new Set(sent).size).toBe(1)
    for (const { rawPayload, headers } of answers) {
      expect(headers.vary).toBe('Accept-Encoding')
      const decode = encoding === 'identity' ? Buffer.from : decoders[encoding as 'br' | 'gzip']
      expect(decode(rawPayload).toString()).toBe('x'.repeat(5_000))
    }
    await ask('/other')
    expect(new Set(sent).size).toBe(2)
  },
)

test('an error is none of the texts that are kept', async () => {
  for (const name of ['x', 'y']) {
    const { status, headers, body } = await get(`${schema}?${name.repeat(2_000)}=1`, { 'accept-encoding': 'br' })
    expect([status, headers['content-encoding']]).toEqual([400, undefined])
    expect(body.toString()).toContain(name.repeat(100))
  }
})

test('the weights of a client choose the encoding', async () => {
  const encodingOf = async (accepted: string) =>
    (await get(schema, { 'accept-encoding': accepted })).headers['content-encoding']
  expect(await encodingOf('gzip, br;q=0.5')).toBe('gzip')
  expect(await encodingOf('br;q=0, gzip;q=0.1')).toBe('gzip')
  expect(await encodingOf('br;q=0')).toBeUndefined()
})

test('br goes before gzip, and a short answer or one for a client that takes neither stays as it is', async () => {
  expect((await get(schema, { 'accept-encoding': 'gzip, br' })).headers['content-encoding']).toBe('br')
  expect((await get(schema, { 'accept-encoding': 'deflate, identity' })).headers['content-encoding']).toBeUndefined()
  expect((await get('/-/health/live/', { 'accept-encoding': 'gzip' })).headers['content-encoding']).toBeUndefined()
  expect((await get(schema, { 'accept-encoding': 'gzip' }, 'HEAD')).body.length).toBe(0)
})

test('a list that is streamed is compressed while it is sent', async () => {
  const attributes = { note: 'x'.repeat(20_000) }
  for (let number = 0; number < 120; number += 1)
    await there.db.group.create({ data: { pk: crypto.randomUUID(), name: `long ${number}`, attributes } })
  const path = '/api/v3/core/groups/?page_size=1000'
  const [plain, packed] = [await get(path), await get(path, { 'accept-encoding': 'gzip' })]
  expect(plain.headers).toMatchObject({ 'transfer-encoding': 'chunked' })
  expect(packed.headers).toMatchObject({ 'content-encoding': 'gzip', 'transfer-encoding': 'chunked' })
  expect(gunzipSync(packed.body)).toEqual(plain.body)
  expect(packed.body.length).toBeLessThan(plain.body.length / 10)
})

test('an object that a client has is a 304 in either form', async () => {
  const { headers } = await get(schema, { 'accept-encoding': 'gzip' })
  const again = await get(schema, { 'accept-encoding': 'gzip', 'if-none-match': String(headers.etag) })
  expect([again.status, again.body.length, again.headers.vary]).toEqual([304, 0, headers.vary])
})

test('no answer that may show a secret', async () => {
  const { document } = await readDescription(there.app)
  const shows = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations as Record<string, { responses: Record<string, unknown> }>).flatMap(
      ([method, operation]) => {
        const text = JSON.stringify(operation.responses['200'] ?? operation.responses['201'] ?? {})
        return /schemas\/(Run|TokenKey)"/.test(text) ? [`${method} ${path}`] : []
      },
    ),
  )
  expect(shows).toEqual([
    'get /api/v3/blueprints/runs/{id}/',
    'post /api/v3/blueprints/runs/{id}/cancel/',
    'get /api/v3/core/tokens/{identifier}/view_key/',
  ])
  // Those are the schemas with a secret: no other has one.
  const withSecrets = Object.entries(document.components.schemas).flatMap(([name, { properties }]) =>
    'generated' in Object(properties) || name === 'TokenKey' ? [name] : [],
  )
  expect(withSecrets).toEqual(['Run', 'TokenKey'])
  const body = await named('oauth2', 'packed', { provider: { client_secret: undefined, client_id: undefined } })
  const applied = await there.admin.put('/api/v3/core/transactional/applications/', body)
  const run = await get(applied.run, { 'accept-encoding': 'gzip, br' })
  expect(run.body.length).toBeGreaterThan(1_024)
  expect(run.headers['content-encoding']).toBeUndefined()
  expect(JSON.parse(run.body.toString()).generated).not.toEqual({})
})
