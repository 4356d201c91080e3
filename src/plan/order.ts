import { type Entry, type Find, KeyOf } from '../document/document.ts'
import type { Model } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { comparedName } from '../names.ts'
import { dependenciesFirst } from './dependencies-first.ts'
import { isEdit } from './list-edit.ts'
import { lookupsIn } from './lookups.ts'
import { onlyOf } from './references.ts'

/**
 * The order in which entries are judged: each after those that it refers to, by `!KeyOf`, by a name, or by `!Find` of a name.
 * Elsewhere they keep their order. That of entries of one row has a meaning, and so has the place of a `!Find` in a condition,
 * which asks what is there (docs/adr/0139-entries-have-the-order-of-their-references.md).
 */

/** The indexes of the entries in their order, and those of entries that refer to each other in a circle. */
type Order = { readonly order: Iterable<number>; readonly circles: readonly (readonly number[])[] }

/** The entries that name a row: those behind which it has the name, and those that delete it. `last`: the last of all. */
type Naming = { readonly makers: number[]; readonly removers: number[]; last: number }

/** Takes what an entry refers to: `!` and an id, or a table and a name. `fits`: whether the row of an entry may be meant. */
type Take = (key: string, fits?: Fits) => void
type Fits = (other: Entry) => boolean

/** @param models those of the entries; undefined for an entry that is skipped */
export function* inOrder(
  entries: readonly Entry[],
  models: readonly (Model | undefined)[],
  registry: Registry,
): Generator<void, Order> {
  if (yield* isInOrder(entries, models, registry)) return { order: entries.keys(), circles: [] }
  const named = new Map<string, Naming>()
  /** The entries that stand before each one: all of the first, and one of each list of the others. */
  const all = entries.map((): number[] => [])
  const any = entries.map((): (readonly number[])[] => [])
  for (const [index, entry] of entries.entries()) {
    yield
    for (const [key, isLeft] of namesOf(entry, models[index])) {
      const naming = named.getOrInsertComputed(key, () => ({ makers: [], removers: [], last: index }))
      if (naming.last !== index) all[index]?.push(naming.last)
      naming.last = index
      const same = entry.state === 'absent' && !key.startsWith('!') ? naming.removers : naming.makers
      if (isLeft && same.length < mostNaming) same.push(index)
    }
  }
  for (const [index, entry] of entries.entries()) {
    yield
    const others = (some: readonly number[]) => some.filter((other) => other !== index)
    referred(entry, models[index], registry, (key, fits = () => true) => {
      const naming = named.get(key)
      if (naming === undefined) return
      const makers = others(naming.makers).filter((other) => fits(entries[other] ?? entry))
      const always = makers.findIndex((other) => entries[other]?.conditions === undefined)
      if (makers.length > 0) any[index]?.push(always < 0 ? makers : makers.slice(0, always + 1))
      // What refers to a row is deleted before it.
      if (entry.state === 'absent') for (const other of others(naming.removers)) all[other]?.push(index)
    })
  }
  const circles: (readonly number[])[] = []
  function* before(index: number, done: ReadonlySet<number>) {
    yield* all[index] ?? []
    for (const some of any[index] ?? []) if (!some.some((each) => done.has(each))) yield* some
  }
  const order = dependenciesFirst(entries.keys(), before, (way, to) => {
    if (circles.length < mostCircles) circles.push([...way].slice([...way].indexOf(to)))
  })
  return { order, circles }
}

/** The most entries of one name that count: more would have conditions. And the most circles that are reported. */
const mostNaming = 50
const mostCircles = 10

/** Whether no entry refers to a later one, as far as that is seen at once. Nearly all documents are so. */
function* isInOrder(
  entries: readonly Entry[],
  models: readonly (Model | undefined)[],
  registry: Registry,
): Generator<void, boolean> {
  const named = new Set<string>()
  const missing = new Set<string>()
  for (const [index, entry] of entries.entries()) {
    yield
    let isUnclear = false
    referred(entry, models[index], registry, (key) => {
      if (!named.has(key)) missing.add(key)
      else isUnclear ||= entry.state === 'absent'
    })
    if (isUnclear) return false
    for (const [key] of namesOf(entry, models[index])) {
      // Of several entries with a name, a later one may be meant.
      if (missing.has(key) || named.has(key)) return false
      named.add(key)
    }
  }
  return true
}

/** Only texts are compared: a tag may become any name. */
const keyOf = (table: string, name: unknown): string | undefined =>
  typeof name === 'string' ? `${table} ${comparedName(name)}` : undefined

/** The id of an entry, and the names of its row, each with whether it is its name behind the entry. */
function namesOf({ id, identifiers, attrs, was }: Entry, model: Model | undefined): [key: string, isLeft: boolean][] {
  const names: [string, boolean][] = id === undefined ? [] : [[`!${id}`, true]]
  for (const field of model === undefined ? [] : ['pk', ...model.names]) {
    const { [field]: found } = identifiers
    const { [field]: left = found } = attrs
    for (const name of found === undefined ? [left] : new Set([left, found, was])) {
      const key = keyOf(model?.table ?? '', name)
      if (key !== undefined) names.push([key, name === left])
    }
  }
  return names
}

function referred({ identifiers, attrs, conditions }: Entry, model: Model | undefined, registry: Registry, take: Take) {
  if (model === undefined) return
  const takeName = (table: string, name: unknown, fits?: Fits) => {
    const key = keyOf(table, name)
    if (key !== undefined) take(key, fits)
  }
  const fields = known.getOrInsertComputed(model, () => referringFields(model, registry))
  for (const part of [identifiers, attrs]) {
    for (const { field, table, fits } of fields) {
      const { [field.name]: value } = part
      if (Array.isArray(value)) for (const name of value) takeName(table, name, fits)
      else if (isEdit(field, value)) for (const name of [value.add, value.remove].flat()) takeName(table, name, fits)
      else takeName(table, value, fits)
    }
    for (const tag of lookupsIn(part, 'needed')) {
      if (tag instanceof KeyOf) take(`!${tag.id}`)
      else for (const [table, name, fits] of namesIn(tag, registry)) takeName(table, name, fits)
    }
  }
  for (const tag of lookupsIn(conditions, 'keys')) if (tag instanceof KeyOf) take(`!${tag.id}`)
}

function namesIn({ model, identifiers }: Find, registry: Registry): [table: string, name: unknown, fits: Fits][] {
  const { table, names } = registry.byName(model) ?? { table: '', names: [] }
  const values = Object.entries(identifiers)
  const fits = (other: Entry) => values.every(([name, value]) => mayHave(other, name, value))
  return ['pk', ...names].map((field) => [table, identifiers[field], fits])
}

/** The fields that refer to rows, with the table of these. */
const referringFields = ({ fields }: Model, registry: Registry) =>
  [...fields.values()].flatMap((field) => {
    const table = registry.targets.get(field.reference?.target ?? '')?.table
    const only = field.reference && onlyOf(registry, field.reference)
    const fits = only && ((other: Entry) => only.values.some((value) => mayHave(other, only.column, value)))
    return table === undefined ? [] : [{ field, table, fits }]
  })

const known = new WeakMap<Model, ReturnType<typeof referringFields>>()

/** Whether the row of an entry may have this value: it has no other one. */
function mayHave({ identifiers, attrs }: Entry, field: string, value: unknown): boolean {
  const { [field]: there = identifiers[field] } = attrs
  return typeof there !== 'string' || typeof value !== 'string' || comparedName(there) === comparedName(value)
}
