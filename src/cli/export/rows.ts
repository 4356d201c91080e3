import { sha256 } from '../../ids.ts'
import type { Field, Model, Values } from '../../models/define.ts'
import { uuid } from '../../models/fields.ts'
import type { Registry } from '../../models/registry.ts'
import { shown } from '../output.ts'

/** The rows that were read, by key and by name. */

/** The lists, by reference target, in the order in which their rows are printed. */
export const lists = {
  flow: '/flows/instances/',
  propertymapping: '/propertymappings/all/',
  certificatekeypair: '/crypto/certificatekeypairs/',
  role: '/rbac/roles/',
  group: '/core/groups/',
  trustedissuer: '/rbac/trustedissuers/',
  provider: '/providers/all/',
  application: '/core/applications/',
} as const

export type Target = keyof typeof lists

export const targets = Object.keys(lists) as readonly Target[]

/** The list that has the rows to which a field refers; undefined for other fields, and for rows that are not exported. */
export const targetOf = (registry: Registry, { reference }: Pick<Field, 'reference'>): Target | undefined => {
  // A target may be a part of the rows of another: then all of its models are models of the other too.
  const [model] = registry.targets.get(reference?.target ?? '')?.models ?? []
  return targets.find((each) => each === model?.target)
}

/** The error of rows that changed while they were read, so that the parts do not fit. */
export class Changed extends Error {
  override readonly name = 'Changed'
}

export type Row = {
  readonly pk: string | number
  readonly model: Model
  /** The values, in the form that a PUT takes. */
  readonly values: Values
  /** The label under which it is managed. */
  readonly owner: string | null
  /** Whether its secrets never left the service: each installation generates its own. */
  readonly isGenerated: boolean
  /** The fields with secrets that the service has. */
  readonly secrets: readonly Field[]
}

export type Reference = { readonly field: Field; readonly target: Target; readonly pk: unknown }

export class Rows {
  readonly all: Row[] = []
  readonly registry: Registry
  readonly #byKey = new Map<string, Row>()
  /** The number of rows of a table with a name, and with some identifiers. */
  readonly #counts = new Map<string, number>()

  constructor(registry: Registry) {
    this.registry = registry
  }

  /** Adds a row, unless it is there. */
  add(model: Model, { pk, ...values }: Result): void {
    const key = `${model.table} ${pk}`
    if (this.#byKey.has(key)) return
    const { owner } = values
    const isGenerated = model.isGenerated?.(values) === true
    const row: Row = {
      pk,
      model,
      isGenerated,
      owner: typeof owner === 'string' ? owner : null,
      values,
      secrets: isGenerated
        ? []
        : [...model.fields.values()].filter(({ name, secret }) => secret && (values[name] ?? null) !== null),
    }
    this.all.push(row)
    this.#byKey.set(key, row)
    const names = new Set(namesOf(row)).values().map((name) => `${model.table} ${name}`)
    for (const each of [...names, ...model.identifiers.map((set) => identityOf(row, set))])
      this.#counts.set(each, (this.#counts.get(each) ?? 0) + 1)
  }

  /** The keys in a row of what is exported, in the order of its fields. */
  references(row: Row): Reference[] {
    if (row.isGenerated) return []
    return [...row.model.fields.values()].flatMap((field) => {
      const target = targetOf(this.registry, field)
      const keys = target === undefined ? [] : [row.values[field.name]].flat()
      return keys.flatMap((pk) => (target === undefined || (pk ?? null) === null ? [] : [{ field, target, pk }]))
    })
  }

  /** The row of a reference, where it was read. */
  get({ field: { reference }, pk }: Omit<Reference, 'target'>): Row | undefined {
    return this.#byKey.get(`${this.registry.targets.get(reference?.target ?? '')?.table} ${pk}`)
  }

  /** The row of a reference in another row. @throws {Changed} when it was not read */
  find(row: Row, reference: Omit<Reference, 'target'>): Row {
    const found = this.get(reference)
    if (found === undefined) throw new Changed(`${shown(labelOf(row))} has a ${reference.field.name} that was not read`)
    return found
  }

  /** The rows to which a row refers. @throws {Changed} */
  referred(row: Row): Row[] {
    return this.references(row).map((each) => this.find(row, each))
  }

  /** The name by which a document refers to the row; undefined when the text has another meaning, or another row has it too. */
  nameOf(row: Row): string | undefined {
    const [name] = namesOf(row)
    if (name === undefined || name !== name.normalize('NFC').trim()) return undefined
    // A text in the form of a key is read as a key.
    if (row.model.key === 'uuid' && uuid().safeParse(name).success) return undefined
    return this.#counts.get(`${row.model.table} ${name}`) === 1 ? name : undefined
  }

  /** Whether the row is the only one with its identifiers. */
  isDistinct(row: Row): boolean {
    return this.#counts.get(identityOf(row, identifiersOf(row))) === 1
  }
}

/** A row of a list. */
export type Result = { readonly pk: string | number } & Readonly<Record<string, unknown>>

const identityOf = ({ model, values }: Row, set: readonly string[]): string =>
  JSON.stringify([model.table, set.map((field) => [field, values[field]])])

/** The names of a row. The first is searched first. */
const namesOf = ({ model, values }: Row): string[] =>
  model.names.map((field) => values[field]).filter((name) => typeof name === 'string')

/** The fields that find the row: the shortest set of which it has all. */
export function identifiersOf({ model, values }: Row): readonly string[] {
  const sets = model.identifiers.filter((set) => set.every((field) => (values[field] ?? null) !== null))
  const [shortest = []] = sets.toSorted((one, other) => one.length - other.length)
  return shortest
}

/** The values by which the row differs from others of its model, in any installation. */
export const naturalKey = (row: Row): Readonly<Record<string, unknown>> =>
  Object.fromEntries(identifiersOf(row).map((field) => [field, row.values[field]]))

/** A text that no other row has, in any installation. */
export const digestOf = (row: Row): string =>
  sha256(JSON.stringify([row.model.name, naturalKey(row)]))
    .toString('hex')
    .slice(0, 16)

/** `provider oauth2 "Grafana"` */
export const labelOf = (row: Row): string =>
  `${row.model.displayName} ${JSON.stringify(row.values[row.model.identifiers[0]?.[0] ?? 'pk'])}`

/** Compares by code units, so that the order is the same on every machine and in every database. */
export const byText = (one: string, other: string): number => (one < other ? -1 : Number(one > other))
