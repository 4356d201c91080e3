import type { Model } from '../models/define.ts'
import type { Effect } from './effect.ts'
import type { Loader } from './load.ts'
import { byKey } from './look.ts'
import { claimingFields, claimLooks } from './looks.ts'
import { columnOf, type Key, labelColumn, type Row } from './statements.ts'
import type { Step } from './step.ts'
import { keysOf, storedKeys } from './storage.ts'
import type { World } from './world.ts'

/** The claims of rows on others, by the fields that a model declares for it: an application claims its providers. */

/** A row with its model and the name that messages give it. */
export type LabelledRow = {
  readonly model: Model
  readonly pk: Key
  readonly name: string
  /** All fields that name it: a document names it by these, too. */
  readonly identifiers: ReadonlyMap<string, unknown>
  /** The label under which it is managed; null without one. */
  readonly owner: string | null
}

/** A row as text, to compare it with others. */
export const placeOf = ({ model: { table }, pk }: LabelledRow): string => `${table} ${pk}`

export const labelledRow = (model: Model, row: Row): LabelledRow => ({
  model,
  pk: row.pk,
  name: String(row[labelColumn(model)]),
  identifiers: new Map((model.identifiers[0] ?? ['pk']).map((field) => [field, row[columnOf(model, field)]])),
  owner: typeof row.owner === 'string' ? row.owner : null,
})

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

const releasedBy = (effects: readonly Effect[]) =>
  effects.flatMap((effect) => {
    const { step, action, row, isForeign, values } = effect
    if (row === undefined || isForeign || action === 'leave') return []
    return claimingFields(step.model).flatMap((field) => {
      const has = new Set(action === 'delete' ? [] : keysOf(values[field.name]))
      return storedKeys(field, row).flatMap((key) => (has.has(key) ? [] : [{ effect, field, key }]))
    })
  })

export async function orphansOf(loader: Loader, effects: readonly Effect[], isAgain = false): Promise<Orphan[]> {
  const { world } = loader
  const byRow = Map.groupBy(releasedBy(effects), ({ field, key }) => `${world.tableOf(field.reference)} ${key}`)
  const asked = [...byRow.values()].flatMap((from) => {
    const [{ field, key } = { field: undefined, key: '' }] = from
    const table = world.tableOf(field?.reference)
    const of = world.registry.models.find((model) => model.table === table)
    return of === undefined ? [] : [{ from, table, key, looks: claimLooks(world, table, key), own: byKey(of, key) }]
  })
  await loader.load({ looks: asked.map(({ own }) => own) })
  await loader.load({ looks: asked.flatMap(({ looks }) => looks), isAgain })
  return asked.flatMap(({ table, key, from, looks }) => {
    const row = world.row(table, key)
    const model = row && world.modelOf(table, row)
    if (row === undefined || model === undefined || looks.some((look) => world.find(look).length > 0)) return []
    const isReplaced = from.some(({ field }) => field.storage.in !== 'link')
    const by = from.map(({ effect }) => effect.step)
    return [{ row: labelledRow(model, row), claimant: by[0]?.model.displayName ?? '', isReplaced, by }]
  })
}

/** A row that claimed one which the document deletes. */
export type LeftEmpty = {
  readonly row: LabelledRow
  readonly field: string
  readonly isLink: boolean
  /** The deleted row. */
  readonly claimed: Key
  /** Its name in messages. */
  readonly what: string
}

/** The rows that claim nothing else in the field of a row that is deleted, or claim fewer of several. No entry changed them so. */
export function leftEmpty(world: World, effects: readonly Effect[]): LeftEmpty[] {
  const claimOf = ({ name }: Model, pk: Key, field: string, key: Key) => `${name} ${pk} ${field} ${key}`
  const claims = releasedBy(effects).map(({ effect: { step, row }, field, key }) =>
    claimOf(step.model, row?.pk ?? '', field.name, key),
  )
  const released = new Set(claims)
  return effects.flatMap(({ action, row, step: { model }, label: gone }) => {
    if (action !== 'delete' || row === undefined) return []
    return claimLooks(world, model.table, row.pk).flatMap((look) =>
      world.findBefore(look).flatMap(({ pk }) => {
        const { model: of } = look
        const { name: field, storage } = look.field
        const now = world.row(of.table, pk)
        const isLink = storage.in === 'link'
        const isEmpty = isLink || now?.[columnOf(of, field)] === null
        if (now === undefined || !isEmpty || released.has(claimOf(of, pk, field, row.pk))) return []
        const what = `${model.displayName} ${JSON.stringify(gone)}`
        return [{ row: labelledRow(of, now), field, isLink, claimed: row.pk, what }]
      }),
    )
  })
}
