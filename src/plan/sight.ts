import type { Model, ReferenceTarget } from '../models/define.ts'
import { type Actor, allowsFor, allowsSome, isOfOthers } from '../permissions.ts'
import type { Effect } from './effect.ts'
import { isRowOf } from './model-of.ts'
import { columnOf, type Row } from './statements.ts'
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
  readonly #actor: Actor | Promise<Actor>
  /** The actor, once it was needed. */
  #read: Actor | undefined
  readonly #written = new Set<string>()
  readonly #world: World
  #unseen: Unseen[] = []

  /** @param actor the submitter; a promise is answered together with the first rows */
  constructor(actor: Actor | Promise<Actor>, world: World) {
    this.#actor = actor
    this.#world = world
  }

  /** Whether the caller may find a row by these fields. A denial is kept until it is taken. */
  async find(model: Model, identifiers: Identifiers): Promise<boolean> {
    if (isFreeFind(model, identifiers)) return true
    const actor = await this.#submitter()
    if (views(actor, model) || isSelf(actor, model, identifiers) || this.#written.has(placeOf(model, identifiers)))
      return true
    this.#unseen.push({ what: model.displayName, needed: `the permission view_${model.resource}` })
    return false
  }

  /** Whether the caller may refer to a row by its name. A denial is kept until it is taken. */
  async name(name: string, target: ReferenceTarget): Promise<boolean> {
    const { models } = target
    if (areFree(models)) return true
    const actor = await this.#submitter()
    const names = models.flatMap((model) => model.names.map((field) => [model, { [field]: name }] as const))
    const isKnown = names.some(([model, by]) => isSelf(actor, model, by) || this.#written.has(placeOf(model, by)))
    if (isKnown || models.some((model) => views(actor, model))) return true
    const [model, ...others] = models
    const needed = others.length > 0 ? 'a permission to view it' : `the permission view_${model?.resource}`
    this.#unseen.push({ what: (others.length > 0 ? model?.target : model?.displayName) ?? 'row', needed })
    return false
  }

  /**
   * Whether a found row may be shown: the models of one target need different permissions, and a permission may hold only for the
   * rows of some owners. A row that may not be shown counts as missing.
   */
  shows({ table, models }: Pick<ReferenceTarget, 'table' | 'models'>, row: Row): boolean {
    if (areFree(models) || this.#world.entryOf(table, row.pk)?.entry !== undefined) return true
    const model = models.find((each) => isRowOf(each, row))
    if (models.length === 1 && model?.isLabelled !== true) return true
    if (model === undefined || this.#read === undefined) return false
    return viewsRow(this.#read, model, row.owner)
  }

  /** Whether the caller may view an existing row: by permission, as its owner, or because it is the caller itself. */
  async row(model: Model, row: Row): Promise<boolean> {
    const actor = await this.#submitter()
    return (
      viewsRow(actor, model, row.owner) ||
      isSelf(actor, model, { pk: row.pk }) ||
      (actor.pk !== null && !isOfOthers(actor) && ownerOf(model, row) === actor.pk)
    )
  }

  async #submitter(): Promise<Actor> {
    this.#read ??= await this.#actor
    return this.#read
  }

  /** Whether the caller may see a prefetched row in any case. */
  async readable<Look extends { readonly models: readonly Model[]; readonly isFree: boolean }>(
    looks: readonly Look[],
  ): Promise<readonly Look[]> {
    if (looks.every(({ isFree }) => isFree)) return looks
    const actor = await this.#submitter()
    return looks.filter(({ models, isFree }) => isFree || models.some((model) => views(actor, model)))
  }

  /** Remembers the row that an entry writes. */
  wrote({ step: { model, identifiers, attrs, rename }, isForeign }: Effect): void {
    if (isForeign) return
    this.#written.add(placeOf(model, Object.fromEntries(identifiers)))
    const [field] = identifiers.keys()
    if (rename === 'old' && field !== undefined) this.#written.add(placeOf(model, { [field]: attrs.get(field) }))
  }

  /** @returns the denials since it was called last */
  take(): readonly Unseen[] {
    const unseen = this.#unseen
    this.#unseen = []
    return unseen
  }
}

const ownerOf = (model: Model, row: Row): unknown =>
  model.owner === undefined ? undefined : row[columnOf(model, model.owner)]

const views = (actor: Actor, { resource }: Model): boolean => allowsSome(actor, `view_${resource}`)

/** @param owner the label of a row, in a model that has labels */
const viewsRow = (actor: Actor, model: Model, owner: unknown): boolean =>
  model.isLabelled === true
    ? allowsFor(actor, `view_${model.resource}`, typeof owner === 'string' ? owner : null)
    : views(actor, model)

/** Names of mere configuration are for all who may write a row that refers to it. */
export const areFree = (models: readonly Model[]): boolean => models.every(({ offersNames }) => offersNames === true)

export function isFreeFind(model: Model, identifiers: Identifiers): boolean {
  const fields = Object.keys(identifiers)
  return areFree([model]) && fields.length > 0 && fields.every((field) => model.names.includes(field))
}

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
