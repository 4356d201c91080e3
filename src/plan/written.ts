import type { Model } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import type { Step } from './compile.ts'
import type { Diff } from './diff.ts'
import { type EntryQuestion, onlyOf, type Seen } from './snapshot-sql.ts'
import { columnOf, linksOf, type Row } from './statements.ts'
import { keysOf } from './storage.ts'

type Key = string | number

/** What was read ahead of an entry, and what was asked. */
export type Ahead = EntryQuestion & { readonly seen: Seen }

/** What an entry does. */
export type Effect = Diff & { readonly step: Step; readonly row: Row | undefined; readonly pk: Key | undefined }

/** What was written to one table. */
class TableWritten {
  readonly keys = new Set<Key>()
  /** Of rows that are new, gone, or may fit other references now. */
  readonly refitted = new Set<Key>()
  readonly gone = new Set<Key>()
  /** Names, keys and other values of columns and links, before and after, in lower case: `name grafana`. */
  readonly values = new Set<string>()
  /** Whether rows were added or removed. */
  isResized = false
}

/**
 * What the entries of a document have written since others were read ahead. An entry that it could affect is read again:
 * rather once too often than once too rarely.
 */
export class Written {
  readonly #registry: Registry
  readonly #tables = new Map<string, TableWritten>()
  /** By join table: the tables of the rows that were written with links. Users and groups share one. */
  readonly #linking = new Map<string, Set<string>>()

  constructor(registry: Registry) {
    this.#registry = registry
  }

  add({ step, action, row, values, changed, pk }: Effect): void {
    if (action === 'leave' || action === 'unchanged') return
    const { model } = step
    const table = this.#tables.getOrInsertComputed(model.table, () => new TableWritten())
    for (const [, link] of linksOf(model))
      this.#linking.getOrInsertComputed(link.table, () => new Set()).add(model.table)
    const key = row?.pk ?? pk
    if (key !== undefined) table.keys.add(key)
    for (const name of model.fields.keys()) {
      if (row !== undefined) note(table, name, stored(model, row, name))
      note(table, name, values[name])
    }
    if (key !== undefined) note(table, 'pk', key)
    if (action !== 'update') table.isResized = true
    if (key !== undefined && (action !== 'update' || this.#refits(model, changed))) table.refitted.add(key)
    if (key !== undefined && action === 'delete') table.gone.add(key)
  }

  /** Whether a change of these fields can make a row fit references that it did not fit, or the other way round. */
  #refits({ table, fields }: Model, changed: readonly string[]): boolean {
    const columns = new Set(
      this.#registry.models.flatMap((model) =>
        [...model.fields.values()].flatMap(({ reference }) => {
          const isIt = this.#registry.targets.get(reference?.target ?? '')?.table === table
          return reference !== undefined && isIt ? [onlyOf(this.#registry, reference)?.column] : []
        }),
      ),
    )
    return changed.some((name) => {
      const storage = fields.get(name)?.storage
      return storage?.in === 'column' && columns.has(storage.column)
    })
  }

  affects({ model, question: { by, referred, exclusive, counted }, seen }: Ahead): boolean {
    if (this.#tables.size === 0) return false
    if (
      linksOf(model).some(([, { table }]) =>
        [...(this.#linking.get(table) ?? [])].some((other) => other !== model.table),
      )
    )
      return true
    const own = this.#tables.get(model.table)
    if (own !== undefined) {
      if (counted !== undefined && own.isResized) return true
      const named = [...by, ...[...exclusive].flatMap(([name, keys]) => keys.map((key) => [name, key] as const))]
      if (named.some(([name, value]) => own.values.has(asNoted(name, value)))) return true
      const rows = [...seen.rows, ...Object.values(seen.taken).flat()]
      if (rows.some(({ pk }) => own.keys.has(pk))) return true
    }
    for (const { reference, keys } of referred.values()) {
      const refitted = this.#written(reference.target)?.refitted
      if (refitted !== undefined && keys.some((key) => refitted.has(key))) return true
    }
    return seen.rows.some((row) => this.#refersToGone(model, row))
  }

  /** Such a row has changed with the one that is gone. */
  #refersToGone(model: Model, row: Row): boolean {
    return [...model.fields.values()].some(({ name, reference }) => {
      const gone = this.#written(reference?.target ?? '')?.gone
      return gone !== undefined && gone.size > 0 && keysOf(stored(model, row, name)).some((key) => gone.has(key))
    })
  }

  #written(target: string): TableWritten | undefined {
    return this.#tables.get(this.#registry.targets.get(target)?.table ?? '')
  }
}

const asNoted = (name: string, value: unknown): string => `${name} ${String(value)}`.toLowerCase()

function note({ values }: TableWritten, name: string, value: unknown): void {
  for (const each of keysOf(value)) values.add(asNoted(name, each))
}

/** The value of a field in a row as it was read: a secret is not opened. */
function stored(model: Model, row: Row, name: string): unknown {
  const storage = model.fields.get(name)?.storage
  if (storage?.in === 'link') return row.links?.[name]
  if (storage?.in === 'column') return row[columnOf(model, name)]
  if (storage?.in === 'settings' && typeof row.settings === 'object' && row.settings !== null)
    return (row.settings as Readonly<Record<string, unknown>>)[name]
  return undefined
}
