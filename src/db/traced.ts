import { AsyncResource } from 'node:async_hooks'
import type pg from 'pg'
import type { NewSpan, Span, Tracing } from '../tracing.ts'
import { failureCode } from './errors.ts'
import { summaryOf } from './statement-summary.ts'

/** Longer statements are shortened. */
const longestText = 2_000

/**
 * Makes a span of each statement of a traced request or run, after the conventions of OpenTelemetry for databases. It has the
 * text with its placeholders, and never a value: a failure is recorded by its SQLSTATE, because messages quote values.
 */
export function traceStatements(pool: pg.Pool, { startPart }: Tracing): void {
  // A request that waits for a connection would otherwise go on as a part of the request that releases one.
  const connect = pool.connect.bind(pool) as (callback?: () => void) => unknown
  Object.assign(pool, { connect: (callback?: () => void) => connect(callback && AsyncResource.bind(callback)) })
  pool.on('connect', (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown
    const traced = (...args: unknown[]) => {
      const text = textOf(args[0])
      const span = text === undefined ? undefined : startPart(() => statementSpan(client, text))
      return span === undefined ? query(...args) : endedWith(span, query, args)
    }
    Object.assign(client, { query: traced })
  })
}

/** @returns undefined for other uses of the connection, such as a COPY */
function textOf(asked: unknown): string | undefined {
  if (typeof asked === 'string') return asked
  const { text, submit } = Object(asked)
  return typeof text === 'string' && submit === undefined ? text : undefined
}

function statementSpan({ host, port, database = '' }: pg.Client, text: string): NewSpan {
  const summary = summaryOf(text)
  const [operation = '', table] = summary.split(' ')
  return {
    name: summary,
    kind: 'client',
    attributes: {
      'db.system.name': 'postgresql',
      'db.namespace': database,
      'db.operation.name': operation,
      ...(table !== undefined && { 'db.collection.name': table }),
      'db.query.summary': summary,
      'db.query.text': text.slice(0, longestText),
      'server.address': host,
      'server.port': port,
    },
  }
}

/** Ends the span when the statement is answered, to a callback or by a promise. */
function endedWith(span: Span, query: (...args: unknown[]) => unknown, args: unknown[]): unknown {
  const end = (error?: unknown) => {
    if (error) fail(span, error)
    span.end()
  }
  const callback = args.at(-1)
  if (typeof callback === 'function') {
    const ended = (error: unknown, ...results: unknown[]) => {
      end(error)
      callback(error, ...results)
    }
    return query(...args.slice(0, -1), ended)
  }
  const answer = query(...args)
  if (answer instanceof Promise) answer.then(() => end(), end)
  else end()
  return answer
}

function fail(span: Span, error: unknown): void {
  const code = failureCode(error)
  if (code !== undefined) span.set({ 'db.response.status_code': code })
  span.fail(code ?? '_OTHER')
}
