/**
 * A blueprint: entries, applied in document order in one transaction. This is the document as values; `yaml.ts` prints
 * and parses it, `compile.ts` checks it against the models.
 */

/** `!KeyOf id`: the key of an earlier entry of the same document. */
export class KeyOf {
  readonly id: string
  constructor(id: string) {
    this.id = id
  }
}

/** `!Find [model, {member: value}]`: the key of the one row that these members name. */
export class Find {
  readonly model: string
  readonly identifiers: Readonly<Record<string, unknown>>
  constructor(model: string, identifiers: Readonly<Record<string, unknown>>) {
    this.model = model
    this.identifiers = identifiers
  }
}

/**
 * `present`: create, or update what is listed. `created`: create once, leave alone afterwards.
 * `must_created`: refuse when it is there. `absent`: delete.
 */
export const entryStates = ['present', 'created', 'must_created', 'absent'] as const
export type EntryState = (typeof entryStates)[number]

export type Entry = {
  readonly model: string
  /** What `!KeyOf` of later entries calls it. */
  readonly id?: string
  readonly state: EntryState
  /** Members that find the row. */
  readonly identifiers: Readonly<Record<string, unknown>>
  /** The other members, as they shall be; what is not listed stays as it is. */
  readonly attrs: Readonly<Record<string, unknown>>
}

export type Blueprint = {
  readonly version: 1
  readonly metadata: { readonly name: string }
  readonly entries: readonly Entry[]
}

/** Bounds of a document that reaches the server. Bytes of UTF-8; nodes are scalars, lists and mappings. */
export const documentLimits = { bytes: 4_194_304, nodes: 100_000, depth: 40, entries: 1_000 } as const
