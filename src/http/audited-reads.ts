import type { FastifyInstance } from 'fastify'
import { auditRow } from '../apply/audit.ts'
import type { Db } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'
import { isReading } from './headers.ts'

/** Writes an audit row for each read while impersonating, before the answer is sent. Writes have their own. */
export function auditImpersonatedReads(app: FastifyInstance, db: Db): void {
  app.addHook('onSend', async ({ method, url, actor, id }, { statusCode }) => {
    if (statusCode >= 400 || !isReading(method) || actor?.impersonator === undefined) return
    // Without its query, which may hold anything.
    const key = url.split('?', 1).join('').slice(0, 500)
    const changes = [{ model: 'path', key, action: 'read', fields: [] }] as const
    const data = auditRow({ actor, action: 'read', changes, requestId: id })
    await inTime(db.auditRow.create({ data, select: { pk: true } }))
  })
}
