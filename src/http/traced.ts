import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { probesPath } from '../paths.ts'
import { type Span, tracing } from '../tracing.ts'

declare module 'fastify' {
  interface FastifyRequest {
    span: Span | null
  }
}

/**
 * Makes a span of each request, after the conventions of OpenTelemetry for HTTP servers; it continues the trace of the
 * client, if it sends one. Without tracing there are no hooks. Probes are not traced: they are many.
 */
export function traceRequests(app: FastifyInstance): void {
  const traced = tracing()
  if (traced === null) return
  app.decorateRequest('span', null)
  app.addHook('onRequest', (request, reply, done) => {
    if (isLeftOut(request)) {
      done()
      return
    }
    const span = traced.start({
      name: nameOf(request),
      kind: 'server',
      attributes: attributesOf(request),
      parent: { traceparent: request.headers.traceparent, tracestate: request.headers.tracestate },
    })
    request.span = span
    // Comes also when the client goes away.
    reply.raw.once('close', () => end(span, request, reply))
    span.run(done)
  })
  // The body arrives outside of what the first hook has called, and so does the end of the answer.
  for (const hook of ['preValidation', 'onResponse'] as const)
    app.addHook(hook, ({ span }: FastifyRequest, _: FastifyReply, done: () => void) => {
      if (span === null) done()
      else span.run(done)
    })
}

const isLeftOut = ({ routeOptions }: FastifyRequest): boolean => routeOptions.url?.startsWith(probesPath) === true

/** `PUT /api/v3/core/transactional/applications/` */
const nameOf = ({ method, routeOptions: { url } }: FastifyRequest): string =>
  url === undefined ? method : `${method} ${url}`

/** The path of no route may be anything, also a secret that was put in the wrong place. */
function attributesOf({ id, method, protocol, raw, url, routeOptions }: FastifyRequest) {
  const route = routeOptions.url
  const [path = ''] = url.split('?', 1)
  return {
    'http.request.method': method,
    'url.scheme': protocol,
    'network.protocol.version': raw.httpVersion,
    'gatewright.request.id': id,
    ...(route !== undefined && { 'http.route': route, 'url.path': path }),
  }
}

function end(span: Span, { submission, failure }: FastifyRequest, { raw }: FastifyReply): void {
  const run = submission?.run
  if (run) span.set({ 'gatewright.run.id': run })
  if (failure !== null) span.set({ 'gatewright.code': failure.code })
  if (raw.headersSent) span.set({ 'http.response.status_code': raw.statusCode })
  if (!raw.writableFinished) span.fail('connection_closed')
  else if (raw.statusCode >= 500) span.fail(failure?.code ?? String(raw.statusCode))
  span.end()
}
