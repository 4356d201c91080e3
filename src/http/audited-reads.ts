import type { FastifyInstance, FastifyRequest } from 'fastify'
import { auditRow } from '../apply/audit.ts'
import type { Db } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'

/** The path of a request, without its query, which may hold anything. */
const pathOf = (url: string): string => url.split('?', 1).join('').slice(0, 500)

/**
 * Writes an audit row for each read of a user who impersonates another, before the answer is sent. Writes have their own audit
 * rows.
 */
export function auditImpersonatedReads(app: FastifyInstance, db: Db): void {
  app.addHook('onSend', async (request, { statusCode }) => {
    const { method } = request
    if (statusCode >= 400 || (method !== 'GET' && method !== 'HEAD')) return
    await auditRead(db, request)
  })
}

/** Writes the audit row before an answer that Fastify does not send itself. */
async function auditRead(db: Db, { url, actor, id }: FastifyRequest): Promise<void> {
  if (actor?.impersonator === undefined) return
  const changes = [{ model: 'path', key: pathOf(url), action: 'read', fields: [] }] as const
  const data = auditRow({ actor, action: 'read', changes, requestId: id })
  await inTime(db.auditRow.create({ data, select: { pk: true } }))
}
