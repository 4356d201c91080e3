import {
  type Context,
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  type SpanOptions,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import { z } from 'zod'
import { Problem } from './errors.ts'

/** Traces by the interfaces of OpenTelemetry. They do nothing until `tracing/` registers an implementation. */
export const tracer = trace.getTracer('gatewright')

/** The headers of W3C Trace Context (https://www.w3.org/TR/trace-context/), by which a trace goes on in another process. */
export const traceHeaders = z.object({
  traceparent: z.string().max(100),
  tracestate: z.string().max(512).optional().catch(undefined),
})
export type TraceHeaders = z.output<typeof traceHeaders>

export const isTraced = (): boolean => propagation.fields().length > 0

/** The headers of the span at work. */
export function currentHeaders(): TraceHeaders | undefined {
  const headers: Partial<TraceHeaders> = {}
  propagation.inject(context.active(), headers)
  const { traceparent, ...state } = headers
  return traceparent === undefined ? undefined : { traceparent, ...state }
}

/** @param headers null: a new trace; undefined: the span at work goes on. Malformed headers begin a new trace. */
export const contextOf = (headers: TraceHeaders | null | undefined): Context =>
  headers === undefined ? context.active() : propagation.extract(ROOT_CONTEXT, headers ?? {})

/** Marks a span as failed. @param type a code of the catalogue or the like: a message may hold values */
export const failSpan = (span: Span, type: string): Span =>
  span.setAttribute('error.type', type).setStatus({ code: SpanStatusCode.ERROR })

/** Runs `work` in a span. @param name one of a small set: never an id, and nothing that a caller chose */
export const inSpan = <Result>(
  name: string,
  options: SpanOptions,
  parent: Context,
  work: (span: Span) => Promise<Result>,
): Promise<Result> =>
  tracer.startActiveSpan(name, options, parent, async (span) => {
    try {
      return await work(span)
    } catch (error) {
      failSpan(span, error instanceof Problem ? error.code : error instanceof Error ? error.name : '_OTHER')
      throw error
    } finally {
      span.end()
    }
  })
