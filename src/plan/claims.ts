import { z } from 'zod'
import type { EngineReader } from '../db/engine-tx.ts'
import { unprepared } from '../db/raw.ts'
import type { Field, Model } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import type { Step } from './compile.ts'
import type { Effect } from './effect.ts'
import { modelOf } from './model-of.ts'
import { type Key, RowSet } from './row-set.ts'
import { columnOf, keysIn, labelColumn, quoted } from './statements.ts'
import { keysOf, storedKeys } from './storage.ts'

/** The claims of rows on others, by the fields that a model declares for it: an application claims its providers. */

const key = z.union([z.string(), z.int()])

const owner = z.string().nullable()
const labelledRow = z.object({ pk: key, name: z.string(), owner, discriminator: z.record(z.string(), z.string()) })

/** A row with its model and the name that messages give it. */
export type NamedRow = { readonly model: Model; readonly pk: Key; readonly name: string }

/** @property owner the label under which it is managed; null without one */
export type LabelledRow = NamedRow & { readonly owner: string | null }

const claim = z.object({ model: z.string(), field: z.string(), pk: key, label: z.string(), owner, claimed: key })

/** One row, `pk` of `model`, claims another. */
type Claim = Readonly<z.output<typeof claim>>

/** A row that no other row claims any more. */
export type Orphan = {
  readonly row: LabelledRow
  /** The kind of row that claimed it, in messages: `application`. */
  readonly claimant: string
  /** Whether it was the one row of its field, such as the provider of an application, and not one of several. */
  readonly isReplaced: boolean
  /** The entries that leave it. */
  readonly by: readonly Step[]
}

/** The label under which a row is managed, in SQL. */
const ownerColumn = ({ isLabelled }: Model): string => (isLabelled === true ? 't."owner"' : 'NULL')

/** The most rows of a table that are handled at once. One more is read. */
export const maxLabelled = 1_000

/** @param by the keys of the rows, or the labels under which they are managed, and those to leave out */
export async function readLabels(
  reader: EngineReader,
  registry: Registry,
  table: string,
  by: { readonly keys: readonly Key[] } | { readonly owners: readonly string[]; readonly except: RowSet },
): Promise<LabelledRow[]> {
  const ofTable = registry.models.filter((model) => model.table === table)
  const [first] = ofTable
  if (first === undefined) return []
  const columns = [...new Set(ofTable.flatMap(({ discriminator }) => Object.keys(discriminator)))]
  const discriminator = columns.map((column) => `'${column}', t.${quoted(column)}`).join(', ')
  const isAny = (parameter: string) => `t.pk = ANY(${parameter}::${first.key}[])`
  const [where, values] =
    'keys' in by
      ? [isAny('$1'), [by.keys]]
      : [`t."owner" = ANY($1::text[]) AND NOT ${isAny('$2')}`, [by.owners, by.except.of(table)]]
  const text = `SELECT t.pk, t.${quoted(labelColumn(first))} AS name, ${ownerColumn(first)} AS owner,
      jsonb_build_object(${discriminator}) AS discriminator
    FROM ${quoted(table)} t WHERE ${where} ORDER BY t.pk LIMIT ${maxLabelled + 1}`
  const rows = await reader.query(labelledRow, { text, values })
  return rows.flatMap(({ pk, name, owner, discriminator }) => {
    const model = modelOf(registry, table, discriminator)
    return model === undefined ? [] : [{ model, pk, name, owner }]
  })
}

export async function claimsOn(
  reader: EngineReader,
  { models, targets }: Registry,
  table: string,
  keys: readonly Key[],
): Promise<Claim[]> {
  const selects = models.flatMap((model) =>
    claimingFields(model).flatMap(({ name, reference }) => {
      const target = targets.get(reference?.target ?? '')
      if (target?.table !== table) return []
      const { value, from } = keysIn(model, name)
      return `SELECT '${model.name}' AS model, '${name}' AS field, to_jsonb(t.pk) AS pk,
        t.${quoted(labelColumn(model))}::text AS label, ${ownerColumn(model)} AS owner, to_jsonb(${value}) AS claimed
        FROM ${from} WHERE ${value} = ANY($1::${target.key}[])`
    }),
  )
  if (selects.length === 0 || keys.length === 0) return []
  return reader.query(claim, unprepared({ text: selects.join(' UNION ALL '), values: [keys] }))
}

const claimingFields = ({ claims = [], fields }: Model): Field[] => claims.flatMap((name) => fields.get(name) ?? [])

/** The rows that an entry releases, and those that its row claims afterwards, by field. */
const claimChanges = ({ step: { model }, action, row, isForeign, values }: Effect) =>
  claimingFields(model).map((field) => {
    const had = row === undefined || isForeign ? [] : storedKeys(field, row)
    const isWritten = action === 'create' || action === 'update' || action === 'unchanged'
    const has = isWritten ? keysOf(values[field.name]) : action === 'delete' ? [] : had
    return { field, has, released: had.filter((each) => !has.includes(each)) }
  })

const targetTable = ({ targets }: Registry, { reference }: Field) => ({
  table: targets.get(reference?.target ?? '')?.table ?? '',
})

/** Adds the rows that the rows of a document claim afterwards. */
export function addClaimed(rows: RowSet, registry: Registry, effects: readonly Effect[]): RowSet {
  for (const effect of effects)
    for (const { field, has } of claimChanges(effect))
      for (const each of has) rows.add(targetTable(registry, field), each)
  return rows
}

/** The rows that the effects leave unclaimed. The result is right before the effects are written, and afterwards. */
export async function orphansOf(
  reader: EngineReader,
  registry: Registry,
  effects: readonly Effect[],
): Promise<Orphan[]> {
  type Released = { readonly effect: Effect; readonly field: Field }
  const byTable = new Map<string, Map<Key, Released[]>>()
  const claimed = addClaimed(new RowSet(), registry, effects)
  for (const effect of effects)
    for (const { field, released } of claimChanges(effect)) {
      const target = targetTable(registry, field)
      for (const each of released.filter((key) => !claimed.has(target, key)))
        byTable
          .getOrInsertComputed(target.table, () => new Map())
          .getOrInsertComputed(each, () => [])
          .push({ effect, field })
    }
  const orphans: Orphan[] = []
  for (const [table, released] of byTable) {
    const isReleased = ({ model, field: name, pk, claimed: key }: Claim) =>
      released
        .get(key)
        ?.some(({ effect, field }) => effect.step.model.name === model && name === field.name && effect.row?.pk === pk)
    const others = await claimsOn(reader, registry, table, [...released.keys()])
    const kept = new Set(others.filter((each) => isReleased(each) !== true).map((each) => each.claimed))
    const deleted = new Set(
      effects.flatMap(({ action, row, step }) => (action === 'delete' && step.model.table === table ? [row?.pk] : [])),
    )
    const free = [...released.keys()].filter((each) => !kept.has(each) && !deleted.has(each))
    if (free.length === 0) continue
    for (const row of await readLabels(reader, registry, table, { keys: free })) {
      const from = released.get(row.pk) ?? []
      const isReplaced = from.some(({ field }) => field.storage.in !== 'link')
      const by = from.map(({ effect }) => effect.step)
      orphans.push({ row, claimant: by[0]?.model.displayName ?? '', isReplaced, by })
    }
  }
  return orphans
}

/** A claim on a row that is deleted. @property name that of the deleted row */
type Lost = Claim & { readonly name: string }

/** The claims on rows that the effects delete, and do not release. They are read before the effects are written. */
export async function claimsLost(
  reader: EngineReader,
  registry: Registry,
  effects: readonly Effect[],
): Promise<Lost[]> {
  const deleted = effects.flatMap(({ action, row, step: { model }, label }) =>
    action === 'delete' && row !== undefined
      ? [{ table: model.table, pk: row.pk, name: `${model.displayName} ${JSON.stringify(label)}` }]
      : [],
  )
  const isReleased = ({ model, field: name, pk, claimed }: Claim) =>
    effects.some(
      (effect) =>
        effect.row?.pk === pk &&
        effect.step.model.name === model &&
        claimChanges(effect).some(({ field, released }) => field.name === name && released.includes(claimed)),
    )
  const lost: Lost[] = []
  for (const [table, rows] of Map.groupBy(deleted, (each) => each.table)) {
    const names = new Map(rows.map(({ pk, name }) => [pk, name]))
    for (const each of await claimsOn(reader, registry, table, [...names.keys()]))
      if (!isReleased(each)) lost.push({ ...each, name: names.get(each.claimed) ?? '' })
  }
  return lost
}

/** A row that claimed one which is gone. */
export type LeftEmpty = Lost & { readonly of: Model; readonly isLink: boolean }

/** The claims whose row is there and claims nothing else in that field, or claims fewer of several. */
export async function leftEmpty(
  reader: EngineReader,
  registry: Registry,
  claims: readonly Lost[],
): Promise<LeftEmpty[]> {
  const left: LeftEmpty[] = []
  for (const group of Map.groupBy(claims, ({ model, field }) => `${model} ${field}`).values()) {
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
    left.push(...group.filter(({ pk }) => keys.has(pk)).map((each) => ({ ...each, of: model, isLink })))
  }
  return left
}
