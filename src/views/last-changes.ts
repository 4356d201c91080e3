import { z } from 'zod'
import { applicationModel, kindsText } from '../apply/history.ts'
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

/** The owner of an object as it is decides who sees its last change: no change is searched in the applies of many objects. */
const text = `WITH objects AS (
    SELECT a.pk AS application, $2 AS model, a.pk::text AS key, a.owner FROM applications a WHERE a.pk = ANY ($1::uuid[])
    UNION ALL SELECT a.pk, k.model, p.pk::text, p.owner FROM applications a JOIN providers p ON p.pk = a.provider_pk
      JOIN jsonb_to_recordset($3::jsonb) AS k(kind text, model text) USING (kind) WHERE a.pk = ANY ($1::uuid[])
  )
  SELECT DISTINCT ON (application) application, r.at, r.actor_pk AS "actorPk", r.actor_name AS "actorName", r.real_name AS "realName"
  FROM objects o JOIN jsonb_to_recordset($4::jsonb) AS v(model text, owners text[]) USING (model), LATERAL (
    SELECT * FROM audit_rows a WHERE a.objects @> ARRAY[o.model || ' ' || o.key] ORDER BY pk DESC LIMIT 1) r
  WHERE v.owners IS NULL OR o.owner = ANY (v.owners)
  ORDER BY application, r.pk DESC`
