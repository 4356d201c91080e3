import { z } from 'zod'
import { notShown } from '../apply/changes.ts'
import { changesOf, fieldsOf } from '../apply/history.ts'
import type { Db } from '../db/client.ts'
import { type EngineReader, reader } from '../db/engine-tx.ts'
import { inTime, patience } from '../db/in-time.ts'
import type { Blueprint, Entry } from '../document/document.ts'
import type { Model, Values } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import type { Actor } from '../permissions.ts'
import type { Conditions } from '../plan/engine.ts'
import { Loader } from '../plan/load.ts'
import type { Look } from '../plan/look.ts'
import { storedIn } from '../plan/looks.ts'
import { isSame } from '../plan/same-value.ts'
import { isRowOf } from '../plan/statements.ts'
import { toMaskedValues } from '../plan/storage.ts'
import { keepsWriter } from '../rights/writer.ts'
import type { FormerDocument, FormerRun } from '../runs/documents.ts'
import { differs } from '../runs/outside.ts'
import { markerText } from '../sides.ts'
import { type SeenObjects, seenBy } from '../views/history.ts'

/**
 * The state in which an applied run left the objects of its document, as far as changes are recorded: of each field the last value
 * up to then, or else the one from which the first later change took it (docs/adr/0125-a-roll-back-puts-the-recorded-state-back.md).
 * Of an object of a stack, these are the fields that its last document names, and those that its later runs changed.
 */

/** @property key of the object that had the name at the moment of the run @property moment the audit row of the run, or the last one before */
const objectRow = z.object({ model: z.string(), name: z.string(), key: z.string(), moment: z.string() })

/**
 * The changes of a field of an object. Of what the caller may not know, only that there was one.
 *
 * @property former the last one up to the moment @property next the first one after it @property latest the last one of all
 * @property isOfStack whether a later run of the stack changed it
 */
const changesRow = z.object({
  model: z.string(),
  key: z.string(),
  field: z.string(),
  former: z.unknown(),
  next: z.unknown(),
  latest: z.unknown(),
  isOfStack: z.boolean(),
})
type Changes = z.output<typeof changesRow>

/** @property key of the row as it is; null when it is gone @property present its values, with secrets masked */
type Named = {
  readonly model: Model
  readonly name: string
  readonly key: string | null
  readonly present: Values | undefined
}

/** Milliseconds for a part. Histories that take longer are not read. */
const withinMs = () => Math.max(5_000, patience())

/** An index finds the applies, also while there are few: their lists of objects may be very long. */
const settings = { text: "SELECT set_config('enable_seqscan', 'off', true)", values: [] }

/**
 * @returns the document with the fields that it does not name, and that have another value now; unchanged for a run that was not
 * applied. `left`: what cannot be put back, as `provider oauth2 "grafana": client_secret`
 */
export async function withRecordedFields(
  db: Db,
  registry: Registry,
  { id, applied, finishedAt }: FormerRun,
  { blueprint, without, conditions: { stack } }: FormerDocument,
  actor: Actor,
): Promise<{ readonly blueprint: Blueprint; readonly left: readonly string[] }> {
  if (applied !== true || finishedAt === null) return { blueprint, left: [] }
  const out = new Set(without)
  const looks = blueprint.entries.map((each, index) => (out.has(index) ? undefined : lookOf(each, registry)))
  const loader = new Loader(reader(db), registry)
  await inTime(loader.load({ looks: looks.flatMap((look) => look ?? []) }), withinMs())
  const named = looks.flatMap((look, entry) => {
    if (look === undefined) return []
    const { model, values } = look
    const found = loader.world.find(look).find((each) => isRowOf(model, each))
    const key = found === undefined ? null : String(found.pk)
    return [{ entry, model, name: values.join(), key, present: found && toMaskedValues(model, found) }]
  })
  const members =
    stack === null
      ? []
      : await db.stackMember.findMany({
          where: { stackName: stack, key: { in: named.flatMap(({ key }) => key ?? []) } },
          select: { model: true, key: true, fields: true },
        })
  const managed = new Map(members.map(({ model, key, fields }) => [`${model} ${key}`, fields]))
  const seen = seenBy(registry, actor)
  const histories = await readHistories(reader(db), named, { id, finishedAt, stack }, seen)
  if (histories === null) return { blueprint, left: [tooLong] }
  const entries = [...blueprint.entries]
  const left = named.flatMap((each) => {
    const { entry, model, name, key } = each
    const [sent, formerKey] = [entries[entry], histories.keys.get(`${model.name}=${name}`)]
    if (sent === undefined || formerKey === undefined) return []
    const owners = seen.find((of) => of.model === model.name)?.owners ?? null
    const then = withoutAnothers(histories.changes.get(`${model.name} ${formerKey}`) ?? [], owners)
    const anew = key === null || key === formerKey ? undefined : (histories.changes.get(`${model.name} ${key}`) ?? [])
    const own = stack === null ? undefined : (managed.get(`${model.name} ${key}`) ?? [])
    const names = { ...sent.identifiers, ...sent.attrs }
    const { fields, others } = differing(each, names, own, key === formerKey, then, anew)
    if (Object.keys(fields).length > 0) entries[entry] = { ...sent, attrs: { ...fields, ...sent.attrs } }
    return others.map((field) => `${model.displayName} "${name}": ${field}`)
  })
  return { blueprint: { ...blueprint, entries }, left }
}

const tooLong = 'fields that the document does not name: the history of its objects takes too long to be read'

/** @returns the keys that names had at the moment of the run, and the changes of these objects and of those of today; null: it takes too long */
async function readHistories(
  reader: EngineReader,
  named: readonly Named[],
  { id, finishedAt, stack }: Pick<FormerRun, 'id' | 'finishedAt'> & Pick<Conditions, 'stack'>,
  seen: readonly SeenObjects[],
) {
  const limits = { withinMs: withinMs(), settings }
  const names = JSON.stringify(named.map(({ model, name }) => ({ model: model.name, name })))
  const found = await reader.attempt(objectRow, { text: objectsText, values: [names, finishedAt, id] }, limits)
  if (found === null) return null
  const today = named.flatMap(({ model, key }) => (key === null ? [] : [{ model: model.name, key }]))
  const then = found.map(({ model, key }) => ({ model, key }))
  const objects = JSON.stringify([...then, ...today])
  const values = [objects, found[0]?.moment ?? '0', JSON.stringify(seen), JSON.stringify(notShown), stack]
  const changes = found.length === 0 ? [] : await reader.attempt(changesRow, { text: changesText, values }, limits)
  if (changes === null) return null
  return {
    keys: new Map(found.map(({ model, name, key }) => [`${model}=${name}`, key])),
    changes: Map.groupBy(changes, ({ model, key }) => `${model} ${key}`),
  }
}

/** The question for the row of an entry, by the value that names it, where that is a text. */
function lookOf({ model: of, state, identifiers, attrs }: Entry, registry: Registry): Look | undefined {
  const model = registry.byName(of)
  const [[naming = ''] = []] = model?.identifiers ?? []
  const name = identifiers[naming] ?? attrs[naming]
  const column = model && storedIn(model, naming)
  if (model === undefined || column === undefined || state === 'absent' || typeof name !== 'string') return undefined
  return { model, columns: [column], values: [name] }
}

/** The caller does not learn what another owner had, from whom a later change took the object over. */
function withoutAnothers(rows: readonly Changes[], owners: readonly string[] | null): readonly Changes[] {
  const taken = sides.safeParse(rows.find(({ field }) => field === 'owner')?.next).data
  if (owners === null || taken === undefined || owners.includes(String(taken.from))) return rows
  return rows.map((each) => ({ ...each, next: each.next && notShown }))
}

/**
 * Parts the fields that differ, and that the document does not name: those that it can put back, and the others.
 *
 * @param managed the fields that the stack manages; undefined without one
 * @param isSameRow false for an object that is gone, or created anew
 * @param anew the changes of the latter
 */
function differing(
  { model, present }: Named,
  sent: Values,
  managed: readonly string[] | undefined,
  isSameRow: boolean,
  changes: readonly Changes[],
  anew: readonly Changes[] = [],
) {
  const fields: Record<string, unknown> = {}
  const others: string[] = []
  for (const { field: name, former, next, isOfStack } of changes) {
    const field = model.fields.get(name)
    if (field === undefined || name in sent) continue
    const then = [sides.safeParse(former).data?.to, sides.safeParse(next).data?.from].find(isValue)
    const now = present === undefined ? (field.initial ?? null) : present[name]
    const isTouched = next !== null || !isSameRow
    if (field.secret || then === undefined) {
      if (isTouched) others.push(name)
    } else if (field.reference !== undefined) {
      // Changes show names, and a row has keys.
      const latest = anew.find((each) => each.field === name)?.latest
      const isOther = isSameRow
        ? isTouched || differs(field, now, then)
        : !isSame(field, sides.safeParse(latest).data?.to ?? now, then)
      if (isOther) others.push(name)
    } else if (differs(field, now, then)) {
      const isManaged = managed === undefined || !isSameRow || isOfStack || managed.includes(name)
      const isOfOthers = keepsWriter(model, name, now, then)
      if (isManaged && !isOfOthers && field.schema.safeParse(then).success) fields[name] = then
      else others.push(name)
    }
  }
  return { fields, others }
}

const sides = z.object({ from: z.unknown(), to: z.unknown() })

const isValue = (value: unknown): boolean => value !== undefined && markerText(value) === undefined

/** The objects that had these names at the moment of a run: neither deleted before it, nor created after it. */
const objectsText = `WITH asked AS (SELECT * FROM jsonb_to_recordset($1::jsonb) AS a(model text, name text)
  ), named AS MATERIALIZED (
    SELECT c.* FROM object_changes c
    WHERE c.objects && ARRAY(SELECT model || '=' || name FROM asked)
      AND (((c.model, c.name) IN (SELECT model, name FROM asked)) IS TRUE OR ((c.model, c.was) IN (SELECT model, name FROM asked)) IS TRUE)
  ), moment AS MATERIALIZED (
    SELECT coalesce(max(audit_pk) FILTER (WHERE run_id = $3::uuid), max(audit_pk) FILTER (WHERE at <= $2::timestamptz), 0) AS pk
    FROM named
  ), held AS (
    SELECT n.model, n.key, n.action, m.pk AS moment, n.audit_pk > m.pk AS is_later, n.audit_pk - m.pk AS away, n.position,
      CASE WHEN n.audit_pk > m.pk THEN coalesce(n.was, n.name) ELSE n.name END AS name
    FROM named n CROSS JOIN moment m
  ), found AS (
    SELECT DISTINCT ON (model, name) * FROM held WHERE ((model, name) IN (SELECT model, name FROM asked)) IS TRUE
    ORDER BY model, name, is_later, abs(away), CASE WHEN is_later THEN position ELSE -position END
  )
  SELECT model, name, key, moment::text FROM found WHERE action <> CASE WHEN is_later THEN 'create' ELSE 'delete' END`

/** Nothing is known from before a change whose fields are no longer kept. */
const changesText = `WITH objects AS MATERIALIZED (
    SELECT DISTINCT model, key FROM jsonb_to_recordset($1::jsonb) AS o(model text, key text)
  ), ${changesOf(
    'objects',
    `SELECT pk FROM audit_rows WHERE objects && ARRAY(SELECT model || ' ' || key FROM objects)`,
  )}, known AS (
    SELECT model, key, field, change, audit_pk, position, owner, run_id, $2::bigint < audit_pk AS is_later FROM field_changes
    WHERE change <> '"unchanged"'
    UNION ALL SELECT c.model, c.key, NULL, NULL, c.audit_pk, c.position, c.owner, c.run_id, false
      FROM changes c LEFT JOIN run_changes n USING (run_id, change)
    WHERE c.audit_pk <= $2::bigint AND c.action <> 'delete' AND ${fieldsOf('c.fields', 'run_fields')} IS NULL
  ), lasting AS (
    SELECT *, max(audit_pk) FILTER (WHERE field IS NULL) OVER (PARTITION BY model, key) AS gap FROM known
  ), seen AS (
    SELECT model, key, field, audit_pk, position, is_later, audit_pk > coalesce(gap, 0) AS is_known, run_id,
      CASE WHEN v.owners IS NULL OR owner = ANY (v.owners) THEN change END AS change
    FROM lasting JOIN jsonb_to_recordset($3::jsonb) AS v(model text, owners text[]) USING (model) WHERE field IS NOT NULL
  )
  SELECT model, key, field,
    (array_agg(coalesce(change, $4::jsonb) ORDER BY audit_pk DESC, position DESC) FILTER (WHERE NOT is_later AND is_known))[1] AS former,
    (array_agg(coalesce(change, $4::jsonb) ORDER BY audit_pk, position) FILTER (WHERE is_later))[1] AS next,
    (array_agg(change ORDER BY audit_pk DESC, position DESC))[1] AS latest,
    coalesce(bool_or(is_later AND EXISTS (SELECT FROM runs r WHERE r.id = run_id AND r.options->>'stack' = $5)), false) AS "isOfStack"
  FROM seen GROUP BY model, key, field HAVING bool_or(change IS NOT NULL) ORDER BY model, key, field`
