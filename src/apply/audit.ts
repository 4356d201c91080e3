import type { EngineTx } from '../db/engine-tx.ts'
import type { Actor } from '../permissions.ts'

/** A change of one row, or of the queue, as the audit row records it: field names, and never values of rows. */
export type AuditedChange = {
  readonly model: string
  readonly key: string | number
  readonly action: 'create' | 'update' | 'delete' | 'view_key' | 'read'
  readonly fields: readonly string[]
  /** Of an act on the queue, which has no secrets. */
  readonly value?: boolean | number
}

export type AuditEntry = {
  /** The effective user; while impersonating, the row names the real user too. */
  readonly actor: Pick<Actor, 'pk' | 'username'> & {
    readonly impersonator?: Pick<Actor, 'pk' | 'username'> | undefined
  }
  /** The action as a whole: such as `apply`, `create`, `view_key`, `read` or `pause_queue`. */
  readonly action: string
  readonly changes: readonly AuditedChange[]
  readonly requestId?: string
  readonly runId?: string
}

/** The columns of an audit row. */
export const auditRow = ({ actor: { pk, username, impersonator }, action, changes, requestId, runId }: AuditEntry) => ({
  actorPk: pk,
  actorName: username,
  realPk: impersonator?.pk ?? null,
  realName: impersonator?.username ?? null,
  action,
  changes: [...changes],
  requestId: requestId ?? null,
  runId: runId ?? null,
})

/** Records who did what, in the transaction of the engine that does it. */
export function audit(tx: EngineTx, entry: AuditEntry): void {
  const { actorPk, actorName, realPk, realName, action, changes, requestId, runId } = auditRow(entry)
  tx.send({
    text: `INSERT INTO audit_rows (actor_pk, actor_name, real_pk, real_name, action, changes, request_id, run_id)
      VALUES ($1, $2, $3, $4, $5, $6::jsonb, $7, $8::uuid)`,
    values: [actorPk, actorName, realPk, realName, action, JSON.stringify(changes), requestId, runId],
  })
}
