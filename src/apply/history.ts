import type { Registry } from '../models/registry.ts'
import { type LeftEmpty, placeOf } from '../plan/claims.ts'
import type { AuditedChange, ObjectChange } from './audit.ts'
import type { Finding } from './finding.ts'
import { ownerAfter } from './ownership.ts'
import type { ReferenceNames } from './reference-names.ts'

/** The history of objects (docs/adr/0062-history-is-of-objects.md). */

/**
 * @param change the index of the finding's change among those of the document
 * @param label the owner that the request names
 */
export function objectOf(finding: Finding, change: number, label: string | null): ObjectChange {
  const { step, action, row, values, ownership } = finding
  const [[naming = ''] = []] = step.model.identifiers
  const named = action === 'create' || action === 'update' ? values[naming] : undefined
  const name = named === undefined || named === null ? finding.label : String(named)
  const was = row !== undefined && finding.label !== name ? finding.label : null
  const owner = ownerAfter(ownership, step.model.isLabelled && row === undefined ? label : null)
  return { name, was, owner, change, fields: finding.change.fields }
}

/** The changes of rows that lost what they claimed, because it is deleted: the document does not name them. */
export function changesOfLosses(left: readonly LeftEmpty[], names: ReferenceNames): AuditedChange[] {
  const byRow = Map.groupBy(left, ({ row }) => placeOf(row))
  return [...byRow.values()].flatMap((losses) => {
    const [first] = losses
    if (first === undefined) return []
    const { model, pk: key, name, owner } = first.row
    const byField = Map.groupBy(losses, ({ field }) => field)
    const fields = Object.fromEntries(
      [...byField].map(([field, all]) => {
        const gone = all.map(({ claimed }) => claimed)
        return [field, all[0]?.isLink === true ? { from: gone, to: [] } : { from: gone[0], to: null }]
      }),
    )
    const object = { name, was: null, owner, change: null, fields: names.fields(model, fields, owner) }
    return [{ model: model.name, key, action: 'update', fields: [...byField.keys()], object }] as const
  })
}

/**
 * A condition on `object_changes`: rows of this object, by the index of audit rows.
 *
 * @param row the name of the view in the statement @param model in SQL, as `key`
 */
export const isOf = (row: string, model: string, key: string): string =>
  `${row}.objects @> ARRAY[${model} || ' ' || ${key}] AND ${row}.model = ${model} AND ${row}.key = ${key}`

/** The same: rows of an object with this name. @param name in SQL */
export const hasName = (row: string, model: string, name: string): string =>
  `${row}.objects @> ARRAY[${model} || '=' || ${name}] AND ${row}.model = ${model} AND ${row}.name = ${name}`

/**
 * The objects that have, or had, a name: SQL with the columns `model` and `key`.
 *
 * @param models the placeholder of a list of models
 * @param name the placeholder of the name
 * @param owners the placeholder of the owners under which they had it; null for all
 * @param key the placeholder of a key, which finds an object under any name
 */
export function objectsNamed(models: string, name: string, owners = 'NULL', key?: string): string {
  const found = (sign: string, value: string, condition: string) => `SELECT n.model, n.key FROM object_changes n
    WHERE n.objects && ARRAY(SELECT m || '${sign}' || ${value}::text FROM unnest(${models}::text[]) m)
      AND n.model = ANY (${models}::text[]) AND (${owners}::text[] IS NULL OR n.owner = ANY (${owners}::text[])) AND (${condition})`
  const byName = found('=', name, `n.name = ${name} OR n.was = ${name}`)
  return `${byName}${key === undefined ? ' GROUP BY 1, 2' : ` UNION ${found(' ', key, `n.key = ${key}`)}`}`
}

export const applicationModel = 'service_core.application'

/** The provider kinds with their models, for SQL. */
export const kindsText = ({ kinds }: Pick<Registry, 'kinds'>): string =>
  JSON.stringify([...kinds].map(([kind, { name }]) => ({ kind, model: name })))

/** The fields of a change, in SQL; null when they are not known. @param ofObject those that it has @param ofRun those of its run */
export const fieldsOf = (ofObject: string, ofRun: string): string =>
  `CASE 'object' WHEN jsonb_typeof(${ofObject}) THEN ${ofObject} WHEN jsonb_typeof(${ofRun}) THEN ${ofRun} END`

/**
 * Common table expressions that read each apply once, however many of its objects are asked for: `changes`, rows of
 * `object_changes`, and `field_changes`, a row for each field. IS TRUE keeps IN out of the joins: it is hashed whatever the
 * planner expects, which does not know the objects.
 *
 * @param objects a table of objects, as `model` and `key` @param applies the audit rows that changed them, in SQL, as `pk`
 */
export const changesOf = (objects: string, applies: string): string => `changes AS MATERIALIZED (
    SELECT c.* FROM (${applies}) a JOIN object_changes c ON c.audit_pk = a.pk
    WHERE ((c.model, c.key) IN (SELECT model, key FROM ${objects})) IS TRUE
  ), run_changes AS MATERIALIZED (
    SELECT r.id AS run_id, (n.position - 1)::integer AS change, n.value->'fields' AS run_fields FROM runs r CROSS JOIN LATERAL
      jsonb_array_elements(CASE WHEN jsonb_typeof(r.changes) = 'array' THEN r.changes END) WITH ORDINALITY AS n(value, position)
    WHERE r.id IN (SELECT run_id FROM changes) AND ((r.id, n.position - 1) IN (SELECT run_id, change FROM changes)) IS TRUE
  ), field_changes AS (
    SELECT c.model, c.key, f.key AS field, f.value AS change, c.audit_pk, c.position, c.action, c.owner, c.run_id
    FROM changes c LEFT JOIN run_changes n USING (run_id, change), jsonb_each(${fieldsOf('c.fields', 'run_fields')}) f
  )`
