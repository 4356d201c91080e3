import type { Db } from '../../db/client.ts'
import { inTime } from '../../db/in-time.ts'
import { denied } from '../../http/access.ts'
import type { Api } from '../../http/api.ts'
import { auditList, auditOfOperators } from '../../lists/audit.ts'
import { findPage } from '../../lists/list.ts'
import type { Registry } from '../../models/registry.ts'
import { type Actor, allows } from '../../permissions.ts'
import { type Retention, readDue } from '../../runs/retention.ts'
import { readAuditEntries } from '../../views/audit.ts'
import { readRefusals } from '../../views/refusal.ts'
import { auditPath, refusalsPath, retentionPath } from '../addresses.ts'
import { pageRoute, sendPage } from '../frame.ts'
import { ifInTime } from '../late.ts'
import { namesOf } from '../words.ts'
import { type AuditQuestion, auditPage, auditQuery, type FoundAudit } from './audit-page.ts'
import { refusalsPage, refusalsQuery } from './refusals-page.ts'
import { retentionPage } from './retention-page.ts'

/** The pages of records beside runs. */

const rowsOfPage = 50
/** The most rows that are counted, which nothing shows: more are found along the order. */
const mostCounted = 1_000

const changeActions = ['create', 'update', 'delete']

export function recordRoutes(app: Api, db: Db, registry: Registry, retention: Retention): void {
  app.get(retentionPath, pageRoute({}), async ({ actor }, reply) =>
    sendPage(reply, retentionPage(retention, await ifInTime(readDue(db, retention)), actor)),
  )

  const audit = auditOfOperators(auditList(registry))
  app.get(refusalsPath, pageRoute({ querystring: refusalsQuery }), async ({ actor, query }, reply) => {
    const before = query.before === null ? null : BigInt(query.before)
    const found = await inTime(readRefusals(db, actor, { ...query, before })).catch(() => null)
    return sendPage(reply, refusalsPage(query, found, actor))
  })

  app.get(auditPath, pageRoute({ querystring: auditQuery }), async ({ actor, query: question }, reply) => {
    if (!allows(actor, 'view_audit')) throw denied(['view_audit'])
    const object = question.object === null ? undefined : audit.filters.object?.schema.safeParse(question.object)
    const wrong = object?.error?.issues[0]?.message ?? null
    const found = wrong === null ? await inTime(search(actor, question, object?.data)).catch(() => null) : null
    return sendPage(reply, auditPage({ question, found, wrong, nameOf: namesOf(registry) }, actor))
  })

  async function search(
    actor: Actor,
    { period, action, who, id, unchanged, before }: AuditQuestion,
    object: unknown,
  ): Promise<FoundAudit> {
    // An apply makes, changes and deletes, too.
    const acted = action !== null && { [changeActions.includes(action) ? 'change' : 'action']: action }
    const { keys } = await findPage(db, audit, actor, {
      sent: { period, ...acted, object, id: id ?? undefined, changed: (unchanged === '' && id === null) || undefined },
      terms: who === null ? [] : [who],
      size: rowsOfPage + 1,
      mostCounted,
      ...(before !== null && { behind: [before] }),
    })
    const shown = keys.slice(0, rowsOfPage)
    return { rows: await readAuditEntries(db, shown), next: keys.length > rowsOfPage ? String(shown.at(-1)) : null }
  }
}
