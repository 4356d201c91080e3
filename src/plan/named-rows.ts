import type { Only, ReferenceTarget } from '../models/define.ts'
import type { Step } from './compile.ts'
import { type Asked, type NameColumn, type NamedRow, nameColumns } from './names-sql.ts'
import { columnOf } from './statements.ts'

/** A row as it is after the entries so far: `step` is the index of the last one that wrote it. */
type Tracked = {
  readonly values: Map<string, unknown>
  readonly key: string | number | undefined
  step: number | undefined
}

export type Match =
  | { readonly is: 'key'; readonly key: string | number }
  /** The row that this entry of the document writes. */
  | { readonly is: 'step'; readonly step: number }
  | { readonly is: 'unfit'; readonly found: string }
  | { readonly is: 'ambiguous'; readonly rows: readonly string[] }
  /** An entry of the document renamed or deleted the row that had the name. */
  | { readonly is: 'gone'; readonly step: number; readonly verb: 'deletes' | 'renames' }
  | { readonly is: 'unknown' }

/**
 * The rows of one table that a document names, as they are after each of its entries. So a name finds what an earlier
 * entry creates or renames, and no longer what it had named before.
 */
export class NamedRows {
  readonly #target: ReferenceTarget
  readonly #columns: readonly string[]
  readonly #names: readonly NameColumn[]
  /** By column and folded value. */
  readonly #index = new Map<string, Set<Tracked>>()
  readonly #gone = new Map<string, { step: number; verb: 'deletes' | 'renames' }>()

  constructor({ target, columns }: Omit<Asked, 'names'>, rows: readonly NamedRow[]) {
    this.#target = target
    this.#columns = columns
    this.#names = nameColumns(target)
    const unique = new Map(rows.map((row) => [row.pk, row]))
    for (const row of unique.values()) this.#add({ values: new Map(Object.entries(row)), key: row.pk, step: undefined })
  }

  find(name: string, only: Only | undefined): Match {
    let unfit: string | undefined
    for (const isFolded of [false, true])
      for (const { column, folded } of this.#names) {
        if (isFolded && !folded) continue
        const rows = [...this.#at(column, name)].filter(({ values }) => isFolded || values.get(column) === name)
        const fitting = rows.filter(({ values }) => fits(values, only))
        const [row, another] = fitting
        if (another !== undefined) return { is: 'ambiguous', rows: fitting.map((each) => this.#describe(each)) }
        if (row?.step !== undefined) return { is: 'step', step: row.step }
        if (row?.key !== undefined) return { is: 'key', key: row.key }
        if (only !== undefined && rows[0] !== undefined) unfit ??= String(rows[0].values.get(only.column))
      }
    if (unfit !== undefined) return { is: 'unfit', found: unfit }
    const gone = this.#gone.get(name.toLowerCase())
    return gone === undefined ? { is: 'unknown' } : { is: 'gone', ...gone }
  }

  /** Does what an entry of this table will do. */
  write({ model, state, identifiers, attrs }: Step, index: number): void {
    const sent = new Map(Object.entries(model.discriminator) as [string, unknown][])
    for (const [name, value] of [...identifiers, ...attrs]) {
      const storage = model.fields.get(name)?.storage
      const column = name === 'pk' ? 'pk' : storage?.in === 'column' ? storage.column : undefined
      if (column !== undefined && this.#columns.includes(column)) sent.set(column, value)
    }
    const rows = this.#identified([...identifiers].map(([name, value]) => [columnOf(model, name), value]))
    for (const row of rows) {
      this.#remove(row)
      if (state === 'absent') this.#leave(row, index, 'deletes')
      if (state === 'absent') continue
      const after = state === 'present' ? new Map([...row.values, ...sent]) : row.values
      const isRenamed = this.#names.some(({ column }) => after.get(column) !== row.values.get(column))
      if (isRenamed) this.#leave(row, index, 'renames')
      this.#add({ ...row, values: after, step: index })
    }
    if (rows.length === 0 && state !== 'absent') this.#add({ values: sent, key: undefined, step: index })
  }

  #identified(by: readonly (readonly [string, unknown])[]): Tracked[] {
    const [first] = by
    if (first === undefined) return []
    return [...this.#at(...first)].filter(({ values }) => by.every(([column, value]) => values.get(column) === value))
  }

  /** The names that the row had; some of them are given again when it is written. */
  #leave({ values }: Tracked, step: number, verb: 'deletes' | 'renames'): void {
    for (const { column } of this.#names) {
      const name = values.get(column)
      if (typeof name === 'string') this.#gone.set(name.toLowerCase(), { step, verb })
    }
  }

  #at(column: string, value: unknown): ReadonlySet<Tracked> {
    return this.#index.get(placeOf(column, value)) ?? new Set()
  }

  #add(row: Tracked): void {
    for (const [column, value] of row.values)
      this.#index.getOrInsertComputed(placeOf(column, value), () => new Set()).add(row)
  }

  #remove(row: Tracked): void {
    for (const [column, value] of row.values) this.#index.get(placeOf(column, value))?.delete(row)
  }

  /** One of several rows with the same name: what tells it from the others. */
  #describe({ values, key, step }: Tracked): string {
    const others = this.#names.flatMap(({ column, field }) => {
      const value = values.get(column)
      return typeof value === 'string' ? [`${field} ${JSON.stringify(value)}`] : []
    })
    return `${others.join(', ')} (${key === undefined ? `entry ${step} of this document` : `pk ${key}`})`
  }

  get target(): ReferenceTarget {
    return this.#target
  }
}

const placeOf = (column: string, value: unknown): string => `${column} ${String(value).toLowerCase()}`

/** A value that the document leaves to an existing row is not known: `inspect` checks it. */
function fits(values: ReadonlyMap<string, unknown>, only: Only | undefined): boolean {
  const value = only === undefined ? undefined : values.get(only.column)
  return typeof value !== 'string' || only?.values.includes(value) === true
}
