import type { Model, Only, ReferenceTarget } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { comparedName } from '../names.ts'
import type { Effect } from './effect.ts'
import { type By, type FoundRow, nameColumns } from './lookup-sql.ts'
import type { Key } from './row-set.ts'
import { columnOf } from './statements.ts'

/** The key of a new row while the API checks a document: only the apply knows it. */
export const pending = Symbol('pending')

/** A row as it is after the entries so far: `entry` is the index of the last one that wrote it. */
export type KnownRow = {
  /** The values of the columns that are looked up. */
  readonly values: ReadonlyMap<string, unknown>
  readonly key: Key | typeof pending
  readonly entry: number | undefined
  /** Whether this document creates the row. */
  readonly isNew: boolean
}

export type Match =
  | { readonly is: 'row'; readonly row: KnownRow }
  | { readonly is: 'unfit'; readonly found: string }
  | { readonly is: 'ambiguous'; readonly rows: readonly string[] }
  /** An entry of the document renamed or deleted the row that had the name. */
  | { readonly is: 'gone'; readonly entry: number; readonly verb: 'deletes' | 'renames' }
  | { readonly is: 'unknown' }

/**
 * The rows of one table that a document looks up, as they are after each of its entries. So a name finds a row that an earlier
 * entry creates or renames, and no longer the row that had the name before. This holds in a check too, which writes nothing.
 */
export class KnownRows {
  readonly model: Model
  readonly columns = new Set<string>(['pk'])
  readonly #asked = new Set<string>()
  /** The rows, by column and folded value. */
  readonly #index = new Map<string, Set<KnownRow>>()
  /** The rows that were read, written or deleted, by key. */
  readonly #rows = new Map<Key, KnownRow | 'deleted'>()
  readonly #gone = new Map<string, { entry: number; verb: 'deletes' | 'renames' }>()

  constructor(model: Model, { models }: Registry) {
    this.model = model
    for (const each of models.filter(({ table }) => table === model.table))
      for (const column of [...Object.keys(each.discriminator), ...identifyingColumns(each), ...ownerColumns(each)])
        this.columns.add(column)
  }

  /** The look-ups that were not read yet. They count as read from now on. */
  unread(by: readonly By[]): By[] {
    return by.filter((each) => {
      const place = JSON.stringify([each.columns, each.values, each.folded])
      return !this.#asked.has(place) && this.#asked.add(place)
    })
  }

  /** Adds rows as the database has them. Rows that entries have written since are kept. */
  read(rows: readonly FoundRow[]): void {
    for (const { pk, ...columns } of rows)
      if (!this.#rows.has(pk))
        this.#add({ values: new Map(Object.entries({ ...columns, pk })), key: pk, entry: undefined, isNew: false })
  }

  find({ columns, values, folded }: By): KnownRow[] {
    const [[column, value] = ['', '']] = columns.map((each, index) => [each, values[index] ?? ''] as const)
    const isIt = (row: KnownRow) =>
      columns.every((each, index) => folded === true || String(row.values.get(each) ?? '') === values[index])
    return [...(this.#index.get(placeOf(column, value)) ?? [])].filter(isIt)
  }

  /**
   * The row with a name: the exact name comes first, in the first of the fields that name rows. A user who creates a row must not
   * change the meaning of other users' documents: `namesakes.ts` refuses a row that shares a name.
   *
   * @param shows whether the submitter may know of a row
   */
  findNamed(
    name: string,
    target: ReferenceTarget,
    only: Only | undefined,
    shows: (row: KnownRow) => boolean = () => true,
  ): Match {
    let unfit: string | undefined
    const [folded, exact] = partition(namesOf(name, target), (by) => by.folded === true)
    for (const ways of [...exact.map((by) => [by]), folded]) {
      const rows = [...new Set(ways.flatMap((by) => this.find(by)))].filter(shows)
      const fitting = rows.filter(({ values }) => fits(values, only))
      const [row, another] = fitting
      if (another !== undefined) return { is: 'ambiguous', rows: fitting.map((each) => describe(each, target, only)) }
      if (row !== undefined) return { is: 'row', row }
      if (only !== undefined && rows[0] !== undefined) unfit ??= String(rows[0].values.get(only.column))
    }
    if (unfit !== undefined) return { is: 'unfit', found: unfit }
    const gone = this.#gone.get(comparedName(name))
    return gone === undefined ? { is: 'unknown' } : { is: 'gone', ...gone }
  }

  /** Repeats the write of an entry of this table. */
  wrote({ step: { model }, action, row, values, isForeign }: Effect, key: KnownRow['key'], entry: number): void {
    if (isForeign || action === 'leave' || action === 'unchanged') return
    const known = typeof key === 'symbol' ? undefined : this.#rows.get(key)
    if (known !== undefined && known !== 'deleted') this.#remove(known)
    if (row === undefined) for (const same of this.#identified(model, values)) this.#remove(same)
    const stored = [...this.columns].map((column) => [column, row?.[column]] as const)
    const after = new Map<string, unknown>([...stored, ...Object.entries(model.discriminator), ['pk', key]])
    for (const { name, storage } of model.fields.values())
      if (storage.in === 'column' && this.columns.has(storage.column)) after.set(storage.column, values[name])
    if (row !== undefined)
      for (const field of model.names) {
        const name = row[columnOf(model, field)]
        const verb = action === 'delete' ? 'deletes' : 'renames'
        if (typeof name === 'string' && (action === 'delete' || values[field] !== name))
          this.#gone.set(comparedName(name), { entry, verb })
      }
    if (action !== 'delete') this.#add({ values: after, key, entry, isNew: row === undefined || wasNew(known) })
    else if (typeof key !== 'symbol') this.#rows.set(key, 'deleted')
  }

  /** Forgets the rows that no entry has written: they may have changed with one that is deleted. */
  forgetRead(): void {
    this.#asked.clear()
    for (const row of this.#rows.values())
      if (row !== 'deleted' && row.entry === undefined && typeof row.key !== 'symbol') {
        this.#remove(row)
        this.#rows.delete(row.key)
      }
  }

  /** The new rows that an earlier entry has named by the same identifiers: they are one row. */
  #identified(model: Model, values: Effect['values']): KnownRow[] {
    return model.identifiers.flatMap((set) => {
      const columns = set.map((name) => columnOf(model, name))
      return this.find({ columns, values: set.map((name) => String(values[name] ?? '')) }).filter(({ isNew }) => isNew)
    })
  }

  #add(row: KnownRow): void {
    if (typeof row.key !== 'symbol') this.#rows.set(row.key, row)
    for (const [column, value] of row.values)
      this.#index.getOrInsertComputed(placeOf(column, value), () => new Set()).add(row)
  }

  #remove(row: KnownRow): void {
    for (const [column, value] of row.values) this.#index.get(placeOf(column, value))?.delete(row)
  }
}

function partition<Item>(items: readonly Item[], is: (item: Item) => boolean): readonly [Item[], Item[]] {
  return [items.filter(is), items.filter((item) => !is(item))]
}

const ownerColumns = ({ isLabelled }: Model): string[] => (isLabelled === true ? ['owner'] : [])

const identifyingColumns = (model: Model): string[] => model.identifiers.flat().map((name) => columnOf(model, name))

const wasNew = (known: KnownRow | 'deleted' | undefined): boolean =>
  known !== undefined && known !== 'deleted' && known.isNew

/** The look-ups of a name, in the order in which they count. */
export function namesOf(name: string, target: ReferenceTarget): By[] {
  const columns = nameColumns(target)
  return [
    ...columns.map(({ column }) => ({ columns: [column], values: [name] })),
    ...columns
      .filter(({ folded }) => folded)
      .map(({ column }) => ({ columns: [column], values: [name], folded: true }) as const),
  ]
}

const placeOf = (column: string, value: unknown): string => `${column} ${comparedName(String(value))}`

/** Whether a row fits a restriction. A value that the document leaves to an existing row is not known: `inspect` checks it. */
export function fits(values: ReadonlyMap<string, unknown>, only: Only | undefined): boolean {
  const value = only === undefined ? undefined : values.get(only.column)
  return typeof value !== 'string' || only?.values.includes(value) === true
}

/** One of several rows with the same name, with the values that differ. */
function describe({ values, key, entry, isNew }: KnownRow, target: ReferenceTarget, only: Only | undefined): string {
  const others = nameColumns(target).flatMap(({ column, field }) => {
    const value = values.get(column)
    return typeof value === 'string' ? [`${field} ${JSON.stringify(value)}`] : []
  })
  if (only !== undefined && only.values.length > 1) others.push(`${only.column} ${values.get(only.column)}`)
  return `${others.join(', ')} (${isNew ? `entry ${entry} of this document` : `pk ${String(key)}`})`
}
