import { z } from 'zod'
import { retrying } from '../db/backoff.ts'
import type { Db } from '../db/client.ts'
import { isTransient } from '../db/errors.ts'
import { execute, query } from '../db/raw.ts'
import type { Keyring } from '../db/seal.ts'
import { sealedCheck } from '../db/sealed-check.ts'
import type { Registry } from '../models/registry.ts'

/** A column of sealed values: texts, or a JSON object with a text for each field. `row`: the column that binds them. */
export type SealedColumn = {
  readonly table: string
  readonly column: string
  readonly row: 'pk' | 'uuid' | 'id'
  readonly key: 'pk' | 'id'
  readonly type: 'uuid' | 'integer'
  readonly json: boolean
}

export function sealedColumns(registry: Registry): SealedColumn[] {
  const ofModels = registry.models.flatMap(({ table, key, uuid, fields }) => {
    const row = uuid === true ? ('uuid' as const) : ('pk' as const)
    const base = { table, row, key: 'pk' as const, type: key }
    return [...fields.values()].flatMap(({ storage }): SealedColumn[] => {
      if (storage.in === 'sealed') return [{ ...base, column: storage.column, json: false }]
      return storage.in === 'secrets' ? [{ ...base, column: 'secrets', json: true }] : []
    })
  })
  const others = [
    { table: 'tokens', column: 'sealed_key', row: 'pk', key: 'pk', type: 'uuid', json: false },
    { table: 'runs', column: 'blueprint', row: 'id', key: 'id', type: 'uuid', json: false },
    { table: 'runs', column: 'generated', row: 'id', key: 'id', type: 'uuid', json: false },
  ] as const
  const distinct = new Map([...ofModels, ...others].map((each) => [`${each.table}.${each.column}`, each]))
  return [...distinct.values()]
}

/** The result for one place: values that are sealed anew now, and those that no key opens. */
export type Resealed = { readonly place: string; readonly sealed: number; readonly lost: number }

const portion = 200
const tries = { max: 8, stepMs: 50, canRetry: isTransient }

/**
 * Seals everything under SECRET_KEY that is sealed under SECRET_KEY_PREVIOUS or in the form of earlier versions. The service may
 * run meanwhile: a value is replaced only if it is still the one that was read. It may be stopped and run again at any time: work
 * that is done is not repeated. The check value comes last, so that SECRET_KEY_PREVIOUS is needed until all is done.
 */
export async function reseal(
  db: Db,
  registry: Registry,
  keyring: Keyring,
  onPlace: (done: Resealed) => void,
): Promise<void> {
  for (const column of sealedColumns(registry)) {
    const done = { sealed: 0, lost: 0 }
    for (let after: string | null = null; ; ) {
      const rows = await retrying(() => readPortion(db, column, keyring, after), tries)
      const anew = rows.map((row) => ({ ...row, ...resealed(row, column, keyring) }))
      done.lost += anew.reduce((sum, { lost }) => sum + lost, 0)
      const changed = anew.filter(({ before, text }) => before !== text)
      done.sealed += await retrying(() => replace(db, column, changed), tries)
      if (rows.length < portion) break
      after = rows.at(-1)?.key ?? null
    }
    onPlace({ place: `${column.table}.${column.column}`, ...done })
  }
  for (const { id } of await db.installation.findMany({ select: { id: true } }))
    await db.installation.updateMany({ where: { id }, data: { sealedCheck: sealedCheck(keyring, id) } })
}

const sealedRow = z.object({ key: z.string(), row: z.string(), before: z.string() })
type SealedRow = z.output<typeof sealedRow>

/** Reads rows with a value that is not sealed in the current form, in the order of their keys. */
function readPortion(
  db: Db,
  { table, column, row, key, type, json }: SealedColumn,
  { prefix }: Keyring,
  after: string | null,
): Promise<SealedRow[]> {
  const isOld = json
    ? `EXISTS (SELECT FROM jsonb_each_text("${column}") AS each WHERE NOT starts_with(each.value, $1))`
    : `NOT starts_with("${column}", $1)`
  return query(db, sealedRow, {
    text: `SELECT "${key}"::text AS key, "${row}"::text AS row, "${column}"::text AS before FROM "${table}"
      WHERE "${column}" IS NOT NULL AND ($2::text IS NULL OR "${key}" > $2::text::${type}) AND ${isOld}
      ORDER BY "${key}" LIMIT $3`,
    values: [prefix, after, portion],
  })
}

/** Seals a value anew. One that no key opens stays as it is: it is lost already. */
function resealed({ row, before }: SealedRow, { table, column, json }: SealedColumn, keyring: Keyring) {
  let lost = 0
  const again = (envelope: string, name: string) => {
    if (envelope.startsWith(keyring.prefix)) return envelope
    const place = { table, row, column: name }
    try {
      return keyring.seal(keyring.open(envelope, place), place)
    } catch {
      lost += 1
      return envelope
    }
  }
  if (!json) return { text: again(before, column), lost }
  const secrets = z.record(z.string(), z.string().nullable()).parse(JSON.parse(before))
  const anew = Object.entries(secrets).map(([name, envelope]) => [
    name,
    envelope === null ? null : again(envelope, `${column}.${name}`),
  ])
  const isSame = anew.every(([name, envelope]) => secrets[String(name)] === envelope)
  return { text: isSame ? before : JSON.stringify(Object.fromEntries(anew)), lost }
}

async function replace(
  db: Db,
  { table, column, key, type, json }: SealedColumn,
  rows: readonly (SealedRow & { readonly text: string })[],
): Promise<number> {
  if (rows.length === 0) return 0
  const cast = json ? '::jsonb' : ''
  return execute(db, {
    text: `UPDATE "${table}" SET "${column}" = anew.text${cast}
      FROM unnest($1::text[]::${type}[], $2::text[], $3::text[]) AS anew(key, before, text)
      WHERE "${table}"."${key}" = anew.key AND "${table}"."${column}" = anew.before${cast}`,
    values: [rows.map((each) => each.key), rows.map(({ before }) => before), rows.map(({ text }) => text)],
  })
}
