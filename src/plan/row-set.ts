import type { Model } from '../models/define.ts'

export type Key = string | number

export class RowSet {
  readonly #tables = new Map<string, Set<Key>>()

  /** @param key undefined adds nothing */
  add({ table }: Pick<Model, 'table'>, key: Key | undefined): this {
    if (key !== undefined) this.#tables.getOrInsertComputed(table, () => new Set()).add(key)
    return this
  }

  has({ table }: Pick<Model, 'table'>, key: Key): boolean {
    return this.#tables.get(table)?.has(key) === true
  }

  of(table: string): readonly Key[] {
    return [...(this.#tables.get(table) ?? [])]
  }
}
