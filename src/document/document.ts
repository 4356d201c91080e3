import { sha256 } from '../ids.ts'
import { isObject, type JsonObject } from '../json-object.ts'
import { comparedName } from '../names.ts'

/**
 * A blueprint: entries that are applied in one transaction, in the order of `plan/order.ts`. `yaml.ts` prints and parses it,
 * `compile.ts` checks it against the models.
 */

/** `!KeyOf id`: the key of another entry of the same document. */
export class KeyOf {
  readonly id: string
  constructor(id: string) {
    this.id = id
  }
}

/** `!Find [model, {field: value}]`: the key of the one row that these fields name. */
export class Find {
  readonly model: string
  readonly identifiers: Readonly<Record<string, unknown>>
  constructor(model: string, identifiers: Readonly<Record<string, unknown>>) {
    this.model = model
    this.identifiers = identifiers
  }
}

/**
 * `present`: create, or update the listed fields. `created`: create once, leave alone afterwards. `must_created`: create, refuse
 * when it exists. `absent`: delete.
 */
export const entryStates = ['present', 'created', 'must_created', 'absent'] as const
export type EntryState = (typeof entryStates)[number]

export type Entry = {
  readonly model: string
  /** The name of the entry in `!KeyOf` of other entries. */
  readonly id?: string
  readonly state: EntryState
  /** The name that the row had before, in the place of its identifier. */
  readonly was?: string
  /** The label under which its row is managed; absent: that of the document; null: none. */
  readonly owner?: string | null
  /** Whether its row stays without its stack, once it leaves the files. */
  readonly retain?: boolean
  /** Fields that find the row. */
  readonly identifiers: Readonly<Record<string, unknown>>
  /** The new values of other fields; a field that is not listed is kept. */
  readonly attrs: Readonly<Record<string, unknown>>
  /** The entry is skipped unless all of these are true: `false`, or tags that only the database can answer. */
  readonly conditions?: readonly unknown[]
}

export type Prune = boolean | readonly string[]

/**
 * The stack of a document with `prune`: its owners and its title.
 *
 * @param owner that of the request
 * @returns a name that may be compared: of a long one, the beginning and a digest
 */
export function stackOf({ prune = false, metadata }: Partial<Blueprint>, owner: string | null): string | null {
  const owners = typeof prune === 'object' ? prune : prune && owner !== null ? [owner] : []
  if (owners.length === 0) return null
  const name = comparedName(`${[...new Set(owners)].sort().join('+')}/${metadata?.name ?? ''}`)
  return name.length <= longestStack
    ? name
    : `${name.slice(0, longestStack - 17)}~${sha256(name).toString('hex').slice(0, 16)}`
}

const longestStack = 100

/** Whether a value is written as a blueprint, and not as a submission. */
export const isBlueprint = (value: unknown): value is JsonObject =>
  isObject(value) && ('entries' in value || 'metadata' in value)

export type Blueprint = {
  readonly version: 1
  /** `labels` are kept for other programs. */
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string | number | boolean>> }
  /** The label under which its objects are managed, for entries without one of their own. */
  readonly owner?: string
  /** The document is a stack by itself, of its owner or of these owners (`stackOf`). */
  readonly prune?: Prune
  readonly entries: readonly Entry[]
}

/** The owners that entries name beside the owner of the document: labels, and null for entries under none. */
export const ownersIn = ({ entries }: Pick<Blueprint, 'entries'>): (string | null)[] =>
  [...new Set(entries.flatMap(({ owner }) => (owner === undefined ? [] : [owner])))].sort()

/**
 * Limits of a document. Bytes are of UTF-8; nodes are scalars, lists and mappings, where an item of a block list may count twice;
 * breaks are ends of lines and backslashes, each of which costs the parser memory.
 */
export const documentLimits = {
  bytes: 8_388_608,
  nodes: 600_000,
  depth: 40,
  entries: 10_000,
  breaks: 600_000,
  /** Nodes that tags and aliases may add to the text. */
  expanded: 75_000,
} as const
