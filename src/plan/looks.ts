import type { Find } from '../document/document.ts'
import type { Field, Model } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { storable } from '../models/syntax.ts'
import type { Look } from './look.ts'
import { looksFor } from './references.ts'
import { columnOf, exclusiveLinks, type Key } from './statements.ts'
import { type Step, waysToFind } from './step.ts'
import type { World } from './world.ts'

/** The questions of an entry: whatever it needs to know of rows is one of these. */

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

const byFields = (model: Model, names: readonly string[], values: readonly unknown[]): Look => ({
  model,
  columns: names.map((name) => columnOf(model, name)),
  values: values.map(String),
})

/** The row of an entry: it is found by any of the ways that the entry names, and in one way by all of its fields. */
export function ownLooks({ model }: Pick<Step, 'model'>, identifiers: ReadonlyMap<string, unknown>): Look[] {
  const isUsable = [...identifiers.values()].every((value) => value !== undefined && typeof value !== 'symbol')
  const ways = isUsable ? waysToFind(model, [...identifiers.keys()]) : []
  return ways.map((way) => {
    const values = way.map((name) => identifiers.get(name))
    return byFields(model, way, values)
  })
}

/** The rows with the name that a row had before, and with the one that it gets. */
export function renameLooks({ model, identifiers, was }: Step): Look[] {
  const [[field, name] = []] = identifiers
  if (was === undefined || field === undefined || name === was) return []
  return [was, name].map((value) => byFields(model, [field], [value]))
}

/** A field whose value, or each of its keys, only one row may have. */
export const isExclusive = (model: Model, { name, folded }: Field): boolean =>
  folded || model.unique.includes(name) || exclusiveLinks(model).some(([each]) => each.name === name)

/** The rows that have a value of such a field. */
export const holders = (model: Model, field: Field, value: Key): Look => ({
  model,
  ...(field.reference === undefined ? { columns: [columnOf(model, field.name)] } : { columns: [], field }),
  values: [String(value)],
  ...(field.folded && { folded: true }),
})

/** The rows that count for the limit of a model. */
export const counted = (model: Model, limit: NonNullable<Model['limit']>, key: Key): Look => ({
  ...byFields(model, [limit.per], [key]),
  until: columnOf(model, limit.until),
  most: 2 * limit.rows,
})

/** The rows that share a name, in a model whose rows have several: no index guards these. */
export function namesakeLooks(
  { registry: { targets } }: World,
  { target, names }: Model,
  name: unknown,
): readonly Look[] {
  const own = names.length > 1 ? targets.get(target) : undefined
  return own === undefined || typeof name !== 'string' ? [] : looksFor(name, own)
}

/** The most rows of a table that are handled at once. One more is read. */
export const maxLabelled = 1_000

/** The questions which rows claim this one: those of a model in one of its fields. */
export const claimLooks = (world: World, table: string, key: Key): (Look & { readonly field: Field })[] =>
  world.registry.models.flatMap((model) =>
    claimingFields(model)
      .filter(({ reference }) => world.tableOf(reference) === table)
      .map((field) => ({ model, columns: [], field, values: [String(key)], most: maxLabelled })),
  )

export const claimingFields = ({ claims = [], fields }: Model): Field[] =>
  claims.flatMap((name) => fields.get(name) ?? [])
