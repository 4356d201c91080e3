import { trace } from '@opentelemetry/api'
import { type LoggerOptions, pino } from 'pino'
import type { LogLevel } from './config.ts'
import { isTraced } from './tracing.ts'

export type Logger = pino.Logger

/**
 * Writes structured lines to stdout, with values that could be secrets hidden. In a process that is traced, a line has the
 * `trace_id` of the span at work.
 *
 * @param name the process: `api`, `worker`
 * @param write takes each line, instead of stdout
 */
export function logger(name: string, level: LogLevel, write?: (line: string) => void): Logger {
  const options: LoggerOptions = {
    name,
    level,
    ...(isTraced() && { mixin: traceFields }),
    redact: {
      paths: ['req.headers.authorization', 'req.headers.cookie', '*.password', '*.token', '*.secret'],
      censor: '[hidden]',
    },
  }
  return write === undefined ? pino(options) : pino(options, { write })
}

function traceFields() {
  const span = trace.getActiveSpan()?.spanContext()
  return span === undefined ? {} : { trace_id: span.traceId, span_id: span.spanId }
}

/** The fields of every line about a submission, in API and worker. A search for any of them finds the other lines. */
export type SubmissionFields = {
  request: string | null
  /** The id of the run; null before it is recorded. */
  run: string | null
  title: string | null
  /** The effective user. */
  user: string | null
  /** The real user, while impersonating. */
  real_user: string | null
  /** The reason why it was not applied, from the closed catalogue; null when it was applied, and when that is not known yet. */
  code: string | null
}

/** The cause of an expected failure in one line: the message of its innermost cause. */
export function causeOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof Error && error.cause instanceof Error) return causeOf(error.cause)
  return (message.trim().split('\n').at(-1) ?? '').slice(0, 300)
}
