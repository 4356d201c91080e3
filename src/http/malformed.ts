import { randomUUID } from 'node:crypto'
import { type IncomingMessage, maxHeaderSize, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { attempt } from '../attempt.ts'
import { catalogue, Problem } from '../errors.ts'
import { noStore } from './headers.ts'
import { bodyOf, wronglyEncoded } from './problems.ts'

/** Requests that Node refuses, by its error code. They reach no route and no hook. */
const refusals: Readonly<Record<string, () => Problem>> = {
  HPE_HEADER_OVERFLOW: () =>
    new Problem('headers_too_large', `The first line and the headers are larger than ${maxHeaderSize} bytes.`),
  HPE_CHUNK_EXTENSIONS_OVERFLOW: () => new Problem('too_large', 'The chunk extensions of the body are too large.'),
  ERR_HTTP_REQUEST_TIMEOUT: () => new Problem('too_slow', 'The request did not arrive in time.'),
}

/** Answers on the socket, and closes it: the start of the next request is not known. */
export const answerMalformed =
  (log: FastifyBaseLogger) =>
  (error: Error & { code?: string }, socket: Socket): void => {
    // The client closed the connection.
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
    const problem =
      refusals[error.code ?? '']?.() ?? new Problem('invalid_http', 'The request is not valid HTTP.', { cause: error })
    const id = randomUUID()
    log.debug({ err: error, request: id, code: problem.code }, problem.message)
    if (isForMalformed(socket)) socket.write(answer(problem, id))
    socket.destroy()
  }

/** helmet does not see these answers. */
const securityLines = [
  'X-Content-Type-Options: nosniff',
  'X-Frame-Options: DENY',
  'Referrer-Policy: same-origin',
  'Cross-Origin-Opener-Policy: same-origin',
  'Cross-Origin-Resource-Policy: same-origin',
  "Content-Security-Policy: default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
]

function answer(problem: Problem, id: string): string {
  const status = catalogue[problem.code]
  const body = JSON.stringify(bodyOf(problem))
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Connection: close',
    'Content-Type: application/json; charset=utf-8',
    ...securityLines,
    `Cache-Control: ${noStore}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${id}`,
    '',
    body,
  ].join('\r\n')
}

type Exchange = { readonly request: IncomingMessage; readonly response: ServerResponse }
const latest = new WeakMap<Socket, Exchange>()

/**
 * Remembers the latest request of each connection, and refuses one without a Host header, with two of one kind, or with a query
 * that is not percent-encoded. Such a path reaches no hook.
 */
export function refuseMalformed(app: FastifyInstance): void {
  app.server.on('request', (request, response) => void latest.set(request.socket, { request, response }))
  // Node's `requireHostHeader` is not used: its answer is empty.
  app.addHook('onRequest', async ({ raw: { headers, httpVersion, rawHeaders, url = '' } }) => {
    if (headers.host === undefined && httpVersion === '1.1')
      throw new Problem('invalid_http', 'HTTP/1.1 asks for a Host header.')
    const twice = sentTwice(rawHeaders)
    if (twice !== undefined) throw new Problem('invalid_http', `The header ${twice} was sent twice: send it once.`)
    if (!isEncoded(url.slice(url.search(/[?#]|$/)))) throw wronglyEncoded('query')
  })
}

/** Whether a text can be decoded. Fastify keeps other values of a query as text: `%E4` would not find the rows of `ä`. */
export const isEncoded = (text: string): boolean => attempt(() => decodeURIComponent(text)) !== undefined

/**
 * Headers with one value that decide who the caller is or what is written. When two are sent, Node keeps the first or joins them,
 * and a proxy before it may have judged the other (RFC 9110, section 5.3; RFC 9112, section 3.2).
 */
const single: ReadonlySet<string> = new Set([
  'authorization',
  'host',
  'origin',
  'content-type',
  'impersonate-user',
  'idempotency-key',
  'gatewright-owner',
])

/** @param headers names and values in turn @returns the name as it was sent */
function sentTwice(headers: readonly string[]): string | undefined {
  const seen = new Set<string>()
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at]?.toLowerCase() ?? ''
    if (seen.has(name)) return headers[at]
    if (single.has(name)) seen.add(name)
  }
  return undefined
}

/**
 * Whether the client would match an answer with the malformed request. While the answer to an earlier request is
 * pending, the client would take it for that one, and an apply that succeeds would look refused.
 */
function isForMalformed(socket: Socket): boolean {
  const last = latest.get(socket)
  if (last === undefined) return true
  return last.request.complete ? last.response.writableFinished : !last.response.headersSent
}
