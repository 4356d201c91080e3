import { type Span, SpanKind, trace } from '@opentelemetry/api'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
  SamplingDecision,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace'
import type { Config } from '../config.ts'

/** The limit of one request or run: a document of thousands of entries is no reason for thousands of spans. */
const mostStatements = 500

/** What OTEL_TRACES_SAMPLER names: the packages leave that to their caller. */
export function samplerOf({ otelTracesSampler: name, otelTracesSamplerArg: ratio }: Config): Sampler {
  const root = name.endsWith('always_on')
    ? new AlwaysOnSampler()
    : name.endsWith('always_off')
      ? new AlwaysOffSampler()
      : new TraceIdRatioBasedSampler(ratio)
  return limitingStatements(name.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root)
}

/** Refuses the spans of connections, of too many statements, and of what a request started and goes on after its end. */
function limitingStatements(sampler: Sampler): Sampler {
  const counts = new WeakMap<Span, number>()
  const refused = { decision: SamplingDecision.NOT_RECORD }
  return {
    shouldSample: (context, traceId, name, kind, attributes, links) => {
      if (kind !== SpanKind.CLIENT) return sampler.shouldSample(context, traceId, name, kind, attributes, links)
      const whole = trace.getSpan(context)
      if (!whole?.isRecording() || !name.startsWith('pg.query')) return refused
      const count = (counts.get(whole) ?? 0) + 1
      counts.set(whole, count)
      if (count <= mostStatements) return { decision: SamplingDecision.RECORD_AND_SAMPLED }
      whole.setAttribute('gatewright.parts_left_out', count - mostStatements)
      return refused
    },
  }
}
