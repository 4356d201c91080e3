import type { Field, Model } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { comparedName } from '../names.ts'
import type { Effect } from './effect.ts'
import { keysOf, storedKeys } from './storage.ts'

/**
 * What entries have written, as places: a table, a field and a value that a row had or has there. A row is one place too,
 * by its key. What was read ahead for an entry holds as long as no earlier entry wrote a place that it asked for.
 */
export class Places {
  readonly #written = new Set<string>()
  /** Written since a place was asked for: after the last entry of a document none is, and a row may have very many. */
  readonly #pending: { readonly effect: Effect; readonly key: unknown }[] = []
  readonly #registry: Registry

  constructor(registry: Registry) {
    this.#registry = registry
  }

  has(table: string, field: string, value: unknown): boolean {
    for (const { effect, key } of this.#pending.splice(0)) this.#addNow(effect, key)
    return this.#written.has(placeOf(table, field, value))
  }

  /** Adds all that an entry writes. @param key of its row */
  add(effect: Effect, key: unknown): void {
    if (effect.action !== 'leave' && effect.action !== 'unchanged') this.#pending.push({ effect, key })
  }

  #addNow({ step: { model }, action, row, values }: Effect, key: unknown): void {
    this.#written.add(placeOf(model.table, 'pk', key))
    // References to a row that is gone are gone with it.
    if (action === 'delete') this.#written.add(placeOf(model.table, 'gone', key))
    for (const field of model.fields.values()) {
      const had = row === undefined ? [] : storedKeys(field, row)
      const has = keysOf(values[field.name])
      for (const value of [...had, ...has]) this.#written.add(placeOf(model.table, field.name, value))
      // A join table is part of the rows on both of its sides.
      if (field.storage.in === 'link')
        for (const other of had.concat(has)) this.#written.add(placeOf(this.tableOf(field), 'pk', other))
    }
  }

  /** Whether a row refers to one that is gone: it has changed with it. */
  refersToGone = (model: Model, row: Readonly<Parameters<typeof storedKeys>[1]>): boolean =>
    [...model.fields.values()].some(
      (field) =>
        field.reference !== undefined &&
        storedKeys(field, row).some((key) => this.has(this.tableOf(field), 'gone', key)),
    )

  tableOf = ({ reference }: Pick<Field, 'reference'>): string =>
    this.#registry.targets.get(reference?.target ?? '')?.table ?? ''
}

const placeOf = (table: string, field: string, value: unknown): string =>
  `${table} ${field} ${comparedName(String(value))}`
