import { z } from 'zod'
import { applicationModel, isOf, kindsText } from '../apply/history.ts'
import type { Db } from '../db/client.ts'
import { query } from '../db/raw.ts'
import type { Registry } from '../models/registry.ts'
import { type Actor, allows, mayNameUser } from '../permissions.ts'
import { seenBy } from './history.ts'

const row = z.object({
  application: z.guid(),
  at: z.date(),
  actorPk: z.int().nullable(),
  actorName: z.string(),
  realName: z.string().nullable(),
})

/** @property user null for callers who may not see it: the real one, behind an effective user */
export type LastChange = { readonly at: Date; readonly user: string | null }

/**
 * The last change of applications, or of their providers, and its user, as far as a history shows it to the caller.
 *
 * @param pks one page or less
 * @returns the changes by the key of the application; nothing for one of which no change is recorded
 */
export async function readLastChanges(
  db: Db,
  registry: Registry,
  actor: Actor,
  pks: readonly string[],
): Promise<ReadonlyMap<string, LastChange>> {
  if (pks.length === 0) return new Map()
  const rows = await query(db, row, {
    text,
    values: [pks, applicationModel, kindsText(registry), JSON.stringify(seenBy(registry, actor))],
  })
  return new Map(
    rows.map(({ application: of, at, actorPk, actorName, realName }) => [
      of,
      { at, user: mayNameUser(actor, actorPk) ? ((allows(actor, 'view_user') ? realName : null) ?? actorName) : null },
    ]),
  )
}

const text = `WITH objects AS (
    SELECT a.pk AS application, $2 AS model, a.pk::text AS key FROM applications a WHERE a.pk = ANY ($1::uuid[])
    UNION ALL SELECT a.pk, k.model, p.pk::text FROM applications a JOIN providers p ON p.pk = a.provider_pk
      JOIN jsonb_to_recordset($3::jsonb) AS k(kind text, model text) USING (kind) WHERE a.pk = ANY ($1::uuid[])
  ), last AS (
    SELECT DISTINCT ON (objects.application) objects.application, o.audit_pk, o.at
    FROM objects JOIN jsonb_to_recordset($4::jsonb) AS v(model text, owners text[]) USING (model), LATERAL (
      SELECT r.audit_pk, r.at FROM object_changes r
      WHERE ${isOf('r', 'objects.model', 'objects.key')} AND (v.owners IS NULL OR r.owner = ANY (v.owners))
      ORDER BY r.audit_pk DESC LIMIT 1) o
    ORDER BY objects.application, o.audit_pk DESC
  )
  SELECT last.application, last.at, a.actor_pk AS "actorPk", a.actor_name AS "actorName", a.real_name AS "realName"
  FROM last JOIN audit_rows a ON a.pk = last.audit_pk`
