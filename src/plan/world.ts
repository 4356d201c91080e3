import type { Field, Link, Model, Values } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { comparedName } from '../names.ts'
import type { ListEdit } from './list-edit.ts'
import { modelOf } from './model-of.ts'
import type { Key } from './row-set.ts'
import { linksOf, type Row } from './statements.ts'
import { keysOf, storedKeys, toMaskedValues } from './storage.ts'

/** A row behind an entry, and the entry. */
type Write = {
  /** All fields of the row; undefined where they have errors, or were not read. */
  readonly values: Values
  /** The row before; undefined for a new one. */
  readonly before: Row | undefined
  /** The row as it will be stored. */
  readonly row: () => Row
  readonly edits?: ReadonlyMap<string, ListEdit> | undefined
  /** The index of the entry; undefined for one that leaves its row alone. */
  readonly entry: number | undefined
  readonly isNew: boolean
  /** Whether it has errors: other errors of the row follow from them. */
  readonly isBroken: boolean
}

/** The keys of a link: all of them, or those that entries add and remove. */
type LinkKeys = { readonly whole?: readonly Key[] | undefined; readonly edits: ReadonlyMap<Key, boolean> }

type Written = Omit<Write, 'values' | 'before' | 'edits'> & { readonly model: Model }

/** A row as the entries so far leave it. */
export type EntryRow = {
  readonly entry: number | undefined
  /** Whether this document creates it, so that no row outside of the document refers to it. */
  readonly isNew: boolean
  readonly isBroken: boolean
  /** Whether the document deletes it. */
  readonly isGone: boolean
  /** The value of a field; undefined where it is not known. A secret is masked. */
  readonly value: (field: string) => unknown
}

/**
 * The rows of the entries of a document so far, as these leave them. A row of the database is seen through it, so that an entry means
 * the same whether the entries before it are stored yet or not. It knows models and values, and neither steps nor SQL.
 */
export class World {
  readonly #registry: Registry
  readonly #written = new Map<string, Map<Key, Written>>()
  readonly #gone = new Map<string, Set<Key>>()
  /** The links that may be very many, or are part of rows on two sides, by table and key of a row, and by field. */
  readonly #links = new Map<string, Map<string, LinkKeys>>()
  /** The labels of rows that entries take through references. */
  readonly #labels = new Map<string, string | null>()
  /** The keys of written rows, by table, storage and folded value. Rows may have other values since. */
  readonly #index = new Map<string, Set<Key>>()
  /** Writes that are not in the index yet: most documents ask for none. */
  readonly #unindexed: { readonly model: Model; readonly key: Key; readonly values: Values }[] = []

  constructor(registry: Registry) {
    this.#registry = registry
  }

  get isEmpty(): boolean {
    return this.#written.size === 0 && this.#gone.size === 0 && this.#labels.size === 0
  }

  put(model: Model, key: Key, { values, before, row, edits, ...write }: Write): void {
    const rows = this.#written.getOrInsertComputed(model.table, () => new Map())
    const earlier = rows.get(key)
    let stored: Row | undefined
    rows.set(key, {
      ...write,
      model,
      row: () => (stored ??= row()),
      isNew: write.isNew || earlier?.isNew === true,
      isBroken: write.isBroken || earlier?.isBroken === true,
    })
    this.#gone.get(model.table)?.delete(key)
    this.#unindexed.push({ model, key, values })
    for (const [{ name }, link] of linksOf(model)) {
      const [edit, value] = [edits?.get(name), values[name]]
      const other = this.#otherSide(link)
      if ((link.many !== true && other === undefined) || (edit === undefined && !Array.isArray(value))) continue
      const removed = keysOf(edit === undefined ? before?.links?.[name] : edit.remove)
      const added = keysOf(edit === undefined ? value : edit.add)
      const links = this.#linksOf(model.table, key)
      links.set(name, edit ? edited(links.get(name), added, removed) : { whole: added, edits: new Map() })
      if (other === undefined) continue
      const [had, has] = [new Set(removed), new Set(added)]
      for (const each of had.symmetricDifference(has)) {
        const links = this.#linksOf(other.table, each)
        const [to, from] = has.has(each) ? [[key], []] : [[], [key]]
        links.set(other.name, edited(links.get(other.name), to, from))
      }
    }
  }

  #linksOf = (table: string, key: Key): Map<string, LinkKeys> =>
    this.#links.getOrInsertComputed(`${table} ${key}`, () => new Map())

  /** The field of another model that is stored in the same join table. */
  #otherSide({ table, other }: Link): { readonly table: string; readonly name: string } | undefined {
    for (const model of this.#registry.models)
      for (const [{ name }, link] of linksOf(model))
        if (link.table === table && link.own === other) return { table: model.table, name }
    return undefined
  }

  /** Gives a row, of which only a part was read, another label. */
  relabel({ table }: Model, key: Key, owner: string | null): void {
    this.#labels.set(`${table} ${key}`, owner)
  }

  /** Deletes a row. References to it go with it. */
  remove({ table }: Model, key: Key): void {
    this.#written.get(table)?.delete(key)
    this.#gone.getOrInsertComputed(table, () => new Set()).add(key)
  }

  /** Whether an entry names the row. */
  has = (table: string, key: Key): boolean =>
    this.#written.get(table)?.has(key) === true || this.#gone.get(table)?.has(key) === true

  /** The row of an entry; undefined for one that no entry names. */
  entryOf(table: string, key: Key): EntryRow | undefined {
    const written = this.#written.get(table)?.get(key)
    if (written === undefined) return this.has(table, key) ? gone : undefined
    const { entry, isNew, isBroken, model, row } = written
    const value = (name: string) => {
      const stored = model.discriminator[name] ?? toMaskedValues(model, row())[name]
      return isBroken && stored === null ? undefined : stored
    }
    return { entry, isNew, isBroken, isGone: false, value }
  }

  /** A row that entries name; undefined for another one, and for one that is gone. */
  row = (table: string, key: Key): Row | undefined => this.#now(table, { pk: key }, this.#written.get(table)?.get(key))

  /** A row of the database, or a part of it, as it is after the entries so far; undefined when it is gone. */
  now(table: string, row: Row): Row | undefined {
    return this.#gone.get(table)?.has(row.pk) === true
      ? undefined
      : this.#now(table, row, this.#written.get(table)?.get(row.pk), true)
  }

  /** The written rows that may have a value, or a spelling of it: the caller compares. @param storage that of `storageOf` */
  with(table: string, storage: string, value: unknown): Row[] {
    for (const each of this.#unindexed.splice(0)) this.#addToIndex(each)
    const keys = this.#index.get(placeOf(table, storage, value)) ?? []
    return [...keys].flatMap((key) => this.row(table, key) ?? [])
  }

  #now(table: string, read: Row, written: Written | undefined, isRead = false): Row | undefined {
    if (written === undefined && !isRead) return undefined
    const place = `${table} ${read.pk}`
    const label = this.#labels.get(place)
    const row = written?.row() ?? (label === undefined ? read : { ...read, owner: label })
    // The last entry may not have read all links.
    const links = { ...read.links, ...row.links }
    for (const [name, { whole, edits }] of this.#links.get(place) ?? []) {
      const had = read.links?.[name]
      const keys = whole ?? (had && [...had.filter((key) => !edits.has(key)), ...keysThere(edits)])
      if (keys === undefined) delete links[name]
      else links[name] = keys
    }
    const model = written?.model ?? modelOf(this.#registry, table, row)
    return this.#withoutGone(model, { ...row, links })
  }

  /** As the database deletes: a reference that a row needs takes the row with it, any other one becomes empty. */
  #withoutGone(model: Model | undefined, row: Row): Row | undefined {
    if (this.#gone.size === 0 || model === undefined) return row
    let left = row
    for (const field of model.fields.values()) {
      const { storage, required, reference } = field
      const gone = this.#gone.get(this.#registry.targets.get(reference?.target ?? '')?.table ?? '')
      if (gone === undefined || reference?.holds === true || storage.in === 'settings') continue
      const keys = storedKeys(field, row)
      const kept = keys.filter((key) => !gone.has(key))
      if (kept.length === keys.length) continue
      if (storage.in === 'link') left = { ...left, links: { ...left.links, [field.name]: kept } }
      else if (required) return undefined
      else if (storage.in === 'column') left = { ...left, [storage.column]: null }
    }
    return left
  }

  #addToIndex({ model, key, values }: { readonly model: Model; readonly key: Key; readonly values: Values }): void {
    const add = (storage: string, value: unknown) =>
      this.#index.getOrInsertComputed(placeOf(model.table, storage, value), () => new Set()).add(key)
    add('pk', key)
    for (const field of model.fields.values()) {
      const { storage, reference, name } = field
      if (storage.in === 'link' && storage.many) continue
      if (reference === undefined && storage.in !== 'column') continue
      for (const value of [values[name]].flat())
        if (value !== undefined && value !== null && typeof value !== 'object') add(storageOf(field), value)
    }
  }
}

const gone: EntryRow = { entry: undefined, isNew: false, isBroken: false, isGone: true, value: () => undefined }

/** The storage of a field within its table: a column, a join table, or a name in JSON. */
export const storageOf = ({ name, storage }: Pick<Field, 'name' | 'storage'>): string =>
  storage.in === 'column' ? storage.column : storage.in === 'link' ? `link ${name}` : `json ${name}`

const placeOf = (table: string, storage: string, value: unknown): string =>
  `${table} ${storage} ${comparedName(String(value))}`

const keysThere = (edits: LinkKeys['edits']): Key[] => [...edits].flatMap(([key, isThere]) => (isThere ? [key] : []))

function edited(earlier: LinkKeys | undefined, added: readonly Key[], removed: readonly Key[]): LinkKeys {
  const edits = new Map(earlier?.edits)
  for (const key of removed) edits.set(key, false)
  for (const key of added) edits.set(key, true)
  const whole = earlier?.whole && [...earlier.whole.filter((key) => !edits.has(key)), ...keysThere(edits)]
  return { whole, edits }
}
