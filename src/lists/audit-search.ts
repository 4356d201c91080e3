import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { query } from '../db/raw.ts'
import { type AuditEntry, readAuditEntries } from '../views/audit.ts'
import { likeLiterally } from './filters.ts'
import { Values } from './find.ts'

/** The audit as the pages of operators search it: by key from the newest on, and not counted. */

/** How far back, in SQL. The first is the usual one. */
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

const keyRow = z.object({ key: z.string() })

/** @returns at most `size` rows, the newest first, and the key of the last one if there are more */
export async function searchAudit(
  db: Db,
  { span, action, who, id, before }: AuditQuestion,
  size: number,
): Promise<{ readonly rows: readonly AuditEntry[]; readonly next: string | null }> {
  const values = new Values()
  const pattern = () => `lower(${values.bind(`%${likeLiterally(who ?? '')}%`)})`
  const since = auditSpans[span]
  const conditions = [
    ...(since === null ? [] : [`a.at > now() - ${since}`]),
    ...(action === null ? [] : [`a.action = ${values.bind(action)}`]),
    ...(who === null ? [] : [`lower(a.actor_name || ' ' || coalesce(a.real_name, '')) LIKE ${pattern()}`]),
    ...(id === null ? [] : [`(a.request_id = ${values.bind(id)} OR a.run_id::text = lower(${values.bind(id)}))`]),
    ...(before === null ? [] : [`a.pk < ${values.bind(before)}::bigint`]),
  ]
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  const text = `SELECT a.pk::text AS key FROM audit_rows a ${where} ORDER BY a.pk DESC LIMIT ${values.bind(size + 1)}`
  const found = await query(db, keyRow, { text, values: values.list })
  const keys = found.slice(0, size).map(({ key }) => key)
  const rows = keys.length === 0 ? [] : await readAuditEntries(db, keys)
  return { rows, next: found.length > size ? (keys.at(-1) ?? null) : null }
}
