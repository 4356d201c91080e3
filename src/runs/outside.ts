import { z } from 'zod'
import { applicationModel, changesOf, kindsText, objectsNamed } from '../apply/history.ts'
import type { Db } from '../db/client.ts'
import { execute, query } from '../db/raw.ts'
import { repeat } from '../db/rounds.ts'
import type { Logger } from '../log.ts'
import type { Field, Model } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { nameColumns } from '../plan/references.ts'
import { isSame } from '../plan/same-value.ts'
import { asKey, quoted } from '../plan/statements.ts'
import { toMaskedValues } from '../plan/storage.ts'
import { markerText } from '../sides.ts'

/**
 * Applications, and their providers, that are not as their recorded changes left them: changed or deleted past the service
 * (docs/adr/0065-changed-outside-is-compared-on-reading.md).
 */

/**
 * @property present the row; null when it is gone @property recorded the last value of each field, where it is known
 * @property moved the fields that refer to another row than the recorded one
 */
const row = z.object({
  application: z.string(),
  slug: z.string().nullable(),
  model: z.string(),
  present: z.looseObject({ pk: z.union([z.string(), z.int()]) }).nullable(),
  recorded: z.record(z.string(), z.unknown()).nullable(),
  moved: z.array(z.string()),
  isGone: z.boolean(),
})
type ComparedRow = z.output<typeof row>

/** The newest changes of an object that are read. */
const mostRead = 1_000

/** An application, or its provider, beside its recorded changes. */
export type Standing = {
  readonly model: string
  readonly owner: string | null
  /** Whether it was deleted past the service. */
  readonly isGone: boolean
  /** Its fields as they are, but for those in tables of their own, with secrets masked, and references as keys. */
  readonly values: Fields
  /** The fields that were changed outside, each from what was recorded to what is there; null when no change of it is known. */
  readonly outside: Readonly<Record<string, { readonly from: unknown; readonly to: unknown }>> | null
}

/**
 * @param of a slug that an application has, or had, or a key
 * @param owners under which the caller sees applications; null: all
 */
export async function readStanding(
  db: Db,
  registry: Registry,
  { slug, key = null }: { readonly slug: string | null; readonly key?: string | null },
  owners: readonly string[] | null,
): Promise<readonly Standing[]> {
  const named = `SELECT key FROM (${objectsNamed('ARRAY[$1]', '$3', '$4', '$5')}) recorded
    UNION SELECT pk::text FROM applications WHERE (slug = $3 OR pk = $5::text::uuid) AND ($4::text[] IS NULL OR owner = ANY ($4::text[]))`
  return (await readRows(db, registry, named, [slug, owners, key])).flatMap((each) => standingOf(each, registry) ?? [])
}

/** @returns whether one of them was changed or deleted outside; null when that is not known of any */
export function isOutside(all: readonly Standing[]): boolean | null {
  if (all.some(({ isGone, outside }) => isGone || Object.keys(outside ?? {}).length > 0)) return true
  return all.some(({ outside }) => outside !== null) ? false : null
}

/** The fields that were changed outside, those of a provider as `provider.sub_mode`. */
export const fieldsOutside = (all: readonly Standing[]): string[] =>
  all.flatMap(({ model, outside }) =>
    Object.keys(outside ?? {}).map((field) => (model === applicationModel ? field : `provider.${field}`)),
  )

function standingOf(
  { model: name, present, recorded, moved, isGone }: ComparedRow,
  registry: Registry,
): Standing | null {
  const model = registry.byName(name)
  if (model === undefined) return null
  if (present === null) return { model: name, owner: null, isGone, values: {}, outside: {} }
  const values = toMaskedValues(model, present)
  const outside = recorded && differing(model, values, recorded, moved)
  const own = [...model.fields.values()].filter(({ storage }) => storage.in !== 'link')
  const shown = Object.fromEntries(own.map(({ name: field }) => [field, values[field]]))
  const owner = typeof present.owner === 'string' ? present.owner : null
  return { model: name, owner, isGone: false, values: shown, outside }
}

type Fields = Readonly<Record<string, unknown>>

/** Whether a field has another value than a recorded one. Changes show the names of references: only whether there is one is compared. */
export const differs = (field: Field, now: unknown, recorded: unknown): boolean =>
  field.reference === undefined
    ? !isSame(field, now, recorded)
    : !Array.isArray(recorded) && (now === null) !== (recorded === null)

/** Secrets are not compared. */
function differing(model: Model, values: Fields, recorded: Fields, moved: readonly string[]) {
  const changed = Object.entries(recorded).filter(([name, from]) => {
    const field = model.fields.get(name)
    if (field === undefined || field.secret || markerText(from) !== undefined) return false
    return moved.includes(name) || differs(field, values[name] ?? null, from)
  })
  return Object.fromEntries(changed.map(([name, from]) => [name, { from, to: values[name] ?? null }]))
}

/**
 * Common table expressions that find `moved`: references to other rows than the recorded ones. Changes show names. A row that has or
 * had the recorded one counts as the same; so does one whose recorded name no row has now: it was renamed.
 */
function movedText({ kinds, targets, byName }: Registry): string {
  const all = [byName(applicationModel) ?? [], ...kinds.values()].flat().flatMap(({ name: model, fields }) =>
    [...fields.values()].flatMap(({ name, reference, storage }) => {
      const target = targets.get(reference?.target ?? '')
      if (target === undefined || reference?.many === true || storage.in === 'link') return []
      const column = storage.in === 'column' ? storage.column : ''
      return [{ target, text: `('${model}', '${name}', '${target.table}', '${column}')` }]
    }),
  )
  const parts = [...new Map(all.map(({ target }) => [target.table, target]))].map(([table, target]) => {
    const names = nameColumns(target).map(({ column }) => quoted(column))
    return `SELECT r.model, r.key, r.field FROM refs r JOIN ${quoted(table)} t ON t.pk = CASE WHEN r.target = '${table}' THEN ${asKey(target.key, 'r.pk')} END
      WHERE lower(r.recorded) NOT IN (t.pk::text, ${names.map((each) => `lower(coalesce(t.${each}, ''))`).join(', ')})
        AND (${asKey(target.key, 'r.recorded')} IS NOT NULL OR EXISTS (SELECT FROM ${quoted(table)} x WHERE ${names.map((each) => `x.${each} = r.recorded`).join(' OR ')}))
        AND NOT EXISTS (SELECT FROM object_changes c WHERE c.objects && ARRAY[${target.models.map(({ name }) => `'${name} ' || t.pk`).join(', ')}]
          AND c.key = t.pk::text AND r.recorded IN (c.name, c.was))`
  })
  return `refs AS MATERIALIZED (
    SELECT o.model, o.key, f.field, f.target, coalesce(o.present->>f.col, o.present->'settings'->>f.field) AS pk, k.recorded->>f.field AS recorded
    FROM objects o JOIN known k USING (model, key) JOIN (VALUES ${all.map(({ text }) => text).join(', ')}) f(model, field, target, col) USING (model)
  ), moved AS (SELECT model, key, array_agg(field) AS moved FROM (${parts.join(' UNION ALL ')}) each GROUP BY model, key)`
}

/** @param named the keys of applications, in SQL, as `key` */
function readRows(db: Db, registry: Registry, named: string, values: readonly unknown[]): Promise<ComparedRow[]> {
  const text = `WITH named AS MATERIALIZED (${named}), objects AS MATERIALIZED (
    SELECT $1 AS model, n.key, n.key AS application, to_jsonb(a) AS present FROM named n LEFT JOIN applications a ON a.pk = n.key::uuid
    UNION ALL SELECT k.model, p.pk::text, n.key, to_jsonb(p) FROM named n JOIN applications a ON a.pk = n.key::uuid
      JOIN providers p ON p.pk = a.provider_pk JOIN jsonb_to_recordset($2::jsonb) AS k(kind text, model text) USING (kind)
  ), ${changesOf(
    'objects',
    `SELECT DISTINCT r.pk FROM objects o CROSS JOIN LATERAL (
      SELECT pk FROM audit_rows a WHERE a.objects @> ARRAY[o.model || ' ' || o.key] ORDER BY pk DESC LIMIT ${mostRead}
    ) r`,
  )}, known AS MATERIALIZED (
    SELECT model, key, jsonb_object_agg(field, value) AS recorded FROM (
      SELECT DISTINCT ON (model, key, field) model, key, field, change->'to' AS value FROM field_changes
      WHERE jsonb_typeof(change) = 'object' ORDER BY model, key, field, audit_pk DESC, position DESC
    ) newest GROUP BY model, key
  ), last AS MATERIALIZED (
    SELECT DISTINCT ON (model, key) model, key, action, name FROM changes ORDER BY model, key, audit_pk DESC, position DESC
  ), ${movedText(registry)}
  SELECT o.application, (SELECT slug FROM applications WHERE pk = o.application::uuid) AS slug, o.model, o.present, known.recorded,
    coalesce(moved.moved, '{}') AS moved,
    coalesce(last.action <> 'delete' AND NOT EXISTS (SELECT FROM applications a WHERE a.slug = last.name), false) AS "isGone"
  FROM objects o LEFT JOIN last USING (model, key) LEFT JOIN known USING (model, key) LEFT JOIN moved USING (model, key)`
  return query(db, row, { text, values: [applicationModel, kindsText(registry), ...values] })
}

const allEveryS = 600
const roundMs = 5_000
/** Applications of one statement. */
const portion = 500

const keyRow = z.object({ pk: z.guid() })

/** Applications that are gone, until their deletion is found recorded. */
const gone = '(SELECT gone_pk AS pk, slug FROM application_states WHERE gone_pk IS NOT NULL)'

/**
 * Compares all applications with their recorded changes, and keeps the names of the fields that differ in `application_states`,
 * or that one was deleted, and the time.
 *
 * @param onError gets the error of a portion; the others are compared all the same
 */
export async function compareAll(db: Db, registry: Registry, onError: (error: unknown) => void): Promise<void> {
  for (const from of [gone, 'applications'])
    for (let after = '00000000-0000-0000-0000-000000000000'; ; ) {
      const keys = await portionOf(db, from, 'a.pk > $1::uuid', [after])
      if (keys.length > 0) await compare(db, registry, keys).catch(onError)
      const last = keys.at(-1)
      if (last === undefined || keys.length < portion) break
      after = last
    }
  await execute(db, { text: 'UPDATE installation SET compared_at = now()', values: [] })
}

/** The keys of some applications. @param from a table of applications, in SQL @param among a condition on it, as `a` */
async function portionOf(db: Db, from: string, among: string, values: readonly unknown[]): Promise<readonly string[]> {
  const text = `SELECT a.pk FROM ${from} a WHERE ${among} ORDER BY a.pk LIMIT ${portion}`
  return (await query(db, keyRow, { text, values })).map(({ pk }) => pk)
}

async function compare(db: Db, registry: Registry, keys: readonly string[]): Promise<void> {
  const named = 'SELECT unnest($3::uuid[])::text AS key'
  const rows = await readRows(db, registry, named, [keys])
  const outside = [...Map.groupBy(rows, ({ slug }) => slug)].flatMap(([slug, all]) => {
    const fields = fieldsOutside(all.flatMap((each) => standingOf(each, registry) ?? []))
    return slug === null || fields.length === 0 ? [] : [{ slug, outside: fields }]
  })
  const erased = rows.flatMap(({ application, isGone }) => (isGone ? application : []))
  await execute(db, { text: keptText, values: [JSON.stringify(outside), keys, erased] })
}

/** `outside` of one that was deleted, in SQL. */
export const deletedMark = "'{deleted}'::text[]"

/** What was deleted past the service, as workers last found, in SQL: `slug` and `owner`. */
export const erasedSql = `(SELECT slug, owner FROM application_states s WHERE outside = ${deletedMark}
  AND NOT EXISTS (SELECT FROM applications a WHERE a.slug = s.slug))`

const keptText = `WITH found AS (SELECT slug, outside FROM jsonb_to_recordset($1::jsonb) AS f(slug text, outside text[])),
    kept AS (
      INSERT INTO application_states AS s (slug, outside) SELECT slug, outside FROM found
      ON CONFLICT (slug) DO UPDATE SET outside = excluded.outside WHERE s.outside <> excluded.outside
    ), erased AS (UPDATE application_states SET outside = ${deletedMark} WHERE gone_pk = ANY ($3::uuid[]) AND outside <> ${deletedMark}),
    forgotten AS (
      UPDATE application_states SET outside = array_remove(outside, 'deleted'), gone_pk = NULL
      WHERE gone_pk = ANY ($2::uuid[]) AND gone_pk <> ALL ($3::uuid[])
    )
  UPDATE application_states s SET outside = '{}' FROM applications a
    WHERE a.pk = ANY ($2::uuid[]) AND s.slug = a.slug AND s.outside <> '{}' AND s.slug NOT IN (SELECT slug FROM found)`

/** Every worker asks for this, and one of them gets it. */
const dueText = `UPDATE installation SET compared_at = now()
  WHERE compared_at IS NULL OR compared_at < now() - interval '${allEveryS} s' RETURNING singleton`

/** States that say nothing any more. */
const endedText = `DELETE FROM application_states s WHERE gone_pk IS NULL AND ((failing_run IS NULL AND outside = '{}')
  OR ((failing_since IS NULL OR failing_since < now() - interval '30 days') AND NOT EXISTS (SELECT FROM applications a WHERE a.slug = s.slug)))`

/** Compares all applications every ten minutes, and a portion of those that differ every few seconds, until it is stopped. */
export function startComparing(db: Db, registry: Registry, log: Logger): { stop(): Promise<void> } {
  const warn = (error: unknown) => {
    log.warn({ err: error }, 'applications could not be compared with their recorded changes; trying again')
    return roundMs
  }
  return repeat(async () => {
    if ((await execute(db, { text: dueText, values: [] })) > 0) {
      await compareAll(db, registry, warn)
      await execute(db, { text: endedText, values: [] })
    } else {
      const isOutsideNow = "a.slug IN (SELECT slug FROM application_states WHERE outside <> '{}')"
      const keys = await portionOf(db, 'applications', isOutsideNow, [])
      if (keys.length > 0) await compare(db, registry, keys)
    }
    return roundMs
  }, warn)
}
