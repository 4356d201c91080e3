import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { context, DiagLogLevel, diag, propagation, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { ExportResultCode, setGlobalErrorHandler, W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, type SpanExporter, TracerProvider } from '@opentelemetry/sdk-trace'
import manifest from '../../package.json' with { type: 'json' }
import type { Config } from '../config.ts'
import { causeOf, type Logger } from '../log.ts'
import { samplerOf } from './sampler.ts'
import { traceStatements } from './statements.ts'

/** Longer attributes are shortened: statements may be long. */
const attributeValueLengthLimit = 2_000

/** Registers the packages of OpenTelemetry. `shutdown` delivers what is left, and waits for the receiver. */
export function startSdk(program: 'api' | 'worker', config: Config, log: Logger): TracerProvider {
  const batches = new BatchSpanProcessor({
    exporter: openExporter(log),
    scheduledDelayMillis: config.otelBspScheduleDelay,
    exportTimeoutMillis: config.otelBspExportTimeout,
    maxQueueSize: config.otelBspMaxQueueSize,
    maxExportBatchSize: config.otelBspMaxExportBatchSize,
  })
  const provider = new TracerProvider({
    resource: resourceOf(program),
    sampler: samplerOf(config),
    spanLimits: { attributeValueLengthLimit },
    spanProcessors: [batches],
  })
  context.setGlobalContextManager(new AsyncLocalStorageContextManager())
  propagation.setGlobalPropagator(new W3CTraceContextPropagator())
  trace.setGlobalTracerProvider(provider)
  traceStatements()
  return provider
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

const ignore = () => {}

/**
 * Delivers spans by OTLP over HTTP. It reads OTEL_EXPORTER_OTLP_* itself: where to, headers, time-out, compression,
 * certificates. A receiver that is away is logged once for each outage; its spans are lost, and nothing waits for it.
 */
function openExporter(log: Logger): SpanExporter {
  const report = (text: string) => log.warn(`traces: ${text.slice(0, 300)}`)
  diag.setLogger({ error: report, warn: report, info: ignore, debug: ignore, verbose: ignore }, DiagLogLevel.WARN)
  const exporter = new OTLPTraceExporter()
  // Its complaints about settings are worth a line. Those about each delivery are not.
  diag.disable()
  setGlobalErrorHandler(ignore)
  const deliver = exporter.export.bind(exporter)
  let isFailing = false
  exporter.export = (spans, done) => {
    // The driver's messages quote values. The SQLSTATE stays, in the event `exception`.
    for (const { status } of spans) delete status.message
    deliver(spans, (result) => {
      const hasFailed = result.code !== ExportResultCode.SUCCESS
      if (hasFailed && !isFailing)
        log.warn({ cause: causeOf(result.error) }, 'traces are not delivered, and get lost; trying again')
      isFailing = hasFailed
      done(result)
    })
  }
  return exporter
}
