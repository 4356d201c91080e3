import { z } from 'zod'
import type { EngineReader } from '../db/engine-tx.ts'
import { unprepared } from '../db/raw.ts'
import type { Model } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import type { Finding } from './inspect.ts'
import { columnOf, labelColumn, quoted } from './statements.ts'
import { keysOf } from './storage.ts'

/** Which rows have others for their own, by the fields that a model claims: an application its providers. */

const key = z.union([z.string(), z.int()])

const namedRow = z.object({ pk: key, name: z.string(), discriminator: z.record(z.string(), z.string()) })

/** A row with its model and its name. */
export type NamedRow = { readonly model: Model; readonly pk: string | number; readonly name: string }

const holder = z.object({ model: z.string(), field: z.string(), pk: key, label: z.string(), held: key })

/** One row that has another for its own. */
export type Holder = Readonly<z.output<typeof holder>>

/** A row that no other row has for its own any more. */
export type Orphan = {
  readonly row: NamedRow
  /** What it belonged to, in messages: `application`. */
  readonly holder: string
  /** It was the one row of its field, such as the provider of an application, and not one of several. */
  readonly isReplaced: boolean
}

/** At most one more than this many rows are read of a table at once. */
export const maxNamed = 1_000

/** @param by the keys of the rows, or the label under which they are managed, and of those the ones to leave out, as `table key` */
export async function namedRows(
  reader: EngineReader,
  { models }: Registry,
  table: string,
  by:
    | { readonly keys: readonly (string | number)[] }
    | { readonly owner: string; readonly except: ReadonlySet<string> },
): Promise<NamedRow[]> {
  const ofTable = models.filter((model) => model.table === table)
  const [first] = ofTable
  if (first === undefined) return []
  const columns = [...new Set(ofTable.flatMap(({ discriminator }) => Object.keys(discriminator)))]
  const discriminator = columns.map((column) => `'${column}', t.${quoted(column)}`).join(', ')
  const isAny = (parameter: string) => `t.pk = ANY(${parameter}::${first.key}[])`
  const [where, values] =
    'keys' in by
      ? [isAny('$1'), [by.keys]]
      : [`t."owner" = $1 AND NOT ${isAny('$2')}`, [by.owner, keysIn(first, by.except)]]
  const text = `SELECT t.pk, t.${quoted(labelColumn(first))} AS name, jsonb_build_object(${discriminator}) AS discriminator
    FROM ${quoted(table)} t WHERE ${where} ORDER BY t.pk LIMIT ${maxNamed + 1}`
  const rows = await reader.query(namedRow, { text, values })
  return rows.flatMap(({ pk, name, discriminator: has }) => {
    const model = ofTable.find((each) => Object.entries(each.discriminator).every(([column, is]) => has[column] === is))
    return model === undefined ? [] : [{ model, pk, name }]
  })
}

/** Of keys as `table key`, those of the model's table. */
const keysIn = ({ table, key }: Model, all: ReadonlySet<string>): (string | number)[] =>
  [...all]
    .filter((each) => each.startsWith(`${table} `))
    .map((each) => each.slice(table.length + 1))
    .map((text) => (key === 'integer' ? Number(text) : text))

/** The fields of all models that claim rows of this table. */
function claimingFields({ models, targets }: Registry, table: string) {
  return models.flatMap((model) =>
    (model.claims ?? []).flatMap((name) => {
      const field = model.fields.get(name)
      const target = targets.get(field?.reference?.target ?? '')
      return field === undefined || target?.table !== table ? [] : [{ model, field, type: target.key }]
    }),
  )
}

/** The rows that have one of these rows of a table for their own. */
export async function holdersOf(
  reader: EngineReader,
  registry: Registry,
  table: string,
  keys: readonly (string | number)[],
): Promise<Holder[]> {
  const selects = claimingFields(registry, table).map(({ model, field: { name, storage }, type }) => {
    const from = `${quoted(model.table)} t`
    const [value, source] =
      storage.in === 'link'
        ? [`l.${quoted(storage.other)}`, `${quoted(storage.table)} l JOIN ${from} ON t.pk = l.${quoted(storage.own)}`]
        : [`t.${quoted(columnOf(model, name))}`, from]
    return `SELECT '${model.name}' AS model, '${name}' AS field, to_jsonb(t.pk) AS pk,
      t.${quoted(labelColumn(model))}::text AS label, to_jsonb(${value}) AS held
      FROM ${source} WHERE ${value} = ANY($1::${type}[])`
  })
  if (selects.length === 0 || keys.length === 0) return []
  return reader.query(holder, unprepared({ text: selects.join(' UNION ALL '), values: [keys] }))
}

/** What a finding takes away from its row, and what its row has afterwards, by field. */
function claimChanges({ step: { model }, action, row, isForeign, values }: Finding) {
  return (model.claims ?? []).map((name) => {
    const field = model.fields.get(name)
    const isLink = field?.storage.in === 'link'
    const had = row === undefined || isForeign ? [] : keysOf(row[isLink ? `link:${name}` : columnOf(model, name)])
    const isWritten = action === 'create' || action === 'update' || action === 'unchanged'
    const has = isWritten ? keysOf(values[name]) : action === 'delete' ? [] : had
    return { name, field, isLink, has, released: had.filter((each) => !has.includes(each)) }
  })
}

/** The rows that a document has for its rows' own afterwards, as `table key`. */
export function claimedBy({ targets }: Registry, findings: readonly Finding[]): ReadonlySet<string> {
  return new Set(
    findings.flatMap((finding) =>
      claimChanges(finding).flatMap(({ field, has }) => {
        const table = targets.get(field?.reference?.target ?? '')?.table ?? ''
        return has.map((each) => `${table} ${each}`)
      }),
    ),
  )
}

/**
 * The rows that the findings leave without a row that has them for its own. Right before the findings are written, and
 * afterwards too.
 */
export async function orphansOf(
  reader: EngineReader,
  registry: Registry,
  findings: readonly Finding[],
): Promise<Orphan[]> {
  type Released = { readonly finding: Finding; readonly name: string; readonly isLink: boolean }
  const byTable = new Map<string, Map<string | number, Released[]>>()
  const claimed = claimedBy(registry, findings)
  for (const finding of findings)
    for (const { name, field, isLink, released } of claimChanges(finding)) {
      const table = registry.targets.get(field?.reference?.target ?? '')?.table ?? ''
      const keys = byTable.getOrInsertComputed(table, () => new Map())
      for (const each of released)
        if (!claimed.has(`${table} ${each}`)) keys.getOrInsertComputed(each, () => []).push({ finding, name, isLink })
    }
  const orphans: Orphan[] = []
  for (const [table, released] of byTable) {
    if (released.size === 0) continue
    const isReleased = ({ model, field, pk, held }: Holder) =>
      released
        .get(held)
        ?.some(({ finding, name }) => finding.step.model.name === model && name === field && finding.row?.pk === pk)
    const holders = await holdersOf(reader, registry, table, [...released.keys()])
    const held = new Set(holders.filter((each) => isReleased(each) !== true).map((each) => each.held))
    const free = [...released.keys()].filter((each) => !held.has(each))
    const removed = new Set(
      findings.flatMap(({ action, row, step }) => (action === 'delete' && step.model.table === table ? [row?.pk] : [])),
    )
    for (const row of await namedRows(reader, registry, table, { keys: free })) {
      const from = released.get(row.pk) ?? []
      const [first] = from
      if (removed.has(row.pk) || first === undefined) continue
      const isReplaced = from.some(({ isLink }) => !isLink)
      orphans.push({ row, holder: first.finding.step.model.displayName, isReplaced })
    }
  }
  return orphans
}

/** Of these holders, those that are there and hold nothing in that field, or hold no longer what is gone of several. */
export async function bereft<Lost extends Holder>(
  reader: EngineReader,
  registry: Registry,
  holders: readonly Lost[],
): Promise<(Lost & { readonly displayName: string; readonly isLink: boolean })[]> {
  const left: (Lost & { readonly displayName: string; readonly isLink: boolean })[] = []
  for (const group of Map.groupBy(holders, ({ model, field }) => `${model} ${field}`).values()) {
    const [{ model: name, field } = { model: '', field: '' }] = group
    const model = registry.byName(name)
    if (model === undefined) continue
    const isLink = model.fields.get(field)?.storage.in === 'link'
    const isEmpty = isLink ? '' : ` AND ${quoted(columnOf(model, field))} IS NULL`
    const found = await reader.query(z.object({ pk: key }), {
      text: `SELECT pk FROM ${quoted(model.table)} WHERE pk = ANY($1::${model.key}[])${isEmpty}`,
      values: [group.map(({ pk }) => pk)],
    })
    const keys = new Set(found.map(({ pk }) => pk))
    const { displayName } = model
    left.push(...group.filter(({ pk }) => keys.has(pk)).map((each) => ({ ...each, displayName, isLink })))
  }
  return left
}
