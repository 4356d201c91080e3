import type { Link, Model, Reference, Values } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { comparedName } from '../names.ts'
import type { ListEdit } from './list-edit.ts'
import { isFoundBy, keyIn, type LinkLook, type Look, questionOf, storageOf } from './look.ts'
import { isRowOf, type Key, linksOf, onceFor, type Row } from './statements.ts'
import { keysOf, storedKeys, toMaskedValues } from './storage.ts'

/** A row behind an entry, and the entry. */
type Write = {
  /** All fields of the row; undefined where they have errors, or were not read. */
  readonly values: Values
  /** The row as it will be stored. */
  readonly row: () => Row
  readonly edits?: ReadonlyMap<string, ListEdit> | undefined
  /** The index of the entry; undefined for one that leaves its row alone. */
  readonly entry: number | undefined
  /** Whether this document creates it, so that no row outside of the document refers to it. */
  readonly isNew: boolean
  /** Whether it has errors: other errors of the row follow from them. */
  readonly isBroken: boolean
  /** The text in place of the key of a new row, in changes. */
  readonly tag?: string | undefined
  /** The values that the entry gives to the row, as the changes show them; undefined where it changes nothing. */
  readonly given?: Values | undefined
}

/** The keys of a link: all of them, or those that entries add and remove. */
type LinkKeys = { readonly whole?: readonly Key[] | undefined; readonly edits: ReadonlyMap<Key, boolean> }

type Written = Omit<Write, 'edits'> & { readonly model: Model }

/** Questions that the world cannot answer yet. */
export type Asked = { readonly looks: Look[]; readonly links: LinkLook[] }

/** A row before the document and after the entries so far: undefined where it is not there. */
export type Changed = { readonly key: Key; readonly before: Row | undefined; readonly after: Row | undefined }

/**
 * The rows that concern a document, as its entries so far leave them. Rows of the database are loaded into it (`load.ts`), and all
 * questions are answered from it: an entry means the same whether the entries before it are stored yet or not. It knows models and
 * values, and neither steps nor SQL.
 */
export class World {
  readonly registry: Registry
  /** The rows of the database, by table and key. Of links that may be very many they have the keys that were read. */
  readonly #stored = new Map<string, Map<Key, Row>>()
  /** The answers of the database: the keys of rows, by question. */
  readonly #answers = new Map<string, readonly Key[]>()
  /** The links that were read, by row and field: all, or among these keys. */
  readonly #linksRead = new Map<string, ReadonlySet<Key> | 'all'>()
  readonly #written = new Map<string, Map<Key, Written>>()
  /** The entries that delete rows, by table and key. */
  readonly #gone = new Map<string, Map<Key, number>>()
  /** The links that may be very many, or are part of rows on two sides, by table and key of a row, and by field. */
  readonly #links = new Map<string, Map<string, LinkKeys>>()
  /** The rows that entries take through references, with the labels that they get. */
  readonly #taken = new Map<string, string | null | undefined>()
  /** The questions of `asking` so far. */
  #asked: Asked | undefined
  /** The keys of written rows by table, storage that was asked for, and folded value. Rows may have other values since. */
  readonly #indexes = new Map<string, Map<string, Map<string, Set<Key>>>>()

  constructor(registry: Registry) {
    this.registry = registry
  }

  tableOf = (reference: Reference | undefined): string =>
    this.registry.targets.get(reference?.target ?? '')?.table ?? ''

  /** The model of a row, among those that share a table. */
  modelOf = (table: string, row: Readonly<Record<string, unknown>>): Model | undefined =>
    this.registry.models.find((model) => model.table === table && isRowOf(model, row))

  answer(look: Look, rows: readonly Row[]): void {
    const stored = this.#stored.getOrInsertComputed(look.model.table, () => new Map())
    for (const row of rows) {
      const { links, ...before } = stored.get(row.pk) ?? {}
      stored.set(row.pk, { ...before, ...row, links: { ...links, ...row.links } })
    }
    const keys = rows.map(({ pk }) => pk)
    this.#answers.set(questionOf(look), keys)
  }

  /** Adds links of a row. Those that were not asked for stay unknown; a row that is not stored has none. */
  answerLinks({ model: { table }, name, pk, among }: LinkLook, keys: readonly Key[]): void {
    const row = this.#stored.get(table)?.get(pk)
    if (row === undefined) return
    const place = `${table} ${pk} ${name}`
    const read = this.#linksRead.get(place) ?? new Set()
    this.#linksRead.set(place, among === undefined || read === 'all' ? 'all' : new Set([...read, ...among]))
    const all = new Set([...(row.links?.[name] ?? []), ...keys])
    this.#stored.get(table)?.set(pk, { ...row, links: { ...row.links, [name]: [...all] } })
  }

  /**
   * Does work on the world. What it cannot find yet is not there for the work, and is asked for.
   *
   * @returns also what has to be loaded before the work is done again
   */
  asking<Result>(work: () => Result): { readonly result: Result; readonly asked: Asked } {
    const asked: Asked = { looks: [], links: [] }
    this.#asked = asked
    try {
      return { result: work(), asked }
    } finally {
      this.#asked = undefined
    }
  }

  /** Whether questions need no answer of the database any more. In `asking`, it is asked for the others. */
  knows(looks: readonly Look[]): boolean {
    const unknown = looks.filter((look) => this.#answerTo(look) === undefined)
    this.#asked?.looks.push(...unknown)
    return unknown.length === 0
  }

  /** The keys of the rows of the database that a question finds, and perhaps of others. */
  #answerTo(look: Look): readonly Key[] | undefined {
    const { model, columns, values, field } = look
    if (columns.length === 1 && columns[0] === 'pk') {
      const key = keyIn(values[0] ?? '')
      if (this.has(model.table, key) || this.rowBefore(model.table, key) !== undefined) return [key]
    }
    // No row outside of the document refers to one that the document creates.
    if (values.some((value) => this.#written.get(this.tableOf(field?.reference))?.get(keyIn(value))?.isNew === true))
      return []
    // The rows with a name, in any case of its letters, have those with the very name among them.
    return this.#answers.get(questionOf(look)) ?? this.#answers.get(questionOf(look, true))
  }

  /**
   * The rows that a question finds after the entries so far, those with the very value first.
   *
   * @throws for what was not loaded, outside of `asking`
   */
  find(look: Look): Row[] {
    const { model, columns, values, folded, field } = look
    const { table } = model
    const answer = this.#answerTo(look)
    if (answer === undefined) {
      if (this.#asked === undefined) throw new Error(`${table} was not loaded by ${field?.name ?? columns.join()}`)
      this.#asked.looks.push(look)
      return []
    }
    const [value = ''] = values
    const storage = field === undefined ? (columns[0] ?? 'pk') : storageOf(field)
    const keys = new Set([...answer, ...this.#writtenWith(table, storage, value)])
    const found = [...keys].flatMap((key) => this.row(table, key) ?? []).filter((row) => isFoundBy(look, row))
    if (folded !== true) return found
    const isExact = (row: Row) => String(row[storage]) === value
    return [...found.filter(isExact), ...found.filter((row) => !isExact(row))]
  }

  /** The keys of a link after the entries so far, those that are asked for among them. */
  links(look: LinkLook): readonly Key[] {
    const { model, name, pk, among } = look
    const read = this.#linksRead.get(`${model.table} ${pk} ${name}`)
    const isRead = read === 'all' || (read !== undefined && among?.every((key) => read.has(key)) === true)
    // A row that is not stored has none.
    if (!isRead && this.rowBefore(model.table, pk) !== undefined) this.#asked?.links.push(look)
    return this.row(model.table, pk)?.links?.[name] ?? []
  }

  /** The rows that a question found before the document. */
  findBefore = (look: Look): Row[] =>
    (this.#answerTo(look) ?? [])
      .flatMap((key) => this.#stored.get(look.model.table)?.get(key) ?? [])
      .filter((row) => isFoundBy(look, row))

  put(model: Model, key: Key, { values, row, edits, ...write }: Write): void {
    const before = this.row(model.table, key)
    const rows = this.#written.getOrInsertComputed(model.table, () => new Map())
    const earlier = rows.get(key)
    let stored: Row | undefined
    rows.set(key, {
      ...write,
      model,
      values,
      row: () => (stored ??= row()),
      isNew: write.isNew || earlier?.isNew === true,
      isBroken: write.isBroken || earlier?.isBroken === true,
      tag: write.tag ?? earlier?.tag,
      given: write.given === undefined ? earlier?.given : { ...earlier?.given, ...write.given },
    })
    this.#gone.get(model.table)?.delete(key)
    for (const [storage, index] of this.#indexes.get(model.table) ?? []) addTo(index, model, storage, key, values)
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
    for (const model of this.registry.models)
      for (const [{ name }, link] of linksOf(model))
        if (link.table === table && link.own === other) return { table: model.table, name }
    return undefined
  }

  /** Keeps that an entry takes a row through a reference. @param owner the label that it gets; undefined when it keeps its own */
  take({ table }: Model, key: Key, owner: string | null | undefined): void {
    this.#taken.set(`${table} ${key}`, owner)
  }

  /** Whether an entry names the row, or takes it. */
  isJudged = (table: string, key: Key): boolean => this.has(table, key) || this.#taken.has(`${table} ${key}`)

  /** The values that earlier entries gave to a row, as the changes show them; undefined when none changed it. */
  givenTo(table: string, key: Key): Values | undefined {
    const owner = this.#taken.get(`${table} ${key}`)
    return this.#written.get(table)?.get(key)?.given ?? (owner === undefined ? undefined : { owner })
  }

  /** Deletes a row. References to it go with it. */
  remove({ table }: Model, key: Key, entry: number): void {
    this.#written.get(table)?.delete(key)
    this.#gone.getOrInsertComputed(table, () => new Map()).set(key, entry)
  }

  /** The entry that takes the values of a question from the row that had them; undefined where none does. */
  lost(look: Look): { readonly entry: number; readonly verb: 'deletes' | 'renames' } | undefined {
    const { table } = look.model
    for (const { pk: key } of this.findBefore(look)) {
      const deleting = this.#gone.get(table)?.get(key)
      if (deleting !== undefined) return { entry: deleting, verb: 'deletes' }
      const entry = this.#written.get(table)?.get(key)?.entry
      if (entry !== undefined) return { entry, verb: 'renames' }
    }
    return undefined
  }

  /** Whether an entry names the row. */
  has = (table: string, key: Key): boolean => this.#written.get(table)?.has(key) === true || this.isGone(table, key)

  /** The keys of the rows of a table that entries name. */
  keysIn = (table: string): Key[] => [
    ...(this.#written.get(table)?.keys() ?? []),
    ...(this.#gone.get(table)?.keys() ?? []),
  ]

  /** The rows of a table that entries name. */
  changed = (table: string): Changed[] =>
    this.keysIn(table).map((key) => ({ key, before: this.rowBefore(table, key), after: this.row(table, key) }))

  /** A row before the document; undefined where it was not read. */
  rowBefore = (table: string, key: Key): Row | undefined => this.#stored.get(table)?.get(key)

  /** What the entries so far make of a row; undefined for one that none names, or that they delete. */
  entryOf = (table: string, key: Key): Pick<Written, 'entry' | 'isNew' | 'isBroken' | 'tag'> | undefined =>
    this.#written.get(table)?.get(key)

  isGone = (table: string, key: Key): boolean => this.#gone.get(table)?.has(key) === true

  /** The fields of a row as it is after the entries so far, with secrets masked. One that has errors is left out. */
  values(model: Model, key: Key): Values {
    const row = this.row(model.table, key)
    const values = row === undefined ? {} : toMaskedValues(model, row)
    if (this.entryOf(model.table, key)?.isBroken !== true) return values
    return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null))
  }

  /** A row as it is after the entries so far; undefined where it is gone, was never there, or was never read. */
  row(table: string, key: Key): Row | undefined {
    if (this.isGone(table, key)) return undefined
    const written = this.#written.get(table)?.get(key)
    const stored = this.rowBefore(table, key)
    if (written === undefined && stored === undefined) return undefined
    const isAsStored = written === undefined && this.#gone.size + this.#taken.size + this.#links.size === 0
    return isAsStored ? stored : this.#now(table, stored ?? { pk: key }, written)
  }

  #now(table: string, read: Row, written: Written | undefined): Row | undefined {
    const place = `${table} ${read.pk}`
    const label = this.#taken.get(place)
    const row = written?.row() ?? (label === undefined ? read : { ...read, owner: label })
    // The last entry may not have read all links.
    const links = { ...read.links, ...row.links }
    for (const [name, { whole, edits }] of this.#links.get(place) ?? []) {
      const had = read.links?.[name]
      const keys = whole ?? (had && [...had.filter((key) => !edits.has(key)), ...keysThere(edits)])
      if (keys === undefined) delete links[name]
      else links[name] = keys
    }
    const now = { ...row, links }
    return this.#gone.size === 0 ? now : this.#withoutGone(written?.model ?? this.modelOf(table, row), now)
  }

  /** Does what the database does at a deletion: a reference that a row needs takes the row with it, any other becomes empty. */
  #withoutGone(model: Model | undefined, row: Row): Row | undefined {
    if (model === undefined) return row
    let left = row
    for (const field of model.fields.values()) {
      const { storage, required, reference } = field
      const gone = this.#gone.get(this.tableOf(reference))
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

  #writtenWith(table: string, storage: string, value: string): Iterable<Key> {
    const written = this.#written.get(table)
    if (written === undefined) return []
    const index = this.#indexes
      .getOrInsertComputed(table, () => new Map())
      .getOrInsertComputed(storage, () => {
        const made = new Map<string, Set<Key>>()
        for (const [key, { model, values }] of written) addTo(made, model, storage, key, values)
        return made
      })
    return index.get(comparedName(value)) ?? []
  }
}

function addTo(index: Map<string, Set<Key>>, model: Model, storage: string, key: Key, values: Values): void {
  const add = (value: unknown) => index.getOrInsertComputed(comparedName(String(value)), () => new Set()).add(key)
  if (storage === 'pk') add(key)
  const name = fieldsByStorage(model).get(storage)
  for (const value of name === undefined ? [] : [values[name]].flat())
    if (value !== undefined && value !== null && typeof value !== 'object') add(value)
}

const fieldsByStorage = onceFor(
  ({ fields }: Model) => new Map([...fields.values()].map((field) => [storageOf(field), field.name])),
)

const keysThere = (edits: LinkKeys['edits']): Key[] => [...edits].flatMap(([key, isThere]) => (isThere ? [key] : []))

function edited(earlier: LinkKeys | undefined, added: readonly Key[], removed: readonly Key[]): LinkKeys {
  const edits = new Map(earlier?.edits)
  for (const key of removed) edits.set(key, false)
  for (const key of added) edits.set(key, true)
  const whole = earlier?.whole && [...earlier.whole.filter((key) => !edits.has(key)), ...keysThere(edits)]
  return { whole, edits }
}
