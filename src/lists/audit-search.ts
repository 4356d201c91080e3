import { z } from 'zod'
import { type Db, transaction } from '../db/client.ts'
import { query, unprepared, Values } from '../db/raw.ts'
import { type AuditEntry, readAuditEntries } from '../views/audit.ts'
import { likeLiterally } from './filters.ts'

/** The audit as the pages of operators search it: by key from the newest on, and not counted. */

/** The periods of a search, in SQL. The first is the default. */
export const auditSpans = {
  day: "interval '1 day'",
  week: "interval '7 days'",
  month: "interval '30 days'",
  all: null,
} as const
export type AuditSpan = keyof typeof auditSpans

export type AuditQuestion = {
  readonly span: AuditSpan
  readonly action: string | null
  /** A part of the name of the user, or of the user who impersonated it. */
  readonly who: string | null
  /** The id of a run or of a request. */
  readonly id: string | null
  /** Only rows with a smaller key. */
  readonly before: string | null
}

/** The most rows that one search scans for conditions without an index: a part of a name, or an action in a period. */
const mostLooked = 5_000

const foundRow = z.object({ keys: z.array(z.string()), looked: z.string().nullable() })

/** @property looked the row at which the search ended: older ones may match too */
export type FoundAudit = {
  readonly rows: readonly AuditEntry[]
  readonly next: string | null
  readonly looked: string | null
}

/** @returns up to `size` rows, the newest first, and the key of the last one if there are more */
export async function searchAudit(
  db: Db,
  { span, action, who, id, before }: AuditQuestion,
  size: number,
): Promise<FoundAudit> {
  const values = new Values()
  const since = auditSpans[span]
  const isOther = action !== null && action !== 'apply'
  const quick = [
    // The condition has the form of the partial index.
    ...(isOther ? ["a.action <> 'apply'"] : []),
    ...(id === null ? [] : [idIs(id, values)]),
    ...(before === null ? [] : [`a.pk < ${values.bind(before)}::bigint`]),
  ]
  const slow = [
    ...(action === null ? [] : [`a.action = ${values.bind(action)}`]),
    ...(who === null ? [] : [nameHas(who, values)]),
  ]
  const text = `WITH newest AS MATERIALIZED (
      SELECT a.pk, ${since === null ? 'true' : `a.at > now() - ${since}`} AS within, ${slow.join(' AND ') || 'true'} AS hit
      FROM audit_rows a WHERE ${quick.join(' AND ') || 'true'} ORDER BY a.pk DESC LIMIT ${mostLooked}
    ), found AS MATERIALIZED (SELECT pk FROM newest WHERE within AND hit LIMIT ${values.bind(size + 1)})
    SELECT ARRAY(SELECT found.pk::text FROM found ORDER BY found.pk DESC) AS keys, CASE WHEN (SELECT count(*) FROM found) <= ${size}
      THEN (SELECT CASE WHEN within THEN pk::text END FROM newest OFFSET ${mostLooked - 1} LIMIT 1) END AS looked`
  const statement = unprepared({ text, values: values.list })
  const [found] = await transaction(db, (tx) => query(tx, foundRow, statement), { plans: 'auto' })
  const { keys: all, looked } = found ?? { keys: [], looked: null }
  const keys = all.slice(0, size)
  const rows = keys.length === 0 ? [] : await readAuditEntries(db, keys)
  return { rows, next: all.length > size ? (keys.at(-1) ?? null) : looked, looked }
}

function nameHas(who: string, { bind }: Values): string {
  return `lower(a.actor_name || ' ' || coalesce(a.real_name, '')) LIKE lower(${bind(`%${likeLiterally(who)}%`)})`
}

/** A request and a run are each found by their index. */
function idIs(id: string, { bind }: Values): string {
  const run = z.guid().safeParse(id.toLowerCase()).data
  const ofRun = run === undefined ? [] : [`SELECT r.pk FROM audit_rows r WHERE r.run_id = ${bind(run)}::uuid`]
  const all = [`SELECT q.pk FROM audit_rows q WHERE q.request_id = ${bind(id)}`, ...ofRun]
  return `a.pk IN (${all.join(' UNION ALL ')})`
}
