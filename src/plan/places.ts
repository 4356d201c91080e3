import type { Field, Model } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { comparedName } from '../names.ts'
import type { Effect } from './effect.ts'
import { keysOf, storedKeys } from './storage.ts'

/**
 * The places that entries have written: a table, a field and a value that a row had or has there. A row is one place too, by its
 * key. An answer that was prefetched for an entry holds until an earlier entry writes one of its places.
 */
export class Places {
  readonly #written = new Set<string>()
  /** Effects since the last question. Their places are computed when the next one comes: a row may have very many. */
  readonly #pending: { readonly effect: Effect; readonly key: unknown }[] = []
  readonly #registry: Registry

  constructor(registry: Registry) {
    this.#registry = registry
  }

  has(table: string, field: string, value: unknown): boolean {
    for (const { effect, key } of this.#pending.splice(0)) this.#addNow(effect, key)
    return this.#written.has(placeOf(table, field, value))
  }

  /** Adds the write of an entry. @param key the key of its row */
  add(effect: Effect, key: unknown): void {
    if (effect.action !== 'leave' && effect.action !== 'unchanged') this.#pending.push({ effect, key })
  }

  #addNow({ step: { model }, action, row, values }: Effect, key: unknown): void {
    this.#written.add(placeOf(model.table, 'pk', key))
    // References to a deleted row are deleted with it.
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

  /** Whether a row refers to a deleted one: it has changed with it. */
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
