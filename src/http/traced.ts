import { type Context, context, propagation, ROOT_CONTEXT, type Span, SpanKind, trace } from '@opentelemetry/api'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { probesPath } from '../paths.ts'
import { failSpan, isTraced, tracer } from '../tracing.ts'

declare module 'fastify' {
  interface FastifyRequest {
    traced: Context | null
  }
}

/**
 * Makes a span of each request, after the conventions of OpenTelemetry for HTTP servers; it continues the trace of the
 * client, if it sends one. Without tracing there are no hooks. Probes are not traced: they are many.
 */
export function traceRequests(app: FastifyInstance): void {
  if (!isTraced()) return
  app.decorateRequest('traced', null)
  app.addHook('onRequest', (request, reply, done) => {
    const { method, headers, routeOptions } = request
    const route = routeOptions.url
    if (route?.startsWith(probesPath)) return done()
    const name = route === undefined ? method : `${method} ${route}`
    const caller = propagation.extract(ROOT_CONTEXT, headers)
    const span = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes: attributesOf(request, route) }, caller)
    request.traced = trace.setSpan(caller, span)
    // This event comes also when the client goes away.
    reply.raw.once('close', () => end(span, request, reply))
    context.with(request.traced, done)
  })
  // The body arrives outside of what the first hook has called, and so does the end of the answer.
  for (const hook of ['preValidation', 'onResponse'] as const)
    app.addHook(hook, ({ traced }: FastifyRequest, _: FastifyReply, done: () => void) => {
      if (traced === null) done()
      else context.with(traced, done)
    })
}

/** The path of no route may be anything, also a secret that was put in the wrong place. */
const attributesOf = ({ id, method, protocol, raw, url }: FastifyRequest, route: string | undefined) => ({
  'http.request.method': method,
  'url.scheme': protocol,
  'network.protocol.version': raw.httpVersion,
  'gatewright.request.id': id,
  ...(route !== undefined && { 'http.route': route, 'url.path': url.split('?', 1)[0] }),
})

function end(span: Span, { submission, failure }: FastifyRequest, { raw }: FastifyReply): void {
  if (submission?.run) span.setAttribute('gatewright.run.id', submission.run)
  if (failure !== null) span.setAttribute('gatewright.code', failure.code)
  if (raw.headersSent) span.setAttribute('http.response.status_code', raw.statusCode)
  if (!raw.writableFinished) failSpan(span, 'connection_closed')
  else if (raw.statusCode >= 500) failSpan(span, failure?.code ?? String(raw.statusCode))
  span.end()
}
