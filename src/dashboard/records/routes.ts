import { z } from 'zod'
import type { Db } from '../../db/client.ts'
import { inTime } from '../../db/in-time.ts'
import { denied } from '../../http/access.ts'
import type { Api } from '../../http/api.ts'
import { type AuditSpan, auditSpans } from '../../lists/audit.ts'
import { queryText } from '../../lists/filters.ts'
import type { Registry } from '../../models/registry.ts'
import { allows } from '../../permissions.ts'
import { readRefusals } from '../../views/refusal.ts'
import { auditPath, refusalsPath } from '../addresses.ts'
import { pageRoute, sendPage } from '../frame.ts'
import { searchAudit } from './audit.ts'
import { auditPage } from './audit-page.ts'
import { refusalsPage } from './refusals-page.ts'

/** The pages of records beside runs. */

/** A text field. Forms send all their fields: an empty one counts as absent. */
const text = queryText(200)
  .transform((sent) => sent.trim() || null)
  .default(null)

/** The key of a row. */
const before = z
  .string()
  .regex(/^[1-9]\d{0,17}$/)
  .nullable()
  .default(null)

const auditQuery = z.strictObject({
  period: z.enum(Object.keys(auditSpans) as [AuditSpan]).default('day'),
  action: text,
  who: text,
  id: text,
  before,
})

const refusalsQuery = z.strictObject({ before })

const rowsOfPage = 50

export function recordRoutes(app: Api, db: Db, registry: Registry): void {
  app.get(refusalsPath, pageRoute({ querystring: refusalsQuery }), async ({ actor, query }, reply) => {
    const before = query.before === null ? null : BigInt(query.before)
    const found = await inTime(readRefusals(db, actor, { before })).catch(() => null)
    return sendPage(reply, refusalsPage(found, before, actor))
  })

  app.get(auditPath, pageRoute({ querystring: auditQuery }), async ({ actor, query }, reply) => {
    if (!allows(actor, 'view_audit')) throw denied(['view_audit'])
    const { period: span, ...asked } = query
    const question = { span, ...asked }
    const found = await inTime(searchAudit(db, actor, question, rowsOfPage)).catch(() => null)
    return sendPage(reply, auditPage({ question, found, registry }, actor))
  })
}
