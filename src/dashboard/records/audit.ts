import type { Db } from '../../db/client.ts'
import { type AuditSpan, auditOfOperators } from '../../lists/audit.ts'
import { findPage } from '../../lists/list.ts'
import type { Actor } from '../../permissions.ts'
import { type AuditEntry, readAuditEntries } from '../../views/audit.ts'

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

/** @property next the key of the last row if there are more */
export type FoundAudit = { readonly rows: readonly AuditEntry[]; readonly next: string | null }

/** The most rows that are counted, which nothing shows: more are found along the order. */
const mostCounted = 1_000

/** @returns up to `size` rows, the newest first */
export async function searchAudit(
  db: Db,
  actor: Actor,
  { span: period, action, who, id, before }: AuditQuestion,
  size: number,
): Promise<FoundAudit> {
  const { keys } = await findPage(db, auditOfOperators, actor, {
    sent: { period, action: action ?? undefined, id: id ?? undefined },
    terms: who === null ? [] : [who],
    size: size + 1,
    mostCounted,
    ...(before !== null && { behind: [before] }),
  })
  const shown = keys.slice(0, size)
  const rows = shown.length === 0 ? [] : await readAuditEntries(db, shown)
  return { rows, next: keys.length > size ? String(shown.at(-1)) : null }
}
