import { PgInstrumentation } from '@opentelemetry/instrumentation-pg'
import pg from 'pg'

/**
 * Makes a span of each statement of a traced request or run, below Prisma, the pipeline and the queue alike. The driver is
 * patched by hand: hooks on loading modules would have to be there before everything else.
 */
export function traceStatements(): void {
  const instrumentation = new PgInstrumentation({
    enabled: false,
    requireParentSpan: true,
    requestHook: (span, { query: { text } }) => {
      const summary = summaryOf(text)
      span.updateName(summary).setAttribute('db.query.summary', summary)
    },
  })
  for (const { name, patch } of instrumentation.getModuleDefinitions()) patch?.(name === 'pg' ? pg : pg.Pool)
}

/** `FOR UPDATE` locks, and `DO UPDATE SET` belongs to an INSERT. */
const change = /\b(INSERT|UPDATE|DELETE)\s+(?:INTO\s+|FROM\s+)?(?!(?:OF|SET|SKIP|NOWAIT)\b)(?:"?\w+"?\.)?"?(\w+)/i
const read = /\b(SELECT)\b.*?\bFROM\s+(?:"?\w+"?\.)?"?(\w+)\b(?!"?\()/is

/** `SELECT users`, `INSERT runs`, `COMMIT`: the first table that a statement changes, or else reads. */
export function summaryOf(text: string): string {
  const [, verb, table] = change.exec(text) ?? read.exec(text) ?? []
  const word = verb ?? /\w+/.exec(text)?.[0] ?? 'unknown'
  return table === undefined ? word.toUpperCase() : `${word.toUpperCase()} ${table}`
}
