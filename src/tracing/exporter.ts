import { DiagLogLevel, diag } from '@opentelemetry/api'
import { ExportResultCode, setGlobalErrorHandler } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import type { SpanExporter } from '@opentelemetry/sdk-trace'
import { causeOf, type Logger } from '../log.ts'

/**
 * Delivers spans by OTLP over HTTP. It reads OTEL_EXPORTER_OTLP_* itself: where to, headers, time-out, compression,
 * certificates. A receiver that is away is logged once for each outage; its spans are lost, and nothing waits for it.
 */
export function openExporter(log: Logger): SpanExporter {
  // What it thinks of its settings is worth a line; the state of each delivery is not.
  let isOpening = true
  const report = (text: string) => log[isOpening ? 'warn' : 'debug'](`traces: ${text.slice(0, 300)}`)
  const ignore = () => {}
  diag.setLogger({ error: report, warn: report, info: ignore, debug: ignore, verbose: ignore }, DiagLogLevel.WARN)
  setGlobalErrorHandler(ignore)
  const exporter = new OTLPTraceExporter()
  isOpening = false
  let isFailing = false
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        if (result.code === ExportResultCode.SUCCESS) isFailing = false
        else if (!isFailing) {
          isFailing = true
          log.warn({ cause: causeOf(result.error) }, 'traces are not delivered, and get lost; trying again')
        }
        done(result)
      }),
    forceFlush: () => exporter.forceFlush(),
    shutdown: () => exporter.shutdown(),
  }
}
