import { describe, expect, test } from 'vitest'
import { answered, applyPath, counts, installation, named } from '../support/kit.ts'

/** What holds for every request to every route. */

const there = await installation()
const body = JSON.stringify(await named('radius', 'request'))

const runs = '/api/v3/blueprints/runs/6f7e0000-0000-7000-8000-000000000000/'
const send = (method: string, url: string, headers: Record<string, string> = {}, payload?: string | Buffer) =>
  there.admin.send({ method: method as 'GET', url, headers, ...(payload !== undefined && { payload }) })

describe('X-Request-Id', () => {
  test.each(['a', 'pipeline-17', '01HZX/2.b:c+d=e_f', 'x'.repeat(128)])('is taken when it is sane: %s', async (id) => {
    expect((await send('GET', runs, { 'x-request-id': id })).headers['x-request-id']).toBe(id)
  })

  test.each(['', 'a b', 'ü', '<script>', '"', 'x'.repeat(129), '{}', ';'])('is made otherwise: %j', async (id) => {
    expect((await send('GET', runs, { 'x-request-id': id })).headers['x-request-id']).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-4/,
    )
  })

  test.each<[number, string, string, Record<string, string>]>([
    [401, 'GET', runs, { authorization: 'Bearer x' }],
    [404, 'GET', '/nothing/', {}],
    [400, 'GET', '/api/v3/%zz/', {}],
    [400, 'GET', '/api/v3/core/users/?search=%zz', {}],
    [404, 'GET', `/api/v3/blueprints/runs/${'x'.repeat(500)}/`, {}],
    [405, 'DELETE', applyPath, {}],
    [400, 'PUT', `${applyPath}?x=1`, { 'content-type': 'application/json' }],
    [415, 'PUT', applyPath, { 'content-type': 'text/plain' }],
  ])('stands on a %i too', async (status, method, url, headers) => {
    const answer = await send(
      method,
      url,
      { 'x-request-id': 'asked-after', ...headers },
      method === 'PUT' ? '{}' : undefined,
    )
    expect(answer).toMatchObject({ status, headers: { 'x-request-id': 'asked-after' } })
  })

  test('is stored with the run and the audit row, and logged', async () => {
    const headers = { 'content-type': 'application/json', 'x-request-id': 'kept-everywhere' }
    expect(await send('PUT', applyPath, headers, body)).toMatchObject({
      status: 200,
      headers: { 'x-request-id': 'kept-everywhere' },
    })
    expect(await there.db.run.count({ where: { requestId: 'kept-everywhere' } })).toBe(1)
    expect(await there.db.auditRow.count({ where: { requestId: 'kept-everywhere' } })).toBe(1)
    // One line of the worker and one of the API.
    const lines = there.log.map((line) => JSON.parse(line)).filter(({ request }) => request === 'kept-everywhere')
    expect(lines.map(({ msg }) => msg).toSorted()).toEqual(['answered', 'run ended'])
  })
})

describe('a path', () => {
  test.each([applyPath, applyPath.slice(0, -1)])('answers with and without its last slash: %s', async (url) => {
    expect(await send('PUT', url, { 'content-type': 'application/json' }, body)).toMatchObject({ status: 200 })
  })

  test('of a run, too', async () => {
    const answer = await send('PUT', applyPath, { 'content-type': 'application/json' }, body)
    const path = answer.run
    expect((await send('GET', path.slice(0, -1))).status).toBe(200)
    expect((await send('HEAD', path)).status).toBe(200)
  })

  test.each([
    '/nothing/',
    '/api/',
    '/api/v3/',
    '/api/v4/core/transactional/applications/',
    '/api/v3/core/transactional/',
    '/API/V3/core/transactional/applications/',
    '//api/v3/core/transactional/applications/',
    '/api/v3/blueprints/run/',
  ])('that there is none of is 404: %s', async (url) => {
    await answered(404, send('GET', url), { detail: 'There is nothing here.', code: 'not_found' })
  })

  test.each<[string, string, string, Record<string, string>]>([
    ['QUERY', runs, '', {}],
    ['QUERY', runs, '{}', { 'content-type': 'application/json' }],
    ['QUERY', '/api/v3/core/users/', 'x', { 'content-type': 'text/plain' }],
    ['QUERY', '/api/v3/core/users/', '', {}],
    ['QUERY', '/admin/queues/api/queues', '', {}],
    ['QUERY', '/nothing/', '', {}],
    ['QUERY', '/nothing/', 'x', { 'content-type': 'text/plain' }],
    ['TRACE', runs, '', {}],
    ['POST', runs, 'x', { 'content-type': 'text/plain' }],
    ['POST', runs, 'x'.repeat(2_097_152), { 'content-type': 'application/json' }],
    ['POST', runs, '{', { 'content-type': 'application/json' }],
    ['POST', '/nothing/', 'x', { 'content-type': 'text/plain' }],
  ])('takes no other method, whatever its body is: %s %s', async (method, url, payload, headers) => {
    const answer = await send(method, url, headers, payload)
    if (url === '/nothing/') expect(answer).toMatchObject({ status: 404, json: { code: 'not_found' } })
    else
      expect(answer).toMatchObject({
        status: 405,
        headers: { allow: url.startsWith('/admin/queues/') ? 'DELETE, GET, HEAD, PATCH, POST, PUT' : 'GET, HEAD' },
        json: { code: 'method_not_allowed' },
      })
  })

  test.each([
    ['GET', applyPath, 'PUT'],
    ['POST', applyPath, 'PUT'],
    ['PATCH', applyPath.slice(0, -1), 'PUT'],
    ['DELETE', applyPath, 'PUT'],
    ['OPTIONS', applyPath, 'PUT'],
    ['PUT', runs, 'GET, HEAD'],
    ['DELETE', runs, 'GET, HEAD'],
  ])('takes its own methods: %s %s is 405', async (method, url, allow) => {
    const answer = await send(method, url)
    expect(answer).toMatchObject({
      status: 405,
      headers: { allow },
      json: { detail: `This path takes ${allow}.`, code: 'method_not_allowed' },
    })
  })
})

describe('percent-encoding', () => {
  test.each([
    ...['/%', '/api/v3/%zz/', '/api/v3/core/applications/%E4/', '/api/v3/core/applications/a%2/', '/nothing/%C0%80'],
    ...['%', '%zz', 'search=%E4', 'search=a%2', '%ED%A0%80=1', 'search=a&x=%C3%', 'a=%25&b=%2%35'].flatMap((query) => [
      `/api/v3/core/users/?${query}`,
      `/api/v3/core/users/me/?${query}`,
    ]),
    ...['/nothing/?a=%', '/-/health/live/?%'],
  ])('that is wrong is a 400, with and without a token: %s', async (url) => {
    for (const answer of [await send('GET', url), await there.as('').get(url)])
      await answered(400, answer, {
        code: 'invalid_http',
        non_field_errors: [expect.stringMatching(/^The (path|query) is not percent-enc/)],
      })
  })

  test('that is right is decoded', async () => {
    const { pk } = await there.make.group({ name: 'jürgen 100%' })
    const answer = await send('GET', '/api/v3/core/groups/?name=j%c3%BCr%67en+100%25&page_size=%31')
    expect(answer).toMatchObject({ status: 200, json: { results: [{ pk }] } })
  })
})

describe('a body', () => {
  const put = async (contentType: string | null, payload: string | Buffer) => {
    const before = await counts(there.db)
    const answer = await send('PUT', applyPath, contentType === null ? {} : { 'content-type': contentType }, payload)
    if (answer.status !== 200) expect(await counts(there.db)).toEqual(before)
    return answer
  }

  test.each([
    'application/json',
    'application/json; charset=utf-8',
    'Application/JSON',
    'application/json;charset=UTF-8',
  ])('is taken as %s', async (type) => {
    expect((await put(type, body)).status).toBe(200)
  })

  test.each([
    'text/plain',
    'application/xml',
    'application/yaml',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    'application/json5',
    'text/json',
    'application/problem+json',
    'application',
    '*/*',
    'application/json\ta',
    ' application/json x',
  ])('is 415 as %j', async (type) => {
    await answered(415, put(type, body), { detail: 'Send application/json.', code: 'unsupported_media_type' })
  })

  test('without a Content-Type is 415', async () => {
    expect((await put(null, body)).status).toBe(415)
  })

  test.each([
    [applyPath, 'application/json'],
    ['/api/v3/blueprints/', 'application/json, application/yaml'],
  ])('is 415 at %s with the media types that it takes: %s', async (url, types) => {
    const headers = { accept: types, 'accept-encoding': 'identity' }
    const named = types.replace(', ', ' or ')
    for (const [type, encoding, detail] of [
      ['text/plain', undefined, `Send ${named}.`],
      ['application/json', 'gzip', `Send ${named} without a Content-Encoding.`],
    ] as const) {
      const sent = { 'content-type': type, ...(encoding !== undefined && { 'content-encoding': encoding }) }
      const json = { detail, code: 'unsupported_media_type' }
      expect(await send('PUT', url, sent, body)).toMatchObject({ status: 415, headers, json })
    }
  })

  test('of 2 MiB is 413', async () => {
    await answered(413, put('application/json', JSON.stringify({ app: 'x'.repeat(2_097_152) })), { code: 'too_large' })
  })

  test('of 1 MiB is read, and one byte more is not', async () => {
    const of = (bytes: number) => put('application/json', `{"app":"${'x'.repeat(bytes - 10)}"}`)
    expect(await of(1_048_576)).toMatchObject({ status: 400, json: { app: ['Must be an object.'] } })
    expect((await of(1_048_577)).status).toBe(413)
  })

  test('of 2 MiB without a token is 401', async () => {
    await answered(401, there.as('x').put(applyPath, 'x'.repeat(2_097_152)))
  })
})

test('every answer of the API is JSON', async () => {
  for (const answer of [
    await send('GET', runs),
    await send('GET', '/x'),
    await send('PUT', applyPath),
    await there.as('').get(runs),
  ]) {
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8')
    expect(answer.json).toBeTypeOf('object')
  }
})
