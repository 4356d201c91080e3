import type { Model, Only, ReferenceTarget } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { comparedName } from '../names.ts'
import type { Effect } from './effect.ts'
import { type By, type FoundRow, nameColumns } from './lookup-sql.ts'
import type { Key } from './row-set.ts'
import { columnOf, type Row } from './statements.ts'
import type { World } from './world.ts'

/** A row as it is after the entries so far: `entry` is the index of the last one that wrote it. */
export type KnownRow = {
  /** The values of the columns that are looked up. */
  readonly values: ReadonlyMap<string, unknown>
  readonly key: Key
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
 * entry creates or renames, and no longer the row that had the name before.
 */
export class KnownRows {
  readonly model: Model
  readonly columns = new Set<string>(['pk'])
  readonly #world: World
  readonly #asked = new Set<string>()
  /** The rows of the database, by column and folded value. */
  readonly #index = new Map<string, Map<Key, FoundRow>>()
  readonly #gone = new Map<string, { entry: number; verb: 'deletes' | 'renames' }>()

  constructor(model: Model, { models }: Registry, world: World) {
    this.model = model
    this.#world = world
    for (const each of models.filter(({ table }) => table === model.table))
      for (const column of [
        ...Object.keys(each.discriminator),
        ...identifyingColumns(each),
        ...ownerColumns(each),
        ...neededColumns(each),
      ])
        this.columns.add(column)
  }

  /** The look-ups that were not read yet. They count as read from now on. */
  unread(by: readonly By[]): By[] {
    return by.filter((each) => {
      const place = JSON.stringify([each.columns, each.values, each.folded])
      return !this.#asked.has(place) && this.#asked.add(place)
    })
  }

  /** Adds rows of the database. */
  read(rows: readonly FoundRow[]): void {
    for (const row of rows)
      for (const [column, value] of Object.entries(row))
        this.#index.getOrInsertComputed(placeOf(column, value), () => new Map()).set(row.pk, row)
  }

  /** The rows that any of these look-ups finds. */
  findAny = (ways: readonly By[]): KnownRow[] => [
    ...new Map(ways.flatMap((by) => this.find(by)).map((row) => [row.key, row])).values(),
  ]

  find({ columns, values, folded }: By): KnownRow[] {
    const { table } = this.model
    const [[column, value] = ['', '']] = columns.map((each, index) => [each, values[index] ?? ''] as const)
    const isIt = (row: Row) =>
      columns.every((each, index) =>
        folded === true
          ? comparedName(String(row[each])) === comparedName(values[index] ?? '')
          : String(row[each] ?? '') === values[index],
      )
    const read = [...(this.#index.get(placeOf(column, value))?.values() ?? [])]
    const rows = [
      ...read.flatMap((row) => (this.#world.has(table, row.pk) ? [] : (this.#world.now(table, row) ?? []))),
      ...this.#world.with(table, column, value),
    ]
    return rows.filter(isIt).map((row) => {
      const { entry, isNew = false } = this.#world.entryOf(table, row.pk) ?? {}
      return { values: new Map(Object.entries(row)), key: row.pk, entry, isNew }
    })
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
      const rows = this.findAny(ways).filter(shows)
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

  /** Remembers the names that an entry takes from its row. */
  wrote({ step: { model }, action, row, values, isForeign }: Effect, entry: number): void {
    if (isForeign || row === undefined || (action !== 'update' && action !== 'delete')) return
    for (const field of model.names) {
      const name = row[columnOf(model, field)]
      if (typeof name === 'string' && (action === 'delete' || values[field] !== name))
        this.#gone.set(comparedName(name), { entry, verb: action === 'delete' ? 'deletes' : 'renames' })
    }
  }
}

function partition<Item>(items: readonly Item[], is: (item: Item) => boolean): readonly [Item[], Item[]] {
  return [items.filter(is), items.filter((item) => !is(item))]
}

const ownerColumns = ({ isLabelled }: Model): string[] => (isLabelled === true ? ['owner'] : [])

const identifyingColumns = (model: Model): string[] => model.identifiers.flat().map((name) => columnOf(model, name))

/** References that take the row with them when their row is deleted. */
const neededColumns = ({ fields }: Model): string[] =>
  [...fields.values()].flatMap(({ reference, required, storage }) =>
    reference !== undefined && required && storage.in === 'column' ? [storage.column] : [],
  )

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
