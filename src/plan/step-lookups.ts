import { Find } from '../document/document.ts'
import type { Model } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { storable } from '../models/syntax.ts'
import type { Step } from './compile.ts'
import { namesOf } from './known-rows.ts'
import { itemsOf } from './list-edit.ts'
import type { By } from './lookup-sql.ts'
import { lookupsIn } from './lookups.ts'
import { Named } from './named.ts'
import { areFree, isFreeFind } from './sight.ts'
import { onlyOf } from './snapshot-sql.ts'
import { columnOf } from './statements.ts'

/** A look-up of an entry: its table and its values. `columns` are read of the rows that are found. */
export type StepLookup = {
  readonly model: Model
  readonly columns: readonly string[]
  readonly by: readonly By[]
  /** The models of which the row may be. */
  readonly models: readonly Model[]
  /** Whether every caller may look it up. */
  readonly isFree: boolean
}

/** The look-ups of an entry: by names, by `!Find`, and for rows with the same name, in a model with several names or by `was`. */
export function lookupsOf(registry: Registry, step: Step): StepLookup[] {
  const { model, identifiers, was } = step
  const [[field, name] = []] = identifiers
  const columns = field === undefined || was === undefined ? [] : [columnOf(model, field)]
  const by = columns.length === 0 ? [] : [was, name].map((value) => ({ columns, values: [String(value)] }))
  const renamed = by.length === 0 ? [] : [{ model, columns, by, models: [model], isFree: true }]
  const others = valuesOf(step).flatMap(([name, value]) => {
    const reference = name === undefined ? undefined : step.model.fields.get(name)?.reference
    const target = registry.targets.get(reference?.target ?? '')
    const [model] = target?.models ?? []
    const named = itemsOf(value).filter((item) => item instanceof Named)
    const names =
      target === undefined || model === undefined || reference === undefined
        ? []
        : named.map((item) => {
            const by = namesOf(item.name, target)
            const only = onlyOf(registry, reference)
            const fitting = only === undefined ? [] : [only.column]
            const columns = [...by.flatMap(({ columns }) => columns), ...fitting]
            return { model, by, columns, models: target.models, isFree: areFree(target.models) }
          })
    const finds = lookupsIn(value).flatMap((tag) => {
      const model = tag instanceof Find ? registry.byName(tag.model) : undefined
      if (model === undefined || !(tag instanceof Find)) return []
      const columns = Object.keys(tag.identifiers).flatMap((field) => storedIn(model, field) ?? [])
      const by = byOf(registry, tag)
      const isFree = isFreeFind(model, tag.identifiers)
      return [{ model, columns, by: by === undefined ? [] : [by], models: [model], isFree }]
    })
    const own = registry.targets.get(step.model.target)
    const isName = typeof value === 'string' && step.model.names.some((each) => each === name)
    const called =
      own === undefined || step.model.names.length < 2
        ? []
        : [{ model: step.model, by: isName ? namesOf(value, own) : [], columns: [], models: own.models, isFree: true }]
    return [...names, ...finds, ...called]
  })
  return [...renamed, ...others]
}

/** @returns undefined for a tag whose identifiers are not plain values, or not fields of the model */
export function byOf(registry: Registry, { model: name, identifiers }: Find): By | undefined {
  const model = registry.byName(name)
  const named = Object.entries(identifiers)
  if (model === undefined || named.length === 0) return undefined
  const columns = named.map(([field]) => storedIn(model, field)).filter((column) => column !== undefined)
  const isPlain = named.every(([, value]) => typeof value !== 'object' || value === null)
  const values = named.map(([, value]) => String(value))
  return isPlain && columns.length === named.length && values.every((value) => storable(value) === undefined)
    ? { columns, values }
    : undefined
}

/** All values of an entry, by field; conditions have no field. */
const valuesOf = ({ identifiers, attrs, conditions }: Step): [string | undefined, unknown][] => [
  ...identifiers,
  ...attrs,
  ...(conditions ?? []).map((each): [undefined, unknown] => [undefined, each]),
]

/** @returns the column of a field that is stored in one */
export const storedIn = (model: Model, name: string): string | undefined =>
  name === 'pk' || model.fields.get(name)?.storage.in === 'column' ? columnOf(model, name) : undefined
