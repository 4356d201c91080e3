import type { Tx } from '../db/client.ts'
import { sql } from '../db/sql.ts'
import type { Actor } from '../permissions.ts'

/** What an audit row says of one object: member names, never values. */
export type Audited = {
  readonly model: string
  readonly key: string | number
  readonly action: string
  readonly members: readonly string[]
}

/**
 * Writes who did what, in the transaction that does it. While somebody acts as another, the row names both.
 *
 * @param action what was done as a whole: `create`, `update`, `view_key`
 */
export function audit(
  tx: Tx,
  { pk, username, impersonator }: Actor,
  action: string,
  changes: readonly Audited[],
  requestId: string,
): void {
  tx.send(sql`
    INSERT INTO audit_rows (actor_pk, actor_name, real_pk, real_name, action, changes, request_id)
    VALUES (${pk}, ${username}, ${impersonator?.pk ?? null}, ${impersonator?.username ?? null}, ${action},
      ${JSON.stringify(changes)}::jsonb, ${requestId})`)
}
