import type { Find } from '../document/document.ts'
import type { Field, Model } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { storable } from '../models/syntax.ts'
import { keysNamed } from './edited-lists.ts'
import { ListEdit } from './list-edit.ts'
import { byKey, type LinkLook, type Look } from './look.ts'
import { findAny, looksFor } from './references.ts'
import { columnOf, exclusiveLinks, type Key, linksOf, type Row } from './statements.ts'
import { type Step, waysToFind } from './step.ts'
import { keysOf, storedKeys } from './storage.ts'
import type { World } from './world.ts'

/** The questions of an entry: whatever it needs to know of rows is one of these. */

/** Values by field. */
type Sent = ReadonlyMap<string, unknown>

/** @returns undefined for a tag whose identifiers are not plain values, or not fields of the model */
export function finding(registry: Registry, { model: name, identifiers }: Find): Look | undefined {
  const model = registry.byName(name)
  const named = Object.entries(identifiers)
  if (model === undefined || named.length === 0) return undefined
  const columns = named.map(([field]) => storedIn(model, field)).filter((column) => column !== undefined)
  const isPlain = named.every(([, value]) => typeof value !== 'object' || value === null)
  const values = named.map(([, value]) => String(value))
  return isPlain && columns.length === named.length && values.every((value) => storable(value) === undefined)
    ? { model, columns, values }
    : undefined
}

/** @returns the column of a field that is stored in one */
export const storedIn = (model: Model, name: string): string | undefined =>
  name === 'pk' || model.fields.get(name)?.storage.in === 'column' ? columnOf(model, name) : undefined

/** The row of an entry: it is found by any of the ways that the entry names, and in one way by all of its fields. */
export function ownLooks({ model }: Pick<Step, 'model'>, identifiers: ReadonlyMap<string, unknown>): Look[] {
  const isUsable = [...identifiers.values()].every((value) => value !== undefined && typeof value !== 'symbol')
  const ways = isUsable ? waysToFind(model, [...identifiers.keys()]) : []
  return ways.map((way) => ({
    model,
    columns: way.map((name) => columnOf(model, name)),
    values: way.map((name) => String(identifiers.get(name))),
    whole: true,
  }))
}

/** The rows with the name that a row had before, and with the one that it gets. */
export function renameLooks({ model, identifiers, was }: Step): Look[] {
  const [[field, name] = []] = identifiers
  if (was === undefined || field === undefined || name === was) return []
  return [was, name].map((value) => ({
    model,
    columns: [columnOf(model, field)],
    values: [String(value)],
    whole: true,
  }))
}

/** A field whose value, or each of its keys, only one row may have. */
export const isExclusive = (model: Model, { name, folded }: Field): boolean =>
  folded || model.unique.includes(name) || exclusiveLinks(model).some(([each]) => each.name === name)

/** The rows that have a value of such a field. */
export const holders = (model: Model, field: Field, value: Key): Look => ({
  model,
  ...(field.reference === undefined ? { columns: [columnOf(model, field.name)] } : { columns: [], field }),
  ...(field.storage.in === 'link' && { whole: true }),
  values: [String(value)],
  ...(field.folded && { folded: true }),
})

/** The rows that count for the limit of a model. */
export const counted = (model: Model, limit: NonNullable<Model['limit']>, key: Key): Look => ({
  model,
  columns: [columnOf(model, limit.per)],
  values: [String(key)],
  until: columnOf(model, limit.until),
  most: 2 * limit.rows,
})

/** The most rows of a table that are handled at once. One more is read. */
export const maxLabelled = 1_000

/** The questions which rows claim this one: those of a model in one of its fields. */
export const claimLooks = (world: World, table: string, key: Key): (Look & { readonly field: Field })[] =>
  world.registry.models.flatMap((model) =>
    claimingFields(model)
      .filter(({ reference }) => world.tableOf(reference) === table)
      .map((field) => ({ model, columns: [], field, values: [String(key)], whole: true, most: maxLabelled })),
  )

export const claimingFields = ({ claims = [], fields }: Model): Field[] =>
  claims.flatMap((name) => fields.get(name) ?? [])

/**
 * The questions about the values of an entry.
 *
 * @param row the row of the entry: no other row has the values that only one may have, where this row has them
 */
function valueLooks(
  { targets }: Registry,
  model: Model,
  values: ReadonlyMap<string, unknown>,
  row: Row | undefined,
): Look[] {
  const looks: Look[] = []
  for (const [name, value] of values) {
    const field = model.fields.get(name)
    if (field === undefined) continue
    const [target] = targets.get(field.reference?.target ?? '')?.models ?? []
    const added = keysOf(value instanceof ListEdit ? value.add : value)
    if (target !== undefined) for (const key of keysNamed(value) ?? added) looks.push(byKey(target, key))
    if (isExclusive(model, field))
      for (const key of added) if (!hasValue(row, field, key)) looks.push(holders(model, field, key))
    const own = model.names.length > 1 && model.names.includes(name) ? targets.get(model.target) : undefined
    if (own !== undefined) for (const text of added) looks.push(...looksFor(String(text), own))
    if (model.limit?.per === name) for (const key of added.slice(0, 1)) looks.push(counted(model, model.limit, key))
  }
  return looks
}

export const hasValue = (row: Row | undefined, field: Field, value: Key): boolean =>
  row !== undefined && storedKeys(field, row).includes(value)

/**
 * What an entry asks about its row, once that is found: links in fields where a row may have very many, the rows of which a
 * reference needs values, and those that claim a deleted row.
 *
 * @param readsAll whether all links are read: a plan has their digest
 */
function rowLooks(
  world: World,
  { model, state, attrs }: Step,
  values: ReadonlyMap<string, unknown>,
  row: Row,
  readsAll: boolean,
): { readonly looks: Look[]; readonly links: LinkLook[] } {
  const links = linksOf(model).flatMap(([{ name }, { many }]) => {
    if (many !== true || !(readsAll || state === 'absent' || attrs.has(name))) return []
    return [{ model, name, pk: row.pk, among: keysNamed(values.get(name)) }]
  })
  const needed = [...model.fields.values()].flatMap((field) => {
    const { needs, target = '' } = field.reference ?? {}
    const [of] = needs === undefined ? [] : (world.registry.targets.get(target)?.models ?? [])
    return of === undefined ? [] : storedKeys(field, row).map((key) => byKey(of, key))
  })
  const claims = state === 'absent' ? claimLooks(world, model.table, row.pk) : []
  return { looks: [...needed, ...claims], links }
}

/**
 * The questions of an entry.
 *
 * @param fields its fields with keys, as far as they are known
 * @param readsAll whether links that may be very many are read where the entry does not need them
 * @returns also the rows that its identifiers find, two at most, once they are loaded: there are more questions then
 */
export function questionsOf(
  world: World,
  step: Step,
  { identifiers, values }: { readonly identifiers: Sent; readonly values: Sent },
  readsAll: boolean,
): { readonly rows: readonly Row[]; readonly looks: Look[]; readonly links: LinkLook[] } {
  const own = ownLooks(step, identifiers)
  const rows = own.every((look) => world.knows(look)) ? findAny(world, own).slice(0, 2) : []
  const [row, another] = rows
  const looks = [...own, ...valueLooks(world.registry, step.model, values, row)]
  if (row === undefined || another !== undefined) return { rows, looks, links: [] }
  const ofRow = rowLooks(world, step, values, row, readsAll)
  return { rows, looks: [...looks, ...ofRow.looks], links: ofRow.links }
}
