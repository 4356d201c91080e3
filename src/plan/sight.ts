import type { Model, ReferenceTarget } from '../models/define.ts'
import { type Actor, allowsRow, allowsSome, isOfOthers } from '../permissions.ts'
import { columnOf, isRowOf, type Row } from './statements.ts'
import type { Step } from './step.ts'
import type { World } from './world.ts'

/** A look-up that the caller may not do, with the missing permission. */
export type Unseen = { readonly what: string; readonly needed: string }

type Identifiers = Readonly<Record<string, unknown>>

/**
 * A document may look up only rows that its submitter may view. Otherwise the answer to a look-up would show whether a row has a
 * guessed value. So a look-up is denied before anything is read, and in the same words whether the row exists or not.
 *
 * These need no permission: names of mere configuration (`offersNames`), the caller's own user, and rows that an earlier entry
 * writes by the same identifiers, because the change of such a row needs a permission of its own.
 */
export class Sight {
  /** The submitter, who is read together with the first rows. Without it, all look-ups that need a permission are denied. */
  actor: Actor | undefined
  /** Whether there was such a look-up. */
  isAwaited = false
  readonly #written = new Set<string>()
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  /** @returns why the caller may not find a row by these fields; null when it may */
  find(model: Model, identifiers: Identifiers): Unseen | null {
    return areFree([model]) && isByName(model, identifiers)
      ? null
      : this.#denial([model], [[model, identifiers]], model.displayName)
  }

  /** @returns why the caller may not refer to a row by its name; null when it may */
  name(name: string, { models }: ReferenceTarget): Unseen | null {
    if (areFree(models)) return null
    const [model, ...others] = models
    const names = models.flatMap((each) => each.names.map((field) => [each, { [field]: name }] as const))
    return this.#denial(models, names, (others.length > 0 ? model?.target : model?.displayName) ?? 'row')
  }

  #denial(models: readonly Model[], by: readonly (readonly [Model, Identifiers])[], what: string): Unseen | null {
    const { actor } = this
    this.isAwaited ||= actor === undefined
    const isWritten = by.some(([model, fields]) => this.#written.has(placeOf(model, fields)))
    const isViewed = (to: Actor) =>
      models.some(({ resource }) => allowsSome(to, `view_${resource}`)) ||
      by.some(([model, fields]) => isSelf(to, model, fields))
    if (isWritten || (actor !== undefined && isViewed(actor))) return null
    const [model, ...others] = models
    return { what, needed: others.length > 0 ? 'a permission to view it' : `the permission view_${model?.resource}` }
  }

  /**
   * Whether a found row may be shown: the models of one target need different permissions, and a permission may hold only for the
   * rows of some owners. A row that may not be shown counts as missing.
   */
  shows({ table, models }: Pick<ReferenceTarget, 'table' | 'models'>, row: Row): boolean {
    if (areFree(models) || this.#world.entryOf(table, row.pk)?.entry !== undefined) return true
    const model = models.find((each) => isRowOf(each, row))
    if (models.length === 1 && model?.isLabelled !== true) return true
    if (model === undefined || this.actor === undefined) return false
    return allowsRow(this.actor, `view_${model.resource}`, model, row.owner)
  }

  /** Whether the caller may view an existing row: by permission, as its owner, or because it is the caller itself. */
  row(model: Model, row: Row): boolean {
    const { actor } = this
    if (actor === undefined) return false
    const owner = model.owner === undefined ? undefined : row[columnOf(model, model.owner)]
    return (
      allowsRow(actor, `view_${model.resource}`, model, row.owner) ||
      isSelf(actor, model, { pk: row.pk }) ||
      (actor.pk !== null && !isOfOthers(actor) && owner === actor.pk)
    )
  }

  wrote({ model, identifiers, attrs, rename }: Step): void {
    this.#written.add(placeOf(model, Object.fromEntries(identifiers)))
    const [field] = identifiers.keys()
    if (rename === 'old' && field !== undefined) this.#written.add(placeOf(model, { [field]: attrs.get(field) }))
  }
}

/** Names of mere configuration are for all who may write a row that refers to it. */
const areFree = (models: readonly Model[]): boolean => models.every(({ offersNames }) => offersNames === true)

const isByName = (model: Model, identifiers: Identifiers): boolean =>
  Object.keys(identifiers).every((field) => model.names.includes(field))

function isSelf(actor: Actor, { name }: Model, identifiers: Identifiers): boolean {
  const { pk, username } = actor
  const [[field, value] = [], ...others] = Object.entries(identifiers)
  if (name !== 'service_core.user' || others.length > 0 || pk === null || isOfOthers(actor)) return false
  return field === 'username' ? value === username : field === 'pk' && String(value) === String(pk)
}

/** The place of a row: the same for any order of the fields, and for folded names in any case of their letters. */
function placeOf({ name, fields }: Model, identifiers: Identifiers): string {
  const values = Object.entries(identifiers).map(([field, value]) => {
    const text = typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value)
    return [field, fields.get(field)?.folded === true ? text.toLowerCase() : text]
  })
  return JSON.stringify([name, values.sort()])
}
