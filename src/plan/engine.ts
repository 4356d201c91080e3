import type { Keyring } from '../db/seal.ts'
import type { Registry } from '../models/registry.ts'

/** What compiling, checking and applying a document needs, apart from the database. */
export type Engine = {
  readonly registry: Registry
  readonly keyring: Keyring
  /** The longest lifetime of a token, in days; superusers may exceed it. */
  readonly tokenMaxDays: number
}

/** Conditions of a request on what it applies. */
export type Conditions = {
  /** `If-None-Match: *`: no row that the document names may exist yet. */
  readonly createOnly: boolean
  /** The keys that rows must have, by entry id. */
  readonly expectedKeys: Readonly<Record<string, number>>
}
