import type { Only } from '../models/define.ts'
import type { Diff } from './diff.ts'
import { findAny, fits, looksFor, onlyOf } from './references.ts'
import type { Entry } from './rows.ts'
import { columnOf, type Row } from './statements.ts'

/**
 * Adds an error for each new name that another row has already, where a reference could mean both rows, or rows of one kind: a
 * user who creates the second row would change the meaning of other users' documents. No index guards this, because a row has
 * several names. Rows that share one already stay.
 */
export async function checkNamesakes(
  { loader, world, resolver, step: { model, path }, row, errors }: Entry,
  { action, changed, values }: Diff,
): Promise<void> {
  const { registry } = world
  if (model.names.length < 2 || (action !== 'create' && action !== 'update')) return
  const onlys = registry.models.flatMap(({ fields }) =>
    [...fields.values()].flatMap(({ reference }) =>
      reference?.target === model.target ? (onlyOf(registry, reference) ?? []) : [],
    ),
  )
  const target = registry.targets.get(model.target)
  const own = new Map(Object.entries(values))
  const meets = (theirs: Row) => (only: Only) =>
    own.get(only.column) === theirs[only.column] ||
    (only.values.some((each) => each === own.get(only.column)) && fits(theirs, only))
  for (const field of model.names) {
    const name = values[field]
    const isNew = row?.[columnOf(model, field)] !== name
    const at = isNew ? field : changed.find((each) => onlys.some(({ column }) => column === each))
    if (typeof name !== 'string' || at === undefined) continue
    const looks = target === undefined ? [] : looksFor(name, target)
    await loader.load({ looks })
    for (const other of findAny(world, looks)) {
      // A field that is unique has its own error.
      const isReported = model.unique.includes(field) && other[columnOf(model, field)] === name
      if (isReported || other.pk === row?.pk || !onlys.some(meets(other))) continue
      const holder = resolver.nameOf(model, other) ?? `another ${model.displayName}`
      errors.add([...path, at], 'taken', `${JSON.stringify(name)} is taken by ${holder}.`)
    }
  }
}
