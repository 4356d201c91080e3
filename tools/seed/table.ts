import type { Keyring } from '../../src/db/seal.ts'
import type { Registry } from '../../src/models/registry.ts'

/** A new row, by column. A column that all rows leave to its default is in none of them. */
export type Row = Readonly<Record<string, unknown>>

/** The rows of one table. They are made from numbered items, users for example, each independent of the others. */
export type Table = {
  readonly name: string
  readonly columns: readonly string[]
  readonly items: number
  rows(item: number): readonly Row[]
}

/** Primary keys from the database, by number. */
export type Keys = { readonly users: readonly number[]; readonly providers: readonly number[] }

export type Engine = { readonly registry: Registry; readonly keyring: Keyring }
