import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { applyPath, atEnd, installation, named, until } from '../support/kit.ts'

/** Requests that no HTTP library sends: a client that writes raw bytes, and closes the connection at any time. */

const there = await installation()
const { token } = await there.make.user({ superuser: true })
const url = await there.app.listen({ port: 0, host: '127.0.0.1' })
const port: number = Number(new URL(url).port)

/** The bytes that the server has sent so far, and whether it has closed the connection. */
type Client = { readonly socket: Socket; received(): string; readonly closed: Promise<unknown> }

async function dial(): Promise<Client> {
  const socket = connect(port, '127.0.0.1')
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk
  })
  // A server that refuses closes the connection while the client still sends.
  socket.on('error', () => {})
  const closed = once(socket, 'close')
  atEnd(() => void socket.destroy())
  await once(socket, 'connect')
  return { socket, received: () => text, closed }
}

type Raw = { status: number; headers: Headers; json: unknown }

/** Parses a text that is exactly one answer. */
function parsed(text: string): Raw {
  const [head = '', body = ''] = text.split('\r\n\r\n')
  const [first = '', ...lines] = head.split('\r\n')
  const headers = new Headers(
    lines.map((line): [string, string] => [line.split(': ')[0] ?? '', line.split(': ')[1] ?? '']),
  )
  expect(Number(headers.get('content-length'))).toBe(Buffer.byteLength(body))
  return { status: Number(first.split(' ')[1]), headers, json: JSON.parse(body) }
}

async function answerTo(bytes: string): Promise<Raw> {
  const client = await dial()
  client.socket.write(bytes)
  await client.closed
  return parsed(client.received())
}

const applying = (length: number | string, ...more: string[]) =>
  [
    `PUT ${applyPath} HTTP/1.1`,
    'Host: gatewright',
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    `Content-Length: ${length}`,
    ...more,
    '',
    '',
  ].join('\r\n')

/** The number of answers to applies, by status. */
async function appliesAnswered(): Promise<Record<string, number>> {
  const { text } = await there.admin.get('/-/metrics/')
  const found = text.matchAll(
    /^gatewright_http_requests_total\{method="PUT",route="[^"]*applications\/",status="(\d+)"\} (\d+)$/gm,
  )
  return Object.fromEntries([...found].map(([, status = '', count]) => [status, Number(count)]))
}

const loggedFor = (id: string) => there.log.filter((line) => line.includes(id))

test.each([
  ['reset', (socket: Socket) => socket.resetAndDestroy()],
  ['end', (socket: Socket) => socket.end()],
])('a client that closes the connection in the middle of its body is no outage: %s', async (how, hangUp) => {
  const id = `hung-up-by-${how}`
  const before = await appliesAnswered()
  const { socket } = await dial()
  const arrived: Promise<IncomingMessage[]> = once(there.app.server, 'request')
  socket.write(`${applying(10, `X-Request-Id: ${id}`)}{"a`)
  const [request] = await arrived
  await until('its body to be read', () => request?.readableFlowing)
  hangUp(socket)
  const lines = await until('the request to be over', () => (loggedFor(id).length > 0 ? loggedFor(id) : null))
  // Other requests are answered meanwhile, and only they are counted.
  expect(await there.admin.submit('radius', 'others')).toMatchObject({ status: 200 })
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    expect.objectContaining({ level: 30, msg: 'the request broke off' }),
  ])
  expect(await appliesAnswered()).toEqual({ ...before, 200: (before[200] ?? 0) + 1 })
})

describe('a malformed request', () => {
  const invalid = { non_field_errors: ['The request is not valid HTTP.'], code: 'invalid_http' }

  test.each([
    ['no HTTP', 'HELO gatewright\r\n\r\n', 400, invalid],
    ['a header that is none', 'GET / HTTP/1.1\r\nHost: x\r\nno header\r\n\r\n', 400, invalid],
    [
      'two lengths of one body',
      'PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
      400,
      invalid,
    ],
    ['a chunk without a size', 'PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', 400, invalid],
    [
      'headers of 20 kB',
      `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`,
      431,
      { detail: 'The first line and the headers are larger than 16384 bytes.', code: 'headers_too_large' },
    ],
  ])('is answered as everything is: %s', async (_, bytes, status, json) => {
    const answer = await answerTo(bytes)
    expect(answer).toMatchObject({ status, json })
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
    const id = answer.headers.get('x-request-id') ?? ''
    expect(id).toMatch(/^[0-9a-f-]{36}$/)
    expect(loggedFor(id)).toEqual([expect.stringContaining('"level":20')])
  })

  test('without a Host', async () => {
    expect(await answerTo('GET /-/health/live/ HTTP/1.1\r\nConnection: close\r\n\r\n')).toMatchObject({
      status: 400,
      json: { non_field_errors: ['HTTP/1.1 asks for a Host header.'], code: 'invalid_http' },
    })
    expect(await answerTo('GET /-/health/live/ HTTP/1.0\r\n\r\n')).toMatchObject({ status: 200 })
  })

  describe.each([
    ['Authorization', 'Bearer a', 'Bearer b'],
    ['Authorization', 'TOKEN', 'TOKEN'],
    ['Host', 'y', 'x'],
    ['host', 'x', 'x'],
    ['Origin', 'http://x', 'http://x'],
    ['Content-Type', 'application/json', 'text/plain'],
    ['Impersonate-User', 'a', 'b'],
    ['Idempotency-Key', 'a', 'b'],
    ['Gatewright-Owner', 'a', 'b'],
  ])('with two %s headers: %s, %s', (name, first, second) => {
    test.each([
      ['GET', '/api/v3/core/users/me/'],
      ['PUT', '/api/v3/core/transactional/applications/'],
      ['GET', '/-/health/live/'],
      ['GET', '/-/metrics/'],
      ['GET', '/api/v3/schema/'],
      ['GET', '/'],
      ['GET', '/nothing/here/'],
      ['GET', '/admin/'],
      ['GET', '/admin/queues/'],
      ['GET', '/admin/queues/api/queues'],
      ['POST', '/admin/login/'],
    ])('is 400: %s %s', async (method, path) => {
      const others = Object.entries({ Host: 'x', Authorization: `Bearer ${token}`, Connection: 'close' })
        .filter(([other]) => other.toLowerCase() !== name.toLowerCase())
        .map(([other, value]) => `${other}: ${value}`)
      const sent = [first, second].map((value) => `${name}: ${value.replace('TOKEN', `Bearer ${token}`)}`)
      const { status, json } = await answerTo(
        [`${method} ${path} HTTP/1.1`, ...sent, ...others, 'Content-Length: 0', '', ''].join('\r\n'),
      )
      expect({ status, json }).toMatchObject({ status: 400, json: { code: 'invalid_http' } })
      expect(JSON.stringify(json)).toContain(`The header ${name} was sent twice: send it once.`)
    })
  })

  test('with two headers of a kind that is a list is answered', async () => {
    const twice =
      'Gatewright-Allow: takeover\r\nGatewright-Allow: grants\r\nX-Forwarded-For: a\r\nX-Forwarded-For: b\r\n'
    const head = `GET /api/v3/core/users/me/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n`
    expect(await answerTo(`${head}${twice}\r\n`)).toMatchObject({ status: 200 })
  })

  test('that did not arrive in time is 408', async () => {
    const connected: Promise<Socket[]> = once(there.app.server, 'connection')
    const client = await dial()
    const [socket] = await connected
    // Node checks for slow requests only at intervals; this is the event that it emits then.
    there.app.server.emit('clientError', Object.assign(new Error(), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), socket)
    await client.closed
    expect(parsed(client.received())).toMatchObject({
      status: 408,
      json: { detail: 'The request did not arrive in time.', code: 'too_slow' },
    })
  })

  test('does not get an answer that could be that of the request before it', async () => {
    const release = there.hold()
    const body = JSON.stringify(await named('radius', 'before-it'))
    const client = await dial()
    client.socket.write(applying(Buffer.byteLength(body)) + body)
    await there.queued(1)
    client.socket.write('HELO gatewright\r\n\r\n')
    await client.closed
    expect(client.received()).toBe('')
    release()
    await there.queued(0)
    expect(await there.db.provider.count({ where: { name: 'before-it' } })).toBe(1)
  })

  test('is refused after a request that was answered', async () => {
    const client = await dial()
    client.socket.write('GET /-/health/live/ HTTP/1.1\r\nHost: x\r\n\r\n')
    const live = '{"status":"ok"}'
    await until('the first answer', () => client.received().endsWith(live))
    client.socket.write('HELO gatewright\r\n\r\n')
    await client.closed
    const second = client.received().slice(client.received().indexOf(live) + live.length)
    expect(parsed(second)).toMatchObject({ status: 400, json: invalid })
  })
})
