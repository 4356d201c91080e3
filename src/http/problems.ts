import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { CommitUnknown } from '../db/client.ts'
import { statementProblem } from '../db/errors.ts'
import { catalogue, detailOf, type FieldErrors, Problem, type ProblemCode } from '../errors.ts'
import { fieldsOf, refuse } from './access-log.ts'
import { limitsOf, mediaTypesOf } from './body.ts'
import { noStore } from './headers.ts'
import { asksForPage, notFoundPage } from './not-found.ts'
import { plainPolicy } from './page.ts'

/** The one place that turns an error into an answer. */
export function answerProblems(app: FastifyInstance): void {
  const allowed = routeTable(app)
  const withoutRoute = (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const methods = allowed(request.url)
    if (methods.length === 0) return nothingHere(request, reply)
    reply.header('Allow', methods.join(', '))
    return send(new Problem('method_not_allowed', `This path takes ${methods.join(', ')}.`), request, reply)
  }
  app.setErrorHandler((error, request, reply) => send(toProblem(error, request), request, reply))
  app.setNotFoundHandler(withoutRoute)
  // This comes before the body: without a route, Fastify refuses its media type or its length first.
  app.addHook('preParsing', (request, reply, payload, done) => {
    if (request.is404) withoutRoute(request, reply)
    else done(null, payload)
  })
}

/** The answer depends on `Accept`: a cache must not give a program the page. */
function nothingHere(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const problem = new Problem('not_found', 'There is nothing here.')
  reply.header('Vary', 'Accept')
  if (!asksForPage(request)) return send(problem, request, reply)
  refuse(problem, request, reply)
  reply.helmet(plainPolicy)
  return reply.type('text/html; charset=utf-8').send(notFoundPage)
}

/** Answers a malformed URL, which reaches no route and no hook. */
export function answerUnroutable(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  send(toProblem(error, request), request, reply.headers({ 'X-Request-Id': request.id, 'Cache-Control': noStore }))
}

/** Refusals of Fastify itself, by its error code. */
const fastifyProblems: Readonly<Record<string, (request: FastifyRequest) => Problem>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: (request) =>
    new Problem('too_large', `The body is larger than ${limitsOf(request).bytes} bytes.`),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ({ server }) =>
    new Problem('unsupported_media_type', `Send ${mediaTypesOf(server).join(' or ')}.`),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: () =>
    new Problem('invalid_json', 'The body is not as long as Content-Length says.'),
  FST_ERR_BAD_URL: () => wronglyEncoded('path'),
  FST_ERR_MAX_PARAM_LENGTH: () => new Problem('not_found', 'There is nothing here.'),
}

export const wronglyEncoded = (part: 'path' | 'query'): Problem =>
  new Problem(
    'invalid_http',
    `The ${part} is not percent-encoded as UTF-8: write % itself as %25, and other characters as encodeURIComponent does.`,
  )

/** The code of every other refusal of Fastify or of a plugin, by its status. */
const codeOf = (statusCode: number): ProblemCode =>
  statusCode === 400 ? 'invalid_http' : (codes.find((code) => catalogue[code] === statusCode) ?? 'invalid_http')
const codes = Object.keys(catalogue) as ProblemCode[]

/** @returns undefined for an error that is no refusal of the request */
function refusalOf(error: unknown, request: FastifyRequest): Problem | undefined {
  const { code = '', statusCode = 0, message = '' } = error instanceof Error ? (error as Partial<FastifyError>) : {}
  const made = fastifyProblems[code]?.(request)
  if (made !== undefined) return made
  if (!code.startsWith('FST_') || statusCode < 400 || statusCode > 499) return undefined
  return new Problem(codeOf(statusCode), message, { cause: error })
}

/** Turns an error into a Problem. An error that is no refusal is logged with its cause. */
export function toProblem(error: unknown, request: FastifyRequest): Problem {
  if (error instanceof Problem) return error
  if (error === request.raw.errored) {
    // The client is gone, so this line is the only trace.
    const { method, routeOptions } = request
    const facts = { ...fieldsOf(request), code: 'invalid_json', method, route: routeOptions.url }
    request.log.info(facts, 'the request broke off')
    return new Problem('invalid_json', 'The request broke off before its body was whole.')
  }
  const known = isOfDatabase(error) ? statementProblem(error) : error
  if (known instanceof Problem) return known
  const refusal = refusalOf(error, request)
  if (refusal !== undefined) return refusal
  request.log.error({ ...fieldsOf(request), code: 'server_error', err: error }, 'unexpected error')
  return new Problem('server_error', `Something went wrong inside. Ask for request ${request.id}.`, { cause: error })
}

/** Whether an error comes from the database. The client's socket breaks with the same codes, but without `clientVersion`. */
const isOfDatabase = (error: unknown): boolean =>
  error instanceof CommitUnknown || (error instanceof Error && 'clientVersion' in error)

function send(problem: Problem, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const status = refuse(problem, request, reply)
  if (status === 401) reply.header('WWW-Authenticate', 'Bearer')
  // RFC 9110, section 15.5.16.
  if (status === 415) reply.headers({ Accept: mediaTypesOf(request.server).join(', '), 'Accept-Encoding': 'identity' })
  if (problem.run !== undefined) reply.header('Location', problem.run)
  return reply.type('application/json; charset=utf-8').send(bodyOf(problem))
}

/**
 * The body of an answer. A 400 has errors by field, `code` beside them, and all errors one by one in `errors`. Every other answer
 * has one `detail`, a 202 the run's path too, and the refusal of a document `errors` of the entries that it is about.
 */
export function bodyOf({ code, message, fields, errors, run }: Problem): Record<string, unknown> {
  const details = errors !== undefined && { errors: errors.map(detailOf) }
  if (catalogue[code] !== 400) return { detail: message, code, ...(run !== undefined && { run }), ...details }
  if (fields === undefined) return { non_field_errors: [message], code }
  const { code: codeField, errors: errorsField, non_field_errors: whole, ...others } = fields
  const messages = [
    ...(Array.isArray(whole) ? whole : sentences('non_field_errors', whole)),
    ...sentences('code', codeField),
    ...sentences('errors', errorsField),
  ]
  return { ...others, ...(messages.length > 0 && { non_field_errors: messages }), code, ...details }
}

/** The errors, as sentences, of a field whose name has another meaning in the answer. */
function sentences(name: string, found: string[] | FieldErrors | undefined): string[] {
  if (found === undefined) return []
  if (Array.isArray(found)) return [`${name}: ${found.join(' ')}`]
  return Object.entries(found).flatMap(([inner, each]) => sentences(`${name}.${inner}`, each))
}

/** The methods of a path, for 405. Fastify reports only that no route matched. */
function routeTable(app: FastifyInstance): (url: string) => string[] {
  const routes: { method: string; pattern: RegExp }[] = []
  app.addHook('onRoute', ({ method, url }) => {
    const pattern = new RegExp(
      `^${url
        .replace(/\/$/, '')
        .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
        .replace(/:\w+/g, '[^/]+')
        .replace(/\\\*$/, '.*')}/?$`,
    )
    for (const each of [method].flat()) routes.push({ method: each, pattern })
  })
  return (url) => {
    const [path = ''] = url.split('?')
    return [...new Set(routes.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method))].sort()
  }
}
