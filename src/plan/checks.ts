import { KeyOf } from '../document/document.ts'
import type { Only, Reference } from '../models/define.ts'
import { writtenApart } from '../names.ts'
import type { Diff, Entry } from './diff.ts'
import { ListEdit, placesOf } from './list-edit.ts'
import { byKey } from './look.ts'
import { counted, holders, isExclusive, namesakeLooks } from './looks.ts'
import { sentAs } from './named.ts'
import { findAny, fits, onlyOf } from './references.ts'
import type { Resolver } from './resolve.ts'
import { columnOf, type Key, labelColumn, type Row } from './statements.ts'
import { keysOf, storedKeys } from './storage.ts'
import type { World } from './world.ts'

/** The errors of an entry that depend on other rows. */

/** @param step the entry as it was sent */
export function checkReferences({
  resolver: { world },
  step: { model, path, attrs, identifiers },
  row,
  values,
  errors,
}: Entry): void {
  for (const [name, sentValue] of values) {
    const reference = model.fields.get(name)?.reference
    if (reference === undefined) continue
    const [target] = world.registry.targets.get(reference.target)?.models ?? []
    if (target === undefined) continue
    const only = onlyOf(world.registry, reference)
    const isLate = only?.atFirst === true && row !== undefined
    for (const { key, tag, at } of placesOf(sentValue, attrs.get(name) ?? identifiers.get(name))) {
      if (typeof key !== 'string' && typeof key !== 'number') continue
      const [referred] = world.find(byKey(target, key))
      // A missing row need not be removed.
      if (referred === undefined && at[0] === 'remove') continue
      // An entry whose row is of another kind, or has no key, has errors of its own.
      if (referred === undefined && tag instanceof KeyOf && !world.isGone(target.table, key)) continue
      const found = String((only && referred?.[only.column]) ?? '')
      const isUnfit = found !== '' && only?.values.includes(found) === false && !isLate
      if (referred !== undefined && !isUnfit) continue
      const message = misfit(reference, only, sentAs(tag, key), isUnfit ? found : null)
      errors.add([...path, name, ...at], isUnfit ? 'wrong_reference' : 'no_such_row', message)
    }
  }
}

/** @param found the row's value, which does not fit; null without a row */
function misfit({ target }: Reference, only: Only | undefined, what: string, found: string | null): string {
  if (found === null || only === undefined) return `There is no ${target} with the key ${what}.`
  const displayName = target.split(' ').at(-1)
  return `The ${displayName} ${what} has the ${only.column} ${found}: this field takes ${only.values.join(', ')}.`
}

/** Adds an error for each value that another row has. Its name is for a caller who may view it or who sent the name. */
export function checkUnique({ resolver, step: { model, path, state }, row, values, sent, errors }: Entry): void {
  if (state === 'absent') return
  const { world } = resolver
  for (const [name, value] of values) {
    const field = model.fields.get(name)
    if (field === undefined || !isExclusive(model, field)) continue
    const { reference } = field
    const written = sent.get(name)
    for (const key of keysOf(value instanceof ListEdit ? value.add : value)) {
      if (row !== undefined && storedKeys(field, row).includes(key)) continue
      const [holder] = world.find(holders(model, field, key))
      if (holder === undefined || holder.pk === row?.pk) continue
      const of = world.modelOf(model.table, holder) ?? model
      const label = holder[labelColumn(of)]
      const held = reference === undefined ? holder[columnOf(model, name)] : key
      const isNamed = label === written || resolver.views(of, holder)
      if (isNamed && reference === undefined && typeof written === 'string' && written !== held) {
        const apart = writtenApart(String(held), written)
        const exists = `${of.displayName} ${JSON.stringify(held)} exists`
        errors.add([...path, name], 'taken', `${exists}; names are compared without ${apart}.`)
        continue
      }
      const what =
        reference === undefined
          ? `${JSON.stringify(written)} is taken by`
          : `The ${reference.target} ${referredName(world, reference, key, resolver)} belongs to`
      const who = isNamed ? `${of.displayName} ${JSON.stringify(label)}` : `another ${of.displayName}`
      errors.add([...path, name], 'taken', `${what} ${who}.`)
    }
  }
}

/** A referenced row, in a sentence that has its target: the key where the caller may not view it. */
function referredName(world: World, reference: Reference, key: Key, resolver: Resolver): string {
  const table = world.tableOf(reference)
  const row = world.row(table, key)
  const of = row && world.modelOf(table, row)
  return row && of && resolver.views(of, row) ? JSON.stringify(row[labelColumn(of)]) : String(key)
}

export function checkLimit({ resolver: { world }, step: { model, path, state }, row, values, errors }: Entry): void {
  const { limit, fields, displayName } = model
  const [key] = limit === undefined ? [] : keysOf(values.get(limit.per))
  if (limit === undefined || key === undefined || state === 'absent' || row !== undefined) return
  if (world.find(counted(model, limit, key)).length < limit.rows) return
  const what = `This ${fields.get(limit.per)?.reference?.target} has ${limit.rows} ${displayName}s that have not expired`
  errors.add([...path, limit.per], 'limit_reached', `${what}, the most that one may have: delete one first.`)
}

/**
 * Adds an error for each new name that another row has already, where a reference could mean both rows, or rows of one kind: a
 * user who creates the second row would change the meaning of other users' documents. No index guards this, because a row has
 * several names. Rows that share one already stay.
 */
export function checkNamesakes(
  { resolver, step: { model, path }, row, errors }: Entry,
  { action, changed, values }: Diff,
): void {
  const { world } = resolver
  const { registry } = world
  if (model.names.length < 2 || (action !== 'create' && action !== 'update')) return
  const onlys = registry.models.flatMap(({ fields }) =>
    [...fields.values()].flatMap(({ reference }) =>
      reference?.target === model.target ? (onlyOf(registry, reference) ?? []) : [],
    ),
  )
  const own = new Map(Object.entries(values))
  const meets = (theirs: Row) => (only: Only) =>
    own.get(only.column) === theirs[only.column] ||
    (only.values.some((each) => each === own.get(only.column)) && fits(theirs, only))
  for (const field of model.names) {
    const name = values[field]
    const isNew = row?.[columnOf(model, field)] !== name
    const at = isNew ? field : changed.find((each) => onlys.some(({ column }) => column === each))
    if (typeof name !== 'string' || at === undefined) continue
    for (const other of findAny(world, namesakeLooks(world, model, name))) {
      // A field that is unique has its own error.
      const isReported = model.unique.includes(field) && other[columnOf(model, field)] === name
      if (isReported || other.pk === row?.pk || !onlys.some(meets(other))) continue
      const holder = resolver.nameOf(model, other) ?? `another ${model.displayName}`
      errors.add([...path, at], 'taken', `${JSON.stringify(name)} is taken by ${holder}.`)
    }
  }
}
