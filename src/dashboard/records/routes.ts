import type { Db } from '../../db/client.ts'
import { inTime } from '../../db/in-time.ts'
import { denied } from '../../http/access.ts'
import type { Api } from '../../http/api.ts'
import { auditOfOperators } from '../../lists/audit.ts'
import { findPage } from '../../lists/list.ts'
import type { Registry } from '../../models/registry.ts'
import { type Actor, allows } from '../../permissions.ts'
import { readAuditEntries } from '../../views/audit.ts'
import { readRefusals } from '../../views/refusal.ts'
import { auditPath, refusalsPath } from '../addresses.ts'
import { pageRoute, sendPage } from '../frame.ts'
import { namesOf } from '../words.ts'
import { type AuditQuestion, auditPage, auditQuery, type FoundAudit } from './audit-page.ts'
import { refusalsPage, refusalsQuery } from './refusals-page.ts'

/** The pages of records beside runs. */

const rowsOfPage = 50
/** The most rows that are counted, which nothing shows: more are found along the order. */
const mostCounted = 1_000

export function recordRoutes(app: Api, db: Db, registry: Registry): void {
  app.get(refusalsPath, pageRoute({ querystring: refusalsQuery }), async ({ actor, query }, reply) => {
    const before = query.before === null ? null : BigInt(query.before)
    const found = await inTime(readRefusals(db, actor, { ...query, before })).catch(() => null)
    return sendPage(reply, refusalsPage(query, found, actor))
  })

  app.get(auditPath, pageRoute({ querystring: auditQuery }), async ({ actor, query: question }, reply) => {
    if (!allows(actor, 'view_audit')) throw denied(['view_audit'])
    const found = await inTime(search(actor, question)).catch(() => null)
    return sendPage(reply, auditPage({ question, found, nameOf: namesOf(registry) }, actor))
  })

  async function search(actor: Actor, { period, action, who, id, before }: AuditQuestion): Promise<FoundAudit> {
    const { keys } = await findPage(db, auditOfOperators, actor, {
      sent: { period, action: action ?? undefined, id: id ?? undefined },
      terms: who === null ? [] : [who],
      size: rowsOfPage + 1,
      mostCounted,
      ...(before !== null && { behind: [before] }),
    })
    const shown = keys.slice(0, rowsOfPage)
    return { rows: await readAuditEntries(db, shown), next: keys.length > rowsOfPage ? String(shown.at(-1)) : null }
  }
}
