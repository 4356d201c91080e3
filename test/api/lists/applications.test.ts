import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { applicationView } from '../../../src/views/application.ts'
import { type AskOptions, answered, applied, applyPath, example, installation, named } from '../../support/kit.ts'
import { column, type Listed, read, testPages, testRefusals, testStatements } from './listing.ts'

/** GET /api/v3/core/applications/, GET /api/v3/core/applications/{slug}/ */

const path = '/api/v3/core/applications/'
const applications: Listed = { path, by: () => on.admin, view: applicationView(new Map()).schema }

const on = await installation()
const apply = (name: string, app: Record<string, unknown>, options: AskOptions = {}) =>
  applied(on.admin.submit('radius', name, { ...options, app }))
await apply('wiki', { name: 'Wiki', group: 'Büro', meta_launch_url: 'https://wiki.example.com/?user=%(username)s' })
await apply('chat', { name: 'Chat', group: 'Büro' }, { owner: 'team-a' })
await apply('mail', { name: 'Mail 100%', group: '' }, { owner: 'team-b' })
await apply('cal', { name: 'Mail', group: '' })
const slugs = (parameters: Parameters<typeof read>[1]) => column(applications, 'slug', parameters)

describe('is narrowed by', () => {
  test.each<[Parameters<typeof read>[1], string[]]>([
    [{}, ['chat', 'cal', 'mail', 'wiki']],
    [{ name: 'Mail' }, ['cal']],
    [{ slug: 'wiki' }, ['wiki']],
    [{ group: 'Büro' }, ['chat', 'wiki']],
    [{ owner: 'team-a' }, ['chat']],
    [{ created_by: 1 }, ['chat', 'cal', 'mail', 'wiki']],
    [{ created_by: 2 }, []],
    [{ search: 'büro wik' }, ['wiki']],
    [{ search: '100%' }, ['mail']],
    [{ ordering: '-slug' }, ['wiki', 'mail', 'chat', 'cal']],
  ])('%j', async (parameters, expected) => {
    expect(await slugs(parameters)).toEqual(expected)
    expect((await read(applications, parameters)).pagination.count).toBe(expected.length)
  })

  test('the provider', async () => {
    const { providerPk } = await on.db.application.findUniqueOrThrow({ where: { slug: 'mail' } })
    expect(await slugs({ provider: providerPk ?? 0 })).toEqual(['mail'])
  })
})

describe('an application', () => {
  test('has every field that a PUT takes, its provider, and who made it', async () => {
    const { app } = await example('radius')
    const { json } = await on.admin.get(`${path}chat/`)
    const fields = [...(on.engine.registry.byName('service_core.application')?.fields.keys() ?? [])]
    expect(Object.keys(Object(json))).toEqual(expect.arrayContaining(fields))
    const { name, pk: provider } = await on.db.provider.findUniqueOrThrow({ where: { name: 'chat' } })
    expect(json).toMatchObject({
      ...{ ...app, name: 'Chat', slug: 'chat', group: 'Büro', provider, provider_obj: { name, pk: provider } },
      ...{ owner: 'team-a', created_by: 1, created_by_name: 'admin' },
    })
    expect((await read(applications, { slug: 'chat' })).results).toEqual([json])
  })

  test('has its launch URL for the caller', async () => {
    const reader = await on.make.user({ permissions: ['view_application'] })
    expect((await reader.get(`${path}wiki/`)).json).toMatchObject({
      launch_url: `https://wiki.example.com/?user=${reader.username}`,
      meta_launch_url: 'https://wiki.example.com/?user=%(username)s',
    })
  })

  test('shows the name of its maker only to callers with view_user', async () => {
    const shown = async (permissions: string[]) =>
      Object((await (await on.make.user({ permissions })).get(`${path}chat/`)).json)
    expect(await shown(['view_application'])).toMatchObject({ created_by: 1, created_by_name: null })
    expect(await shown(['view_application', 'view_user'])).toMatchObject({ created_by: 1, created_by_name: 'admin' })
  })

  test.each(['nothing', 'WIKI', 'a'.repeat(256), '%00', '*'])('%s is a 404', async (slug) => {
    expect(await on.admin.get(`${path}${slug}/`)).toMatchObject({ status: 404, json: { code: 'not_found' } })
  })

  test('takes no query', async () => {
    await answered(400, on.admin.get(`${path}wiki/?page=1`), { page: ['Unknown parameter.'] })
  })
})

describe('the ETag', () => {
  const tagOf = async (slug: string, as = on.admin) => (await as.get(`${path}${slug}/`)).headers.etag ?? ''
  const put = async (app: Record<string, unknown>) => {
    const body = await named('radius', 'tagged', { app })
    return (await on.admin.put(applyPath, body, { headers: { 'x-request-id': randomUUID() } })).json
  }

  test('stays after an apply that changes nothing, and changes with the object', async () => {
    await put({ group: 'A' })
    const before = await tagOf('tagged')
    expect(before).toMatch(/^"[\w-]{43}"$/)
    expect(await put({ group: 'A' })).toMatchObject({
      logs: expect.arrayContaining([expect.stringContaining('unchanged')]),
    })
    expect(await tagOf('tagged')).toBe(before)
    await put({ group: 'B' })
    const changed = await tagOf('tagged')
    expect(changed).not.toBe(before)
    await put({ group: 'A' })
    expect(await tagOf('tagged')).toBe(before)
  })

  test('is the same in another process, and another for a caller who sees something else', async () => {
    const reader = await on.make.user({ permissions: ['view_application'] })
    expect(await tagOf('chat', reader)).not.toBe(await tagOf('chat'))
    const { text, headers } = await on.admin.get(`${path}chat/`)
    const digest = Buffer.from(await crypto.subtle.digest('SHA-256', Buffer.from(text))).toString('base64url')
    expect(headers.etag).toBe(`"${digest}"`)
  })

  test('says who may keep the answer', async () => {
    const { headers } = await on.admin.get(`${path}chat/`)
    expect(headers).toMatchObject({
      'cache-control': 'private, no-cache',
      vary: expect.stringContaining('Authorization, Impersonate-User'),
    })
  })

  const condition = (sent: string, method = 'GET') =>
    on.admin.send({ method, url: `${path}chat/`, headers: { 'if-none-match': sent } })

  test.each<[string, (etag: string) => string, number]>([
    ['the tag', (etag) => etag, 304],
    ['a weak one', (etag) => `W/${etag}`, 304],
    ['a list with it', (etag) => `"x" , "",W/"y",${etag}`, 304],
    ['any', () => ' * ', 304],
    ['another', () => '"x"', 200],
    ['one without quotes', (etag) => etag.slice(1, -1), 200],
    ['nothing', () => '', 200],
  ])('If-None-Match with %s', async (_, sentOf, status) => {
    const etag = await tagOf('chat')
    for (const method of ['GET', 'HEAD']) {
      const answer = await condition(sentOf(etag), method)
      expect([method, answer.status]).toEqual([method, status])
      expect(answer.headers.etag).toBe(etag)
      if (status === 304) {
        expect(answer.text).toBe('')
        expect(answer.headers['content-type']).toBeUndefined()
      }
    }
  })

  test.each<[string, (etag: string) => string, number]>([
    ['the tag', (etag) => etag, 200],
    ['a list with it', (etag) => `"x", ${etag}`, 200],
    ['any', () => '*', 200],
    ['another', () => '"x"', 412],
    ['a weak one', (etag) => `W/${etag}`, 412],
    ['one without quotes', (etag) => etag.slice(1, -1), 412],
  ])('If-Match with %s', async (_, sentOf, status) => {
    const etag = await tagOf('chat')
    for (const method of ['GET', 'HEAD']) {
      const url = `${path}chat/`
      const answer = await on.admin.send({ method, url, headers: { 'if-match': sentOf(etag) } })
      expect([method, answer.status]).toEqual([method, status])
      if (status === 412)
        expect(answer.headers).toMatchObject({
          'cache-control': 'no-store',
          'content-type': expect.stringMatching(/json/),
        })
      if (status === 412 && method === 'GET')
        expect(answer.json).toEqual({
          detail: 'The application is not as `If-Match` has it any more: leave it out to read it.',
          code: 'precondition_failed',
        })
      // It is judged before the other (RFC 9110, section 13.2.2).
      const both = { 'if-match': sentOf(etag), 'if-none-match': etag }
      expect((await on.admin.send({ method, url, headers: both })).status).toBe(status === 200 ? 304 : 412)
    }
  })

  test('If-None-Match of what is not there is a 404', async () => {
    const answer = await on.admin.get(`${path}nothing/`, { headers: { 'if-none-match': '*' } })
    expect([answer.status, answer.headers.etag]).toEqual([404, undefined])
  })
})

testRefusals(applications, {
  'an order without an index': ['?ordering=group', { ordering: ['May name only: name, slug, pk.'] }],
})
testPages(applications, ['name', 'slug', 'pk'], [{ search: 'a' }])
testStatements(applications, 7, [{ owner: 'team-a' }])
