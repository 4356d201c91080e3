import type { EngineTx } from '../db/engine-tx.ts'
import type { Actor } from '../permissions.ts'

/** A change of one row, as the audit row records it: field names, never values. */
export type AuditedChange = {
  readonly model: string
  readonly key: string | number
  readonly action: 'create' | 'update' | 'delete' | 'view_key'
  readonly fields: readonly string[]
}

export type AuditEntry = {
  /** The effective user; while impersonating, the row names the real user too. */
  readonly actor: Pick<Actor, 'pk' | 'username' | 'impersonator'>
  /** The action as a whole: `apply`, `bootstrap`, `create`, `update` or `view_key`. */
  readonly action: string
  readonly changes: readonly AuditedChange[]
  readonly requestId?: string
  readonly runId?: string
}

/** Records who did what, in the transaction that does it. */
export function audit(tx: EngineTx, { actor, action, changes, requestId, runId }: AuditEntry): void {
  const { pk, username, impersonator } = actor
  const real = [impersonator?.pk ?? null, impersonator?.username ?? null]
  tx.send({
    text: `INSERT INTO audit_rows (actor_pk, actor_name, real_pk, real_name, action, changes, request_id, run_id)
      VALUES ($1, $2, $3, $4, $5, $6::jsonb, $7, $8::uuid)`,
    values: [pk, username, ...real, action, JSON.stringify(changes), requestId ?? null, runId ?? null],
  })
}
