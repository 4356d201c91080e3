import { z } from 'zod'
import { change } from '../apply/changes.ts'
import { applicationModel, fieldsOf, isOf, kindsText, objectsNamed } from '../apply/history.ts'
import type { Db } from '../db/client.ts'
import { query } from '../db/raw.ts'
import type { Registry } from '../models/registry.ts'
import { type Actor, allows, allowsSome, mayNameUser, ownersWith } from '../permissions.ts'
import { pipelineForm } from '../pipeline.ts'
import { mayReadRun, pipelineShown } from '../runs/options.ts'
import { person } from './audit.ts'
import { wasAnothers, withoutFrom } from './former-owner.ts'

/** The history of an application: the changes of it and of its providers, each with its user and its run. */

const personShown = person.nullable().meta({
  description: 'Null for callers without `view_user`, unless it is the caller. `pk` is null for the service.',
})

export const historyEntry = z
  .object({
    at: z.iso.datetime(),
    action: z.enum(['create', 'update', 'delete']),
    model: z.string(),
    key: z.string(),
    name: z.string().meta({ description: 'Of the object, afterwards.' }),
    was: z.string().nullable().meta({ description: 'Its name before, of a rename.' }),
    owner: z.string().nullable(),
    fields: change.shape.fields.nullable().meta({
      description: 'From -> to. Null once the run was deleted, and for changes that a version before 0.3.0 made.',
    }),
    user: personShown,
    real_user: personShown.meta({ description: 'Who impersonated the user.' }),
    run: z.guid().nullable().meta({ description: 'Null for a single write, and for callers who may not see the run.' }),
    pipeline: pipelineForm.nullable().meta({ description: 'The job that submitted `run`.' }),
    request_id: z.string().nullable(),
  })
  .meta({ id: 'HistoryEntry' })

export type HistoryEntry = z.output<typeof historyEntry>

/** The part of a history that is read, the newest first. @property before only entries that are older than this; null: all */
type HistoryRange = { readonly before: string | null; readonly size: number }

/** An entry, and facts about it for pages. @property run null when there is none that the caller sees */
export type Recorded = {
  readonly entry: HistoryEntry
  readonly cursor: string
  readonly run: { readonly submitterPk: number | null; readonly hasDocument: boolean } | null
}

const row = historyEntry.omit({ pipeline: true }).extend({
  at: z.date(),
  fields: z.unknown(),
  cursor: z.string(),
  options: z.unknown(),
  submitterPk: z.int().nullable(),
  hasDocument: z.boolean(),
})

/** The application, by one of the two. */
export type Of = { readonly slug: string | null; readonly key?: string | null }

/**
 * Reads a part of the history of all applications that have, or had, this slug, or of the one with this key.
 *
 * @returns undefined when this caller sees no such application; `next`: the start of the next part; `owners`: those whose
 * applications the caller sees, null: all
 */
export async function readHistory(
  db: Db,
  registry: Registry,
  { slug, key = null }: Of,
  actor: Actor,
  { before, size }: HistoryRange,
) {
  const [audited = null, position = null] = before?.split('.') ?? []
  const seen = seenBy(registry, actor)
  const owners = seen.find(({ model }) => model === applicationModel)?.owners ?? null
  const rows = await query(db, row, {
    text: historyText,
    values: [
      ...[applicationModel, slug, kindsText(registry), JSON.stringify(seen)],
      ...[audited, position === null ? null : Number(position), size + 1],
      // A slug that an application of another owner has or had finds nothing.
      ...[owners, key],
    ],
  })
  if (rows.length === 0 && before === null) return undefined
  const entries = rows.slice(0, size)
  return {
    entries: entries.map((each) => ({
      entry: toEntry(each, actor, seen),
      cursor: each.cursor,
      run: seesRun(each, actor) ? each : null,
    })),
    next: rows.length > size ? (entries.at(-1)?.cursor ?? null) : null,
    owners,
  }
}

/** Whether an application that the caller sees has or had this slug. */
export async function hadSlug(db: Db, registry: Registry, text: string, actor: Actor): Promise<boolean> {
  const slug = text.normalize('NFC')
  if (!/^[\w-]+$/.test(slug) || !allowsSome(actor, 'view_application')) return false
  return (await readHistory(db, registry, { slug }, actor, { before: null, size: 1 })) !== undefined
}

/** Objects of a model that the caller sees: all of them, or those of some owners. */
export type SeenObjects = { readonly model: string; readonly owners: readonly string[] | null }

/** @returns nothing for a model of which the caller sees no object */
export function seenBy({ models }: Pick<Registry, 'models'>, actor: Actor): SeenObjects[] {
  return models.flatMap(({ name, resource }) => {
    const owners = ownersWith(actor, `view_${resource}`)
    return owners?.length === 0 ? [] : [{ model: name, owners }]
  })
}

/**
 * `named` are the applications, `held` the providers that they have, and `beside` those that a submission or a request wrote
 * together with one of them: it had them once.
 */
const historyText = `WITH named AS (
    SELECT key FROM (${objectsNamed('ARRAY[$1]', '$2', '$8', '$9')}) recorded
    UNION SELECT pk::text FROM applications
      WHERE (slug = $2 OR pk = $9::text::uuid) AND ($8::text[] IS NULL OR owner = ANY ($8::text[]))
  ), held AS (
    SELECT a.provider_pk AS pk FROM applications a JOIN named ON a.pk = named.key::uuid WHERE a.provider_pk IS NOT NULL
    UNION SELECT b.provider_pk FROM backchannel_providers b JOIN named ON b.application_pk = named.key::uuid
  ), beside AS (
    SELECT p.model, p.key FROM named JOIN object_changes a ON ${isOf('a', '$1', 'named.key')}
      LEFT JOIN runs r ON r.id = a.run_id JOIN object_changes p ON p.audit_pk = a.audit_pk
      JOIN jsonb_to_recordset($3::jsonb) AS k(kind text, model text) ON k.model = p.model
    WHERE a.run_id IS NULL OR r.slug IS NOT NULL
  ), objects AS (
    SELECT $1 AS model, key FROM named UNION SELECT model, key FROM beside
    UNION SELECT k.model, p.pk::text FROM held JOIN providers p USING (pk)
      JOIN jsonb_to_recordset($3::jsonb) AS k(kind text, model text) USING (kind)
  ), seen AS (
    SELECT objects.*, v.owners FROM objects JOIN jsonb_to_recordset($4::jsonb) AS v(model text, owners text[]) USING (model)
  ), part AS (
    SELECT o.* FROM seen JOIN object_changes o ON ${isOf('o', 'seen.model', 'seen.key')}
    WHERE (seen.owners IS NULL OR o.owner = ANY (seen.owners))
      AND ($5::bigint IS NULL OR o.audit_pk < $5::bigint OR (o.audit_pk = $5::bigint AND o.position > $6::integer))
    ORDER BY o.audit_pk DESC, o.position LIMIT $7
  )
  SELECT o.audit_pk || '.' || o.position AS cursor, o.at, o.action, o.model, o.key, o.name, o.was, o.owner,
    ${fieldsOf('o.fields', "r.changes -> o.change -> 'fields'")} AS fields, jsonb_build_object('pk', a.actor_pk, 'username', a.actor_name) AS "user",
    CASE WHEN a.real_name IS NOT NULL THEN jsonb_build_object('pk', a.real_pk, 'username', a.real_name) END AS real_user,
    o.run_id AS run, a.request_id, coalesce(r.options, '{}'::jsonb) AS options, r.submitter_pk AS "submitterPk",
    (r.mode = 'apply' AND (r.blueprint IS NOT NULL OR r.document IS NOT NULL)) IS TRUE AS "hasDocument"
  FROM part o JOIN audit_rows a ON a.pk = o.audit_pk LEFT JOIN runs r ON r.id = o.run_id
  ORDER BY o.audit_pk DESC, o.position`

function toEntry(row: HistoryRow, actor: Actor, seen: readonly SeenObjects[]): HistoryEntry {
  const { cursor: _cursor, options: _options, submitterPk: _submitter, hasDocument: _has, ...entry } = row
  const owners = seen.find(({ model }) => model === row.model)?.owners ?? null
  const fields = (row.fields ?? null) as HistoryEntry['fields']
  const isTaken = owners !== null && fields !== null && wasAnothers(fields, owners)
  const named = (user: HistoryEntry['user']) => (user !== null && mayNameUser(actor, user.pk) ? user : null)
  return {
    ...entry,
    at: row.at.toISOString(),
    was: isTaken ? null : row.was,
    fields: isTaken ? withoutFrom(fields) : fields,
    user: named(row.user),
    real_user: named(row.real_user),
    run: seesRun(row, actor) ? row.run : null,
    pipeline: pipelineShown(row, actor),
  }
}

const seesRun = ({ run, options, submitterPk }: HistoryRow, actor: Actor): boolean =>
  run !== null && mayReadRun({ options, submitterPk }, actor)

type HistoryRow = z.output<typeof row>

const changeRow = z.object({
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
  const rows = await query(db, changeRow, {
    text: lastText,
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
const lastText = `WITH objects AS (
    SELECT a.pk AS application, $2 AS model, a.pk::text AS key, a.owner FROM applications a WHERE a.pk = ANY ($1::uuid[])
    UNION ALL SELECT a.pk, k.model, p.pk::text, p.owner FROM applications a JOIN providers p ON p.pk = a.provider_pk
      JOIN jsonb_to_recordset($3::jsonb) AS k(kind text, model text) USING (kind) WHERE a.pk = ANY ($1::uuid[])
  )
  SELECT DISTINCT ON (application) application, r.at, r.actor_pk AS "actorPk", r.actor_name AS "actorName", r.real_name AS "realName"
  FROM objects o JOIN jsonb_to_recordset($4::jsonb) AS v(model text, owners text[]) USING (model), LATERAL (
    SELECT * FROM audit_rows a WHERE a.objects @> ARRAY[o.model || ' ' || o.key] ORDER BY pk DESC LIMIT 1) r
  WHERE v.owners IS NULL OR o.owner = ANY (v.owners)
  ORDER BY application, r.pk DESC`
