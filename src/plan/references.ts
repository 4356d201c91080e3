import type { Only, Reference, ReferenceTarget } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import type { Look } from './look.ts'
import { columnOf, type Row } from './statements.ts'
import type { World } from './world.ts'

/** The rows that references may name, and those that have a name. */

/** The restriction of a reference: that of the field, or that of the target. */
export const onlyOf = ({ targets }: Registry, { target, only }: Reference): Only | undefined =>
  only ?? targets.get(target)?.only

/**
 * The columns of a target's names, with their fields: all models of a target have the same. `folded`: no two rows have the same,
 * compared like names.
 */
export const nameColumns = ({ models: [model] }: Pick<ReferenceTarget, 'models'>) =>
  model?.names.map((field) => ({
    field,
    column: columnOf(model, field),
    folded: model.fields.get(field)?.folded === true,
  })) ?? []

/** The questions for a name, in the order in which they count. */
export function looksFor(name: string, target: ReferenceTarget): readonly Look[] {
  const [model] = target.models
  if (model === undefined) return []
  const looks = nameColumns(target).map(({ column, folded }) => ({
    folded,
    look: { model, columns: [column], values: [name] },
  }))
  return [
    ...looks.map(({ look }) => look),
    ...looks.flatMap(({ folded, look }) => (folded ? { ...look, folded: true as const } : [])),
  ]
}

export type Match =
  | { readonly is: 'row'; readonly row: Row }
  | { readonly is: 'unfit'; readonly found: string }
  | { readonly is: 'ambiguous'; readonly rows: readonly string[] }
  /** An entry of the document renamed or deleted the row that had the name. */
  | { readonly is: 'gone'; readonly entry: number; readonly verb: 'deletes' | 'renames' }
  | { readonly is: 'unknown' }

/**
 * The row with a name: the exact name comes first, in the first of the fields that name rows. A user who creates a row must not
 * change the meaning of other users' documents: `checks.ts` refuses a row that shares a name.
 *
 * @param shows whether the submitter may know of a row
 */
export function findNamed(
  world: World,
  name: string,
  target: ReferenceTarget,
  only: Only | undefined,
  shows: (row: Row) => boolean,
): Match {
  let unfit: string | undefined
  const looks = looksFor(name, target)
  const exact = looks.filter(({ folded }) => folded !== true)
  for (const ways of [...exact.map((each) => [each]), looks.filter(({ folded }) => folded)]) {
    const rows = findAny(world, ways).filter(shows)
    const fitting = rows.filter((row) => fits(row, only))
    const [row, another] = fitting
    if (another !== undefined)
      return { is: 'ambiguous', rows: fitting.map((each) => describe(world, each, target, only)) }
    if (row !== undefined) return { is: 'row', row }
    if (only !== undefined && rows[0] !== undefined) unfit ??= String(rows[0][only.column])
  }
  if (unfit !== undefined) return { is: 'unfit', found: unfit }
  const [gone] = looks.flatMap((look) => world.lost(look) ?? [])
  return gone === undefined ? { is: 'unknown' } : { is: 'gone', ...gone }
}

/** The rows that any of the questions finds. */
export const findAny = (world: World, looks: readonly Look[]): Row[] => [
  ...new Map(looks.flatMap((look) => world.find(look)).map((row) => [row.pk, row])).values(),
]

/** Whether a row fits a restriction. A value with errors is not known. */
export function fits(row: Row, only: Only | undefined): boolean {
  const value = only === undefined ? undefined : row[only.column]
  return value === undefined || value === null || only?.values.includes(String(value)) === true
}

/** One of several rows with the same name, with the values that differ. */
function describe(world: World, row: Row, target: ReferenceTarget, only: Only | undefined): string {
  const others = nameColumns(target).flatMap(({ column, field }) => {
    const value = row[column]
    return typeof value === 'string' ? [`${field} ${JSON.stringify(value)}`] : []
  })
  if (only !== undefined && only.values.length > 1) others.push(`${only.column} ${row[only.column]}`)
  const { entry, isNew } = world.entryOf(target.table, row.pk) ?? {}
  return `${others.join(', ')} (${isNew ? `entry ${entry} of this document` : `pk ${String(row.pk)}`})`
}
