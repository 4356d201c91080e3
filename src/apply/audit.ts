import type { EngineTx } from '../db/engine-tx.ts'
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
  readonly action: 'create' | 'update' | 'delete' | 'view_key' | 'read'
  readonly fields: readonly string[]
  /** The value of an act on the queue, which has no secrets. */
  readonly value?: boolean | number
  /** The reason of such an act, in the words of the operator. */
  readonly reason?: string
  /** The change for the history of the object, when it was written. */
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

/** Records the users, the action and the objects, in the transaction of the engine that changes them. */
export function audit(tx: EngineTx, entry: AuditEntry): void {
  const { actorPk, actorName, realPk, realName, action, changes, requestId, runId } = auditRow(entry)
  const insert = `INSERT INTO audit_rows (actor_pk, actor_name, real_pk, real_name, action, changes, request_id, run_id)
    VALUES ($1, $2, $3, $4, $5, $6::jsonb, $7, $8::uuid)`
  const values = [actorPk, actorName, realPk, realName, action, JSON.stringify(changes), requestId, runId]
  if (entry.changes.every(({ object }) => object === undefined)) tx.send({ text: insert, values })
  else
    tx.send({
      text: `WITH audited AS (${insert} RETURNING pk, at, run_id) ${insertObjects('audited', '$9')}`,
      values: [...values, listOf(entry.changes, false)],
    })
}

/**
 * The part of a statement that writes the history beside the audit row.
 *
 * @param audited the name of the audit row in the statement, with `pk`, `at` and `run_id`
 * @param list the placeholder of the result of `listOf`
 */
export const insertObjects = (audited: string, list: string): string =>
  `INSERT INTO run_objects (audit_pk, at, run_id, position, model, key, name, was, owner, action, change, fields)
    SELECT a.pk, a.at, a.run_id, o.position, o.model, o.key, o.name, o.was, o.owner, o.action, o.change, o.fields
    FROM ${audited} a, jsonb_to_recordset(${list}::jsonb) AS o(position integer, model text, key text, name text, was text,
      owner text, action text, change integer, fields jsonb)`

/** @param isRun whether a run has the fields of its changes: then the history has their index */
export const listOf = (changes: readonly AuditedChange[], isRun: boolean): string =>
  JSON.stringify(
    changes.flatMap(({ model, key, action, object }, position) => {
      if (object === undefined) return []
      const { change, fields, ...named } = object
      const what = isRun && change !== null ? { change } : { fields }
      return [{ position, model, key: String(key), action, ...named, ...what }]
    }),
  )
