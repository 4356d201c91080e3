import { z } from 'zod'
import { changesOf } from '../apply/history.ts'
import type { Db } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'
import { query } from '../db/raw.ts'
import type { Blueprint, Entry } from '../document/document.ts'
import type { Registry } from '../models/registry.ts'
import type { Actor } from '../permissions.ts'
import type { FormerRun } from '../runs/documents.ts'
import { markerText } from '../sides.ts'
import { seenBy } from '../views/history.ts'

/**
 * The state in which an applied run left the objects of its document. A field that the document does not name had the value from
 * which the first later change took it (docs/adr/0125-a-roll-back-puts-the-recorded-state-back.md).
 */

/** @property left what cannot be put back: `provider oauth2 "grafana": client_secret` */
export type Recorded = { readonly blueprint: Blueprint; readonly left: readonly string[] }

/** The most entries whose histories are read. */
const mostEntries = 1_000

const row = z.object({ entry: z.int(), field: z.string(), change: z.unknown() })
const fromSide = z.object({ from: z.unknown() })

/**
 * @param without the indexes of entries that are no part of the document
 * @returns the document with the fields that it does not name; unchanged for a run that was not applied, and for one of very many
 * entries
 */
export async function withRecordedFields(
  db: Db,
  registry: Registry,
  { applied, finishedAt }: FormerRun,
  { blueprint, without }: { readonly blueprint: Blueprint; readonly without: readonly number[] },
  actor: Actor,
): Promise<Recorded> {
  const asked = blueprint.entries.flatMap((each, entry) => {
    const name = without.includes(entry) ? undefined : nameOf(each, registry)
    return name === undefined ? [] : [{ entry, model: each.model, name }]
  })
  if (applied !== true || finishedAt === null || asked.length === 0 || asked.length > mostEntries)
    return { blueprint, left: [] }
  const values = [JSON.stringify(asked), finishedAt, JSON.stringify(seenBy(registry, actor))]
  const rows = await inTime(query(db, row, { text, values }))
  const byEntry = Map.groupBy(rows, ({ entry }) => entry)
  const left: string[] = []
  const entries = blueprint.entries.map((each, index) => {
    const { fields, others } = split(each, registry, byEntry.get(index) ?? [])
    const { displayName = each.model } = registry.byName(each.model) ?? {}
    for (const field of others) left.push(`${displayName} "${nameOf(each, registry)}": ${field}`)
    return Object.keys(fields).length === 0 ? each : { ...each, attrs: { ...fields, ...each.attrs } }
  })
  return { blueprint: { ...blueprint, entries }, left }
}

/** The value that names the row of an entry, where it is a text. */
function nameOf({ model, state, identifiers, attrs }: Entry, registry: Registry): string | undefined {
  const [[naming = ''] = []] = registry.byName(model)?.identifiers ?? []
  const name = identifiers[naming] ?? attrs[naming]
  return state === 'absent' || typeof name !== 'string' ? undefined : name
}

/** Parts the fields that the entry does not name: those that a document can put back, and the others. */
function split({ model, identifiers, attrs }: Entry, registry: Registry, rows: readonly z.output<typeof row>[]) {
  const fields: Record<string, unknown> = {}
  const others: string[] = []
  for (const { field: name, change } of rows) {
    const field = registry.byName(model)?.fields.get(name)
    if (field === undefined || name in identifiers || name in attrs) continue
    const { data, success } = fromSide.safeParse(change)
    // A secret has no value in a history, and a reference has the name that it had then.
    const isKnown = success && field.reference === undefined && markerText(data.from) === undefined
    if (isKnown && field.schema.safeParse(data.from).success) fields[name] = data.from
    else others.push(name)
  }
  return { fields, others }
}

/** The first change of each field of the objects that have, or had, these names, after a time. */
const text = `WITH asked AS (SELECT * FROM jsonb_to_recordset($1::jsonb) AS a(entry integer, model text, name text)
  ), named AS MATERIALIZED (
    SELECT c.model, c.name, c.key FROM object_changes c
    WHERE c.audit_pk IN (SELECT r.pk FROM asked a JOIN audit_rows r ON r.objects @> ARRAY[a.model || '=' || a.name])
      AND ((c.model, c.name) IN (SELECT model, name FROM asked)) IS TRUE
  ), objects AS MATERIALIZED (SELECT DISTINCT entry, model, key FROM asked JOIN named USING (model, name)
  ), ${changesOf(
    'objects',
    `SELECT DISTINCT r.pk FROM objects o JOIN audit_rows r ON r.objects @> ARRAY[o.model || ' ' || o.key] WHERE r.at > $2::timestamptz`,
  )}
  SELECT DISTINCT ON (entry, field) entry, field, change
  FROM objects JOIN jsonb_to_recordset($3::jsonb) AS v(model text, owners text[]) USING (model) JOIN field_changes c USING (model, key)
  WHERE action = 'update' AND (v.owners IS NULL OR c.owner = ANY (v.owners))
  ORDER BY entry, field, audit_pk, position`
