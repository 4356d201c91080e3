import type { Keyring } from '../db/seal.ts'
import type { Registry } from '../models/index.ts'

/** A row to be, by column. What a column's default gives is left out of all rows. */
export type Row = Readonly<Record<string, unknown>>

/** The rows of one table, made piece by piece: each piece by itself, the same each time. */
export type Table = {
  readonly name: string
  readonly columns: readonly string[]
  /** How many pieces there are. */
  readonly pieces: number
  rows(piece: number): readonly Row[]
}

/** Keys that the database has given, by number. */
export type Keys = { readonly users: readonly number[]; readonly providers: readonly number[] }

export type Engine = { readonly registry: Registry; readonly keyring: Keyring }
