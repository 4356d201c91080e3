import { z } from 'zod'
import type { EngineReader } from '../db/engine-tx.ts'
import { unprepared } from '../db/raw.ts'
import type { Field, Model } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { onlyOf } from './snapshot-sql.ts'
import { columnOf, labelColumn, quoted } from './statements.ts'

/** A row may not change so that references to it stop making sense: a flow in use keeps its designation. */

type Referrer = { readonly model: Model; readonly field: Field; readonly takes: readonly string[] }

const found = z.object({ index: z.int(), label: z.string() })

/**
 * @param name the field of the row that changes, to `value`
 * @param hidesNames whether the caller may not learn names of rows of a model
 * @returns why it may not; null when no row refers to it in a field that takes other values only
 */
export async function misfitting(
  reader: EngineReader,
  registry: Registry,
  { model, pk }: { readonly model: Model; readonly pk: string | number },
  name: string,
  value: unknown,
  hidesNames: (model: Model) => Promise<boolean>,
): Promise<string | null> {
  const restricted = known.getOrInsertComputed(registry, restrictedReferrers).get(placeOf(model.target, name)) ?? []
  const referrers = restricted.filter(({ takes }) => !takes.some((each) => each === value))
  if (referrers.length === 0) return null
  const text = referrers.map((referrer, index) => `(${referrerText(referrer, index, model)})`).join(' UNION ALL ')
  const [first] = await reader.query(found, unprepared({ text: `${text} LIMIT 1`, values: [pk] }))
  const referrer = referrers[first?.index ?? -1]
  if (first === undefined || referrer === undefined) return null
  const { model: other, field, takes } = referrer
  const referring = (await hidesNames(other))
    ? `a ${other.displayName}`
    : `${other.displayName} ${JSON.stringify(first.label)}`
  return `${referring} refers to it in ${field.name}, which takes ${takes.join(', ')}.`
}

const placeOf = (target: string, column: string) => `${target}.${column}`

/** The restricted references to a field, such as `flow.designation`. Most fields have none. */
function restrictedReferrers(registry: Registry): ReadonlyMap<string, readonly Referrer[]> {
  const referrers = new Map<string, Referrer[]>()
  for (const model of registry.models)
    for (const field of model.fields.values()) {
      const { reference } = field
      const only = reference && onlyOf(registry, reference)
      if (reference === undefined || only === undefined || only.atFirst) continue
      const place = placeOf(reference.target, only.column)
      referrers.getOrInsertComputed(place, () => []).push({ model, field, takes: only.values })
    }
  return referrers
}

const known = new WeakMap<Registry, ReadonlyMap<string, readonly Referrer[]>>()

/** A row that refers to the key `$1` in this field. */
function referrerText({ model, field }: Referrer, index: number, { key, target }: Model): string {
  const { name, storage } = field
  const own = Object.entries(model.discriminator).map(([column, value]) => ` AND t.${quoted(column)} = '${value}'`)
  const select = `SELECT ${index} AS index, t.${quoted(labelColumn(model))}::text AS label FROM ${quoted(model.table)} t`
  const is = `= $1::${key}${own.join('')} LIMIT 1`
  if (storage.in === 'link')
    return `${select} JOIN ${quoted(storage.table)} l ON l.${quoted(storage.own)} = t.pk WHERE l.${quoted(storage.other)} ${is}`
  if (storage.in === 'column') return `${select} WHERE t.${quoted(columnOf(model, name))} ${is}`
  const { table, own: ownKey, columns } = model.referenceRows ?? {}
  const column = columns?.[target]
  if (table === undefined || ownKey === undefined || column === undefined)
    throw new Error(`${model.name}: ${name} has no reference rows`)
  return `${select} JOIN ${quoted(table)} r ON r.${quoted(ownKey)} = t.pk AND r.field = '${name}' WHERE r.${quoted(column.name)} ${is}`
}
