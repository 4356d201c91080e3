import { z } from 'zod'
import type { Model } from '../models/define.ts'
import type { Effect } from './effect.ts'
import type { Loader } from './load.ts'
import { byKey } from './look.ts'
import { claimingFields, claimLooks, maxLabelled } from './looks.ts'
import { columnOf, type Key, labelColumn, quoted } from './statements.ts'
import type { Step } from './step.ts'
import { keysOf, storedKeys } from './storage.ts'
import type { World } from './world.ts'

/** The claims of rows on others, by the fields that a model declares for it: an application claims its providers. */

const key = z.union([z.string(), z.int()])

const owner = z.string().nullable()
const labelledRow = z.object({ pk: key, name: z.string(), owner, discriminator: z.record(z.string(), z.string()) })

/** A row with its model and the name that messages give it. */
export type NamedRow = { readonly model: Model; readonly pk: Key; readonly name: string }

/** A row as text, to compare it with others. */
export const placeOf = ({ model: { table }, pk }: Pick<NamedRow, 'model' | 'pk'>): string => `${table} ${pk}`

/** @property owner the label under which it is managed; null without one */
export type LabelledRow = NamedRow & { readonly owner: string | null }

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

/**
 * The rows that owners manage.
 *
 * @param table that of a model with labels
 * @returns those that the document neither names nor claims
 */
export async function readLabels(
  { reader, world }: Loader,
  table: string,
  owners: readonly string[],
  effects: readonly Effect[],
): Promise<LabelledRow[]> {
  const ofTable = world.registry.models.filter((model) => model.table === table)
  const [first] = ofTable
  if (first === undefined) return []
  const columns = [...new Set(ofTable.flatMap(({ discriminator }) => Object.keys(discriminator)))]
  const discriminator = columns.map((column) => `'${column}', t.${quoted(column)}`).join(', ')
  const text = `SELECT t.pk, t.${quoted(labelColumn(first))} AS name, t."owner",
      jsonb_build_object(${discriminator}) AS discriminator
    FROM ${quoted(table)} t WHERE t."owner" = ANY($1::text[]) AND NOT t.pk = ANY($2::${first.key}[])
    ORDER BY t.pk LIMIT ${maxLabelled + 1}`
  const except = [...world.keysIn(table), ...claimedIn(table, world, effects)]
  const rows = await reader.query(labelledRow, { text, values: [owners, except] })
  return rows.flatMap(({ pk, name, owner, discriminator }) => {
    const model = world.modelOf(table, discriminator)
    return model === undefined ? [] : [{ model, pk, name, owner }]
  })
}

/** The rows that an entry releases, and those that its row claims afterwards, by field. */
const claimChanges = ({ step: { model }, action, row, isForeign, values }: Effect) =>
  claimingFields(model).map((field) => {
    const had = row === undefined || isForeign ? [] : storedKeys(field, row)
    const isWritten = action === 'create' || action === 'update' || action === 'unchanged'
    const has = isWritten ? keysOf(values[field.name]) : action === 'delete' ? [] : had
    return { field, has, released: had.filter((each) => !has.includes(each)) }
  })

/** The keys of the rows of a table that the rows of a document claim afterwards. */
const claimedIn = (table: string, world: World, effects: readonly Effect[]): Key[] =>
  effects.flatMap((effect) =>
    claimChanges(effect).flatMap(({ field, has }) => (world.tableOf(field.reference) === table ? has : [])),
  )

const releasedBy = (effects: readonly Effect[]) =>
  effects.flatMap((effect) =>
    claimChanges(effect).flatMap(({ field, released }) => released.map((key) => ({ effect, field, key }))),
  )

/** The rows that the effects leave unclaimed. */
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
    const owner = typeof row.owner === 'string' ? row.owner : null
    const isReplaced = from.some(({ field }) => field.storage.in !== 'link')
    const by = from.map(({ effect }) => effect.step)
    const labelled = { model, pk: key, name: String(row[labelColumn(model)]), owner }
    return [{ row: labelled, claimant: by[0]?.model.displayName ?? '', isReplaced, by }]
  })
}

/** A row that claimed one which the document deletes. */
export type LeftEmpty = {
  readonly of: Model
  readonly pk: Key
  readonly label: string
  readonly owner: string | null
  readonly field: string
  readonly isLink: boolean
  /** The deleted row. */
  readonly claimed: Key
  readonly name: string
}

/** The rows that claim nothing else in the field of a row that is deleted, or claim fewer of several. No entry changed them so. */
export function leftEmpty(world: World, effects: readonly Effect[]): LeftEmpty[] {
  const claimOf = ({ name }: Model, pk: Key, field: string, key: Key) => `${name} ${pk} ${field} ${key}`
  const released = new Set(
    releasedBy(effects).map(({ effect: { step, row }, field, key }) =>
      claimOf(step.model, row?.pk ?? '', field.name, key),
    ),
  )
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
        const owner = typeof now.owner === 'string' ? now.owner : null
        const name = `${model.displayName} ${JSON.stringify(gone)}`
        return [{ of, pk, label: String(now[labelColumn(of)]), owner, field, isLink, claimed: row.pk, name }]
      }),
    )
  })
}
