import { z } from 'zod'
import type { Finding } from '../apply/finding.ts'
import { rowName } from '../apply/words.ts'
import type { EngineReader } from '../db/engine-tx.ts'
import type { Blueprint, Entry } from '../document/document.ts'
import { parse } from '../document/yaml.ts'
import type { Actor } from '../permissions.ts'
import type { Engine } from '../plan/engine.ts'
import { isSame } from '../plan/same-value.ts'
import { sealedColumn, type WorkerRun } from './ledger.ts'
import type { Unmanaged } from './notes.ts'
import { mayReadRun } from './options.ts'

/**
 * A line that is removed from a file changes nothing: its field keeps the value, and no file has it any more. A plan compares its
 * document with the one that was applied before it, and reports such fields.
 */

export type NoLongerManaged = Unmanaged & { readonly name: string }

type Of = {
  readonly run: WorkerRun
  readonly blueprint: Blueprint
  /** The digest of the document. */
  readonly digest: Buffer
  readonly findings: readonly Finding[]
  readonly actor: Actor
}

/**
 * Finds the fields that the document of a plan no longer manages. It costs one more statement, if the plan names rows that exist.
 *
 * @returns the fields that the document before named, that this one does not name, and that have another value than their
 * default; none when there is no such document, or none that the submitter may see and that can be opened
 */
export async function noLongerManaged(
  reader: EngineReader,
  { keyring }: Engine,
  { run, blueprint, digest, findings, actor }: Of,
): Promise<readonly NoLongerManaged[]> {
  const rows = rowsOf(blueprint, findings)
  if (rows.length === 0) return []
  const [earlier] = await reader.query(earlierRow, { text: earlierText, values: [run.id, digest] })
  if (earlier === undefined || !mayReadRun(earlier, actor)) return []
  try {
    const before = await parse(keyring.open(earlier.blueprint, sealedColumn(earlier.holder, 'blueprint')))
    return between(before, blueprint, rows)
  } catch {
    // It was sealed under another SECRET_KEY, or by a version with another form.
    return []
  }
}

/** A row that exists and that an entry names. */
type ExistingRow = { readonly entry: Entry; readonly finding: Finding }

function rowsOf(blueprint: Blueprint, findings: readonly Finding[]): ExistingRow[] {
  const entries = new Map(blueprint.entries.map((entry, index) => [JSON.stringify(pathOf(entry, index)), entry]))
  return findings.flatMap((finding) => {
    const { cause, step, action, isForeign, isHidden } = finding
    const entry = entries.get(JSON.stringify(step.path))
    const isThere = action === 'update' || action === 'unchanged'
    return cause === 'entry' && entry !== undefined && isThere && !isForeign && !isHidden ? [{ entry, finding }] : []
  })
}

/** The path at which a worker reports the errors of an entry. */
export const pathOf = ({ id }: Entry, index: number) => (id === undefined ? ['entries', index] : [id])

function between(before: Blueprint, now: Blueprint, rows: readonly ExistingRow[]): NoLongerManaged[] {
  const [named, still] = [fieldsNamed(before.entries.filter(isApplied)), fieldsNamed(now.entries)]
  const found = new Map<string, NoLongerManaged>()
  for (const { entry, finding } of rows) {
    const places = placesOf(entry)
    const at = (fields: ReadonlyMap<string, ReadonlySet<string>>) =>
      new Set(places.flatMap((place) => [...(fields.get(place) ?? [])]))
    const fields = [...at(named).difference(at(still))].filter((name) => isSet(finding, name))
    const [place = ''] = places
    // The last of several entries of a row knows its values.
    found.delete(place)
    if (fields.length > 0)
      found.set(place, { model: finding.step.model.name, key: finding.change.key, fields, name: rowName(finding) })
  }
  return [...found.values()]
}

const isApplied = ({ state, conditions }: Entry): boolean => state === 'present' && conditions?.includes(false) !== true

/** Whether the model still has the field, and it has another value than its default. */
function isSet({ step: { model }, values }: Finding, name: string): boolean {
  const field = model.fields.get(name)
  const value = values[name] ?? null
  return field !== undefined && !isSame(field, field.initial ?? null, value)
}

/** Fields by the names under which entries name their rows. */
function fieldsNamed(entries: readonly Entry[]): Map<string, Set<string>> {
  const named = new Map<string, Set<string>>()
  for (const entry of entries)
    for (const place of placesOf(entry)) {
      const fields = named.getOrInsertComputed(place, () => new Set())
      for (const name of [...Object.keys(entry.identifiers), ...Object.keys(entry.attrs)]) fields.add(name)
    }
  return named
}

/** The places of an entry; its name before a rename is one, too. */
function placesOf({ model, identifiers, was }: Entry): string[] {
  const [first = ''] = Object.keys(identifiers)
  const names = was === undefined ? [identifiers] : [identifiers, { [first]: was }]
  return names.map((each) => JSON.stringify([model, Object.entries(each).sort()]))
}

const earlierRow = z.object({
  holder: z.guid(),
  blueprint: z.string(),
  options: z.unknown(),
  submitterPk: z.int().nullable(),
})

/** The newest runs that are searched: 10 ms of PostgreSQL. */
const mostSearched = 20_000

/** The document that was applied before, of the same application; or of the same submitter, owner and title. None if it is this one. */
const earlierText = `WITH self AS MATERIALIZED (
    SELECT slug, regexp_replace(title, '^\\w+', 'apply') AS title, submitter_pk AS pk, options->>'owner' AS owner
    FROM runs WHERE id = $1::uuid
  ), earlier AS (
    SELECT r.id FROM self, LATERAL (
        SELECT id, slug, title, submitter_pk, options, applied, mode, created_at FROM runs
        ORDER BY created_at DESC, id DESC LIMIT ${mostSearched}) r
      WHERE r.applied AND r.mode = 'apply' AND CASE WHEN self.slug IS NOT NULL THEN r.slug = self.slug
        ELSE r.slug IS NULL AND r.title = self.title AND r.submitter_pk = self.pk
          AND r.options->>'owner' IS NOT DISTINCT FROM self.owner END
      ORDER BY r.created_at DESC LIMIT 1)
  SELECT h.id AS holder, h.blueprint, r.options, r.submitter_pk AS "submitterPk"
  FROM earlier e JOIN runs r ON r.id = e.id, LATERAL (
    SELECT id, blueprint FROM runs WHERE document = r.document AND blueprint IS NOT NULL LIMIT 1) h
  WHERE r.document <> $2::bytea`
