import type { EngineTx } from '../db/engine-tx.ts'
import type { Statement } from '../db/raw.ts'
import type { Actor } from '../permissions.ts'
import type { Change } from './changes.ts'

/** The change of one object by a document or a request, for the object's history. */
export type ObjectChange = {
  /** The object's name afterwards. */
  readonly name: string
  /** The name before a rename. */
  readonly was: string | null
  /** The label under which it is managed afterwards, or was managed before it was deleted. */
  readonly owner: string | null
  /** The index among the document's changes; null for an object that the document does not name. */
  readonly change: number | null
  readonly fields: Change['fields']
}

/** A change of one row, of a run, or of the queue, as the audit row records it: field names, and never values of rows. */
export type AuditedChange = {
  readonly model: string
  readonly key: string | number
  readonly action: 'create' | 'update' | 'delete' | 'view_key' | 'read' | 'exchange'
  readonly fields: readonly string[]
  /** The value of an act on the queue, which has no secrets. */
  readonly value?: boolean | number
  /** The reason of such an act, in the words of the operator; the job of an exchange, or why it got no token. */
  readonly reason?: string
  /** The name of the object, by which histories find it, and what was written. */
  readonly object?: ObjectChange
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

export const auditRow = ({ actor: { pk, username, impersonator }, action, changes, requestId, runId }: AuditEntry) => ({
  actorPk: pk,
  actorName: username,
  realPk: impersonator?.pk ?? null,
  realName: impersonator?.username ?? null,
  action,
  changes: changes.map(({ object, ...change }) => change),
  requestId: requestId ?? null,
  runId: runId ?? null,
})

/** The columns and values of an audit row with the histories of its objects (docs/adr/0062-history-is-of-objects.md). */
export function auditValues(entry: AuditEntry): { readonly columns: string; readonly values: readonly unknown[] } {
  const { actorPk, actorName, realPk, realName, action, requestId, runId } = auditRow(entry)
  const changes = entry.changes.map((change) => ({ ...change, object: storedObject(change, runId !== null) }))
  return {
    columns: 'actor_pk, actor_name, real_pk, real_name, action, changes, objects, request_id, run_id',
    values: [
      ...[actorPk, actorName, realPk, realName, action, JSON.stringify(changes), objectsOf(entry.changes)],
      ...[requestId, runId],
    ],
  }
}

/** A run has the fields of its changes itself: `change` says which. */
function storedObject({ object }: AuditedChange, isRun: boolean): Partial<ObjectChange> | undefined {
  if (object === undefined) return undefined
  const { change, fields, ...named } = object
  return { ...named, ...(isRun && change !== null ? { change } : { fields }) }
}

/** The keys and the names of the objects, by which histories find the row; null when there are none. */
function objectsOf(changes: readonly AuditedChange[]): string[] | null {
  const all = changes.flatMap(({ model, key, object }) =>
    object === undefined
      ? []
      : [`${model} ${key}`, `${model}=${object.name}`, ...(object.was === null ? [] : [`${model}=${object.was}`])],
  )
  return all.length === 0 ? null : [...new Set(all)]
}

/** Records the users, the action and the objects, in the transaction that changes them. */
export function auditStatement(entry: AuditEntry): Statement {
  const { columns, values } = auditValues(entry)
  const text = `INSERT INTO audit_rows (${columns}) VALUES ($1, $2, $3, $4, $5, $6::jsonb, $7::text[], $8, $9::uuid)`
  return { text, values }
}

/** The same, in the transaction of the engine. */
export const audit = (tx: EngineTx, entry: AuditEntry): void => tx.send(auditStatement(entry))
