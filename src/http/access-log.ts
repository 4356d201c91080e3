import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { catalogue, type Problem } from '../errors.ts'
import { causeOf, type SubmissionFields } from '../log.ts'
import { dashboardPath, probesPath } from '../paths.ts'

type Failure = {
  readonly code: string
  /** A sentence for operators, and not for the log: it may repeat text of the caller. */
  readonly sentence: string
  readonly outage?: { readonly detail: string; readonly cause?: string }
  /** The refusal, unless it is the end of a run. */
  readonly problem?: Problem
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The submission, for the log: set on the routes that apply something. */
    submission: Pick<SubmissionFields, 'run' | 'title'> | null
    /** The reason of a refusal, for the log. */
    failure: Failure | null
  }
}

/** Writes one line for each answer. It names the effective user, and while impersonating the real one. */
export function logAccess(app: FastifyInstance): void {
  app.decorateRequest('submission', null)
  app.decorateRequest('failure', null)
  app.addHook('onResponse', async (request, reply) => {
    const { method, routeOptions, failure, actor } = request
    const { repository, commit } = actor?.pipeline ?? {}
    const { statusCode: status, elapsedTime } = reply
    const facts = {
      method,
      route: routeOptions.url,
      status,
      ms: Math.round(elapsedTime - request.waitedMs),
      ...(request.waitedMs > 0 && { waited_ms: Math.round(request.waitedMs) }),
      ...fieldsOf(request),
      ...{ repository, commit },
      ...failure?.outage,
    }
    request.log[levelOf(request, status)](facts, 'answered')
  })
}

/** Probes come every two seconds, and an open page is read again every three: they are not worth a line. */
function levelOf({ method, routeOptions, headers }: FastifyRequest, status: number): 'debug' | 'info' | 'warn' {
  const { url = '' } = routeOptions
  // The script of a page (dashboard/live.js) claims so by a header, and only a read can be so.
  const isRefresh = method === 'GET' && url.startsWith(dashboardPath) && headers['gatewright-refresh'] === '1'
  if (url.startsWith(probesPath) || (status === 200 && isRefresh)) return 'debug'
  return status < 500 ? 'info' : 'warn'
}

/** The fields of every line about a request, beside its id, which its logger adds. */
export const fieldsOf = ({ actor, submission, failure }: FastifyRequest): Omit<SubmissionFields, 'request'> => ({
  run: submission?.run ?? null,
  title: submission?.title ?? null,
  user: actor?.username ?? null,
  real_user: actor?.impersonator?.username ?? null,
  code: failure?.code ?? null,
})

/** Begins the answer to a refusal. @returns its status */
export function refuse(problem: Problem, request: FastifyRequest, reply: FastifyReply): number {
  const status = catalogue[problem.code]
  noteFailure(request, problem, status)
  reply.code(status)
  if (problem.retryAfterS !== undefined) reply.header('Retry-After', problem.retryAfterS)
  return status
}

/** Notes the reason of a refusal, for the one line about the answer. An outage is expected, so the line has no stack. */
export function noteFailure(request: FastifyRequest, problem: Problem, status: number): void {
  const { code, message, cause } = problem
  const outage = { detail: message, ...(cause !== undefined && { cause: causeOf(cause) }) }
  request.failure = { code, sentence: sentenceOf(problem), problem, ...(status >= 500 && { outage }) }
}

const mostErrors = 3

/** The first errors of fields, each with its place, or else the message. */
function sentenceOf({ code, message, errors = [], missing, reason }: Problem): string {
  if (reason !== undefined) return reason
  if (code === 'not_found' && missing.length > 0)
    return `${message.replace(/\.$/, '')}, or the permission ${missing.join(' or ')} is missing or does not hold for it.`
  if (errors.length === 0) return message
  const shown = errors
    .slice(0, mostErrors)
    .map((error) => `${error.path.join('.')}: ${error.message}`.replace(/^: /, ''))
  return `${shown.join(' ')}${errors.length > mostErrors ? ` ${errors.length - mostErrors} more.` : ''}`
}
