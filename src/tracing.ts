import { z } from 'zod'
import { Problem } from './errors.ts'

/**
 * The interface of traces. `tracing/` implements it when `OTEL_EXPORTER_OTLP_ENDPOINT` is set. Otherwise there is no
 * implementation, and no package of OpenTelemetry is loaded.
 */

/** The headers of W3C Trace Context (https://www.w3.org/TR/trace-context/), by which a trace goes on in another process. */
export const traceHeaders = z.object({
  traceparent: z.string().max(100),
  tracestate: z.string().max(512).optional().catch(undefined),
})
export type TraceHeaders = z.output<typeof traceHeaders>

export type Attributes = Readonly<Record<string, string | number | boolean>>

export type NewSpan = {
  /** One of a small set of names: never an id, and nothing that a caller chose. */
  readonly name: string
  readonly kind: 'server' | 'producer' | 'consumer' | 'client'
  readonly attributes: Attributes
  /** The span that this one continues; absent: the span at work, or a new trace. Malformed headers begin a new trace. */
  readonly parent?: Readonly<Partial<Record<keyof TraceHeaders, string | string[] | undefined>>> | null | undefined
}

export type Span = {
  set(attributes: Attributes): void
  /**
   * Marks the span as failed. @param type the error, such as a code of the catalogue: never a message, which may hold values
   */
  fail(type: string): void
  end(): void
  /** Calls `work`, with this as the span at work until all that it awaits is done. */
  run<Result>(work: () => Result): Result
}

export type Tracing = {
  start(span: NewSpan): Span
  /** Starts a part of the span at work. @returns undefined without one that is recorded, and when it has too many parts */
  startPart(span: () => NewSpan): Span | undefined
  /** The headers of the span at work. */
  headers(): TraceHeaders | undefined
  /** `trace_id` and `span_id`, for a line of the log. */
  logFields(): Record<string, string>
}

let current: Tracing | null = null

/** Begins and ends tracing in this process; there is no other way. Connections that were opened before are not traced. */
export function useTracing(tracing: Tracing | null): void {
  current = tracing
}

/** null: nothing is traced. */
export const tracing = (): Tracing | null => current

/** Runs `work` in a span, if there are any. */
export const inSpan = <Result>(span: () => NewSpan, work: (span?: Span) => Promise<Result>): Promise<Result> =>
  current === null ? work() : inOpenSpan(current.start(span()), work)

async function inOpenSpan<Result>(span: Span, work: (span: Span) => Promise<Result>): Promise<Result> {
  try {
    return await span.run(() => work(span))
  } catch (error) {
    span.fail(error instanceof Problem ? error.code : error instanceof Error ? error.name : '_OTHER')
    throw error
  } finally {
    span.end()
  }
}
