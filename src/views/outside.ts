import { z } from 'zod'
import { isOf, objectsNamed } from '../apply/history.ts'
import type { Db } from '../db/client.ts'
import { query } from '../db/raw.ts'
import type { Model } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { isSame } from '../plan/same-value.ts'
import { toMaskedValues } from '../plan/storage.ts'
import { markerText } from '../sides.ts'
import { applicationModel, fieldsOf, kindsText, type Of } from './history.ts'

/**
 * Whether an application, or its provider, is not as its recorded changes left it: changed or deleted past the service
 * (docs/adr/0065-changed-outside-is-compared-on-reading.md).
 */

/** @property present the row; null when it is gone @property recorded the last value of each field, where it is known */
const row = z.object({
  model: z.string(),
  present: z.looseObject({ pk: z.union([z.string(), z.int()]) }).nullable(),
  recorded: z.record(z.string(), z.unknown()).nullable(),
  isGone: z.boolean(),
})

/** The newest changes of an object that are read. */
const mostRead = 1_000

/**
 * @param owners under which the caller sees applications; null: all
 * @returns whether an application that has, or had, this slug, or that has this key, was changed or deleted past the service, or
 *   its provider was; null when that is not known
 */
export async function isApplicationOutside(
  db: Db,
  registry: Registry,
  { slug, key = null }: Of,
  owners: readonly string[] | null,
): Promise<boolean | null> {
  const rows = await query(db, row, { text, values: [applicationModel, slug, kindsText(registry), owners, key] })
  const answers = rows.map(({ model: name, present, recorded, isGone }) => {
    const model = registry.byName(name)
    if (present === null) return isGone
    return recorded === null || model === undefined ? null : isChanged(model, toMaskedValues(model, present), recorded)
  })
  return answers.includes(true) || (answers.includes(false) ? false : null)
}

/** Secrets are not compared, nor lists of references: changes show the names that they had. */
function isChanged(
  model: Model,
  values: Readonly<Record<string, unknown>>,
  recorded: Readonly<Record<string, unknown>>,
): boolean {
  return Object.entries(recorded).some(([name, to]) => {
    const field = model.fields.get(name)
    const value = values[name] ?? null
    if (field === undefined || field.secret || markerText(to) !== undefined) return false
    if (field.reference === undefined) return !isSame(field, value, to)
    return !Array.isArray(to) && (value === null) !== (to === null)
  })
}

const text = `WITH named AS (SELECT key FROM (${objectsNamed('ARRAY[$1]', '$2', '$4', '$5')}) recorded
  ), objects AS (
    SELECT $1 AS model, n.key, to_jsonb(a) AS present FROM named n LEFT JOIN applications a ON a.pk = n.key::uuid
    UNION ALL SELECT k.model, p.pk::text, to_jsonb(p) FROM named n JOIN applications a ON a.pk = n.key::uuid
      JOIN providers p ON p.pk = a.provider_pk JOIN jsonb_to_recordset($3::jsonb) AS k(kind text, model text) USING (kind)
  )
  SELECT o.model, o.present, known.recorded,
    last.action <> 'delete' AND NOT EXISTS (SELECT FROM applications a WHERE a.slug = last.name) AS "isGone"
  FROM objects o, LATERAL (
    SELECT r.action, r.name FROM object_changes r WHERE ${isOf('r', 'o.model', 'o.key')}
    ORDER BY r.audit_pk DESC, r.position DESC LIMIT 1
  ) last, LATERAL (
    SELECT jsonb_object_agg(name, value) AS recorded FROM (
      SELECT DISTINCT ON (f.key) f.key AS name, f.value->'to' AS value FROM (
        SELECT * FROM object_changes r WHERE ${isOf('r', 'o.model', 'o.key')} ORDER BY r.audit_pk DESC LIMIT ${mostRead}
      ) c LEFT JOIN runs ON runs.id = c.run_id, jsonb_each(${fieldsOf('c', 'runs')}) f
      WHERE jsonb_typeof(f.value) = 'object' ORDER BY f.key, c.audit_pk DESC, c.position DESC
    ) newest
  ) known`
