import { AsyncLocalStorage } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import {
  type Context,
  defaultTextMapGetter,
  defaultTextMapSetter,
  type Span as OtelSpan,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import manifest from '../../package.json' with { type: 'json' }
import type { Config } from '../config.ts'
import type { Logger } from '../log.ts'
import type { NewSpan, Span, TraceHeaders, Tracing } from '../tracing.ts'
import { openExporter } from './exporter.ts'
import { samplerOf } from './sampler.ts'

/** Traces by the packages of OpenTelemetry. No tracer is registered globally: other packages make no spans. */

/** Of one request or run: a document of thousands of entries is no reason for thousands of spans. */
const mostParts = 500

const kinds = {
  server: SpanKind.SERVER,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
  client: SpanKind.CLIENT,
} as const

/** @returns `shutdown` delivers what is left, and waits for the receiver */
export function openSdk(
  program: 'api' | 'worker',
  config: Config,
  log: Logger,
): { readonly tracing: Tracing; shutdown(): Promise<void> } {
  const provider = new TracerProvider({
    resource: resourceOf(program),
    sampler: samplerOf(config),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: openExporter(log),
        scheduledDelayMillis: config.otelBspScheduleDelay,
        exportTimeoutMillis: config.otelBspExportTimeout,
        maxQueueSize: config.otelBspMaxQueueSize,
        maxExportBatchSize: config.otelBspMaxExportBatchSize,
      }),
    ],
  })
  return { tracing: tracingBy(provider), shutdown: () => provider.shutdown() }
}

/** OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come last: they win. */
const resourceOf = (program: 'api' | 'worker') =>
  defaultResource()
    .merge(
      resourceFromAttributes({
        'service.name': `gatewright-${program}`,
        'service.namespace': 'gatewright',
        'service.version': manifest.version,
        'service.instance.id': randomUUID(),
        'host.name': hostname(),
        'process.pid': process.pid,
      }),
    )
    .merge(detectResources({ detectors: [envDetector] }))

function tracingBy(provider: TracerProvider): Tracing {
  const tracer = provider.getTracer('gatewright', manifest.version)
  const propagator = new W3CTraceContextPropagator()
  const contexts = new AsyncLocalStorage<Context>()
  const active = () => contexts.getStore() ?? ROOT_CONTEXT
  const parts = new WeakMap<OtelSpan, number>()

  function start({ name, kind, attributes, parent }: NewSpan): Span {
    const context =
      parent === undefined ? active() : propagator.extract(ROOT_CONTEXT, parent ?? {}, defaultTextMapGetter)
    const span = tracer.startSpan(name, { kind: kinds[kind], attributes }, context)
    const own = trace.setSpan(context, span)
    return {
      set: (more) => void span.setAttributes(more),
      fail: (type) => void span.setAttribute('error.type', type).setStatus({ code: SpanStatusCode.ERROR }),
      end: () => span.end(),
      run: (work) => contexts.run(own, work),
    }
  }

  return {
    start,
    startPart: (span) => {
      const whole = trace.getSpan(active())
      // What a request started may go on long after its end, such as a loop that reads for all.
      if (!whole?.isRecording()) return undefined
      const count = (parts.get(whole) ?? 0) + 1
      parts.set(whole, count)
      if (count <= mostParts) return start(span())
      whole.setAttribute('gatewright.parts_left_out', count - mostParts)
      return undefined
    },
    headers: () => {
      const headers: Partial<TraceHeaders> = {}
      propagator.inject(active(), headers, defaultTextMapSetter)
      const { traceparent, tracestate } = headers
      return traceparent === undefined ? undefined : { traceparent, ...(tracestate && { tracestate }) }
    },
    logFields: () => {
      const context = trace.getSpanContext(active())
      return context === undefined ? {} : { trace_id: context.traceId, span_id: context.spanId }
    },
  }
}
