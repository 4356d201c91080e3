import type { Model, Values } from '../../models/define.ts'
import { uuid } from '../../models/fields.ts'
import type { Registry } from '../../models/registry.ts'

/** What was read, found by key and by name. */

export type Row = {
  readonly pk: string | number
  readonly model: Model
  /** As a PUT takes them; of related rows their keys. */
  readonly values: Values
  /** The label under which it is managed. */
  readonly owner: string | null
}

export class Rows {
  readonly all: readonly Row[]
  readonly registry: Registry
  readonly #byKey: ReadonlyMap<string, Row>
  /** How many rows of a table have a name. */
  readonly #names = new Map<string, number>()
  /** How many rows of a table have these identifiers. */
  readonly #identified = new Map<string, number>()

  constructor(registry: Registry, rows: readonly Row[]) {
    this.all = rows
    this.registry = registry
    this.#byKey = new Map(rows.map((row) => [`${row.model.table} ${row.pk}`, row]))
    for (const row of rows) {
      for (const name of new Set(namesOf(row))) addTo(this.#names, `${row.model.table} ${name}`)
      for (const set of row.model.identifiers) addTo(this.#identified, identityOf(row, set))
    }
  }

  /** @param target a reference target */
  find(target: string, pk: unknown): Row | undefined {
    return this.#byKey.get(`${this.registry.targets.get(target)?.table} ${pk}`)
  }

  /** The name by which a document refers to the row; undefined when the text has another meaning, or is not its alone. */
  nameOf(row: Row): string | undefined {
    const [name] = namesOf(row)
    if (name === undefined || name !== name.normalize('NFC').trim()) return undefined
    // A text in the form of a key is read as a key.
    if (row.model.key === 'uuid' && uuid().safeParse(name).success) return undefined
    return this.#names.get(`${row.model.table} ${name}`) === 1 ? name : undefined
  }

  /** Whether the row is the only one with its identifiers. */
  isDistinct(row: Row): boolean {
    return this.#identified.get(identityOf(row, identifiersOf(row))) === 1
  }
}

const addTo = (counts: Map<string, number>, key: string): void => void counts.set(key, (counts.get(key) ?? 0) + 1)

const identityOf = ({ model, values }: Row, set: readonly string[]): string =>
  JSON.stringify([model.table, set.map((field) => [field, values[field]])])

/** The first is looked for first. */
const namesOf = ({ model, values }: Row): string[] =>
  model.names.map((field) => values[field]).filter((name) => typeof name === 'string')

/** The fields that find the row: of several sets, the shortest of which it has all. */
export function identifiersOf({ model, values }: Row): readonly string[] {
  const sets = model.identifiers.filter((set) => set.every((field) => (values[field] ?? null) !== null))
  const [shortest = []] = sets.toSorted((one, other) => one.length - other.length)
  return shortest
}

/** What tells the row from others of its model, in any installation. */
export const naturalKey = (row: Row): Readonly<Record<string, unknown>> =>
  Object.fromEntries(identifiersOf(row).map((field) => [field, row.values[field]]))

/** `provider oauth2 "Grafana"` */
export const labelOf = (row: Row): string =>
  `${row.model.displayName} ${JSON.stringify(row.values[row.model.identifiers[0]?.[0] ?? 'pk'])}`

/** By code units, so that the order is the same on every machine and in every database. */
export const byText = (one: string, other: string): number => (one < other ? -1 : Number(one > other))
