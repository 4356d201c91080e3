import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Problem } from '../errors.ts'
import { causeOf, type SubmissionFields } from '../log.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** On the routes that apply something, for the log. */
    submission: Pick<SubmissionFields, 'run' | 'title'> | null
    /** Why nothing was done, for the log. `detail` and `cause`: of an outage. */
    failure: { readonly code: string; readonly detail?: string; readonly cause?: string } | null
  }
}

/** Writes one line for each answer. It names the effective user, and while impersonating the real one. */
export function logAccess(app: FastifyInstance): void {
  app.decorateRequest('submission', null)
  app.decorateRequest('failure', null)
  app.addHook('onResponse', async (request, reply) => {
    const { method, routeOptions, failure } = request
    const { statusCode: status, elapsedTime } = reply
    const facts = {
      method,
      route: routeOptions.url,
      status,
      ms: Math.round(elapsedTime),
      ...fieldsOf(request),
      ...failure,
    }
    request.log[levelOf(routeOptions.url, status)](facts, 'answered')
  })
}

/** Probes come every two seconds and are not worth a line. */
function levelOf(route: string | undefined, status: number): 'debug' | 'info' | 'warn' {
  if (route?.startsWith('/-/')) return 'debug'
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

/** Notes why nothing was done, for the one line about the answer. An outage is expected, so the line has no stack. */
export function noteFailure(request: FastifyRequest, { code, message, cause }: Problem, status: number): void {
  request.failure =
    status < 500 ? { code } : { code, detail: message, ...(cause !== undefined && { cause: causeOf(cause) }) }
}
