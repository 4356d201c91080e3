import { type Entry, type Find, KeyOf } from '../document/document.ts'
import type { Model } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { comparedName } from '../names.ts'
import { dependenciesFirst } from './dependencies-first.ts'
import { isEdit } from './list-edit.ts'
import { lookupsIn } from './lookups.ts'
import { onlyOf } from './references.ts'
import { onceFor } from './statements.ts'

/**
 * The order in which entries are judged: each after those that it refers to, by `!KeyOf`, by a name, or by `!Find` of a name.
 * Elsewhere they keep their order. That of entries of one row has a meaning, and so has the place of a `!Find` in a condition,
 * which asks what is there (docs/adr/0139-entries-have-the-order-of-their-references.md).
 */

/** An entry at its place in the document. */
export type Placed = {
  readonly entry: Entry
  readonly index: number
  readonly model: Model | undefined
  /** Whether it is skipped. */
  readonly isOut: boolean
}

/** The entries in their order, and those that refer to each other in a circle. */
type Order = { readonly order: readonly Placed[]; readonly circles: readonly (readonly Placed[])[] }

/** An entry with those that stand before it: all of the first, and one of each list of the others. */
type Node = Placed & { readonly all: Node[]; readonly any: (readonly Node[])[] }

/** The entries that name a row: those behind which it has the name, and those that delete it. `last`: the last of all. */
type Naming = { readonly makers: Node[]; readonly removers: Node[]; last: Node }

/** Takes what an entry refers to: `!` and an id, or a table and a name. `fits`: whether the row of an entry may be meant. */
type Take = (key: string, fits?: Fits) => void
type Fits = (other: Entry) => boolean

export function* inOrder(entries: readonly Placed[], registry: Registry): Generator<void, Order> {
  const named = new Map<string, Naming>()
  const nodes = entries.map((entry): Node => ({ ...entry, all: [], any: [] }))
  for (const node of nodes) {
    yield
    for (const [key, isLeft] of namesOf(node)) {
      const naming = named.getOrInsertComputed(key, () => ({ makers: [], removers: [], last: node }))
      if (naming.last !== node) node.all.push(naming.last)
      naming.last = node
      const same = node.entry.state === 'absent' && !key.startsWith('!') ? naming.removers : naming.makers
      if (isLeft && same.length < mostNaming) same.push(node)
    }
  }
  for (const node of nodes) {
    yield
    referred(node, registry, (key, fits = () => true) => {
      const { makers, removers } = named.get(key) ?? { makers: [], removers: [] }
      const meant = makers.filter((other) => other !== node && fits(other.entry))
      const always = meant.findIndex(({ entry }) => entry.conditions === undefined)
      if (meant.length > 0) node.any.push(always < 0 ? meant : meant.slice(0, always + 1))
      // What refers to a row is deleted before it.
      if (node.entry.state === 'absent') for (const other of removers) if (other !== node) other.all.push(node)
    })
  }
  const circles: (readonly Node[])[] = []
  function* before({ all, any }: Node, done: ReadonlySet<Node>) {
    yield* all
    for (const some of any) if (!some.some((each) => done.has(each))) yield* some
  }
  const order = dependenciesFirst(nodes, before, (way, to) => {
    if (circles.length < mostCircles) circles.push([...way].slice([...way].indexOf(to)))
  })
  return { order, circles }
}

/** The most entries of one name that count: more would have conditions. And the most circles that are reported. */
const mostNaming = 50
const mostCircles = 10

/** Only texts are compared: a tag may become any name. */
const keyOf = (table: string, name: unknown): string | undefined =>
  typeof name === 'string' ? `${table} ${comparedName(name)}` : undefined

/** The id of an entry, and the names of its row, each with whether it is its name behind the entry. */
function namesOf({ entry: { id, identifiers, attrs, was }, model, isOut }: Placed): [key: string, isLeft: boolean][] {
  const names: [string, boolean][] = id === undefined ? [] : [[`!${id}`, true]]
  for (const field of model === undefined || isOut ? [] : ['pk', ...model.names]) {
    const { [field]: found } = identifiers
    const { [field]: left = found } = attrs
    for (const name of found === undefined ? [left] : new Set([left, found, was])) {
      const key = keyOf(model?.table ?? '', name)
      if (key !== undefined) names.push([key, name === left])
    }
  }
  return names
}

function referred({ entry, model, isOut }: Placed, registry: Registry, take: Take) {
  if (model === undefined || isOut) return
  const { identifiers, attrs, conditions } = entry
  const takeName = (table: string, name: unknown, fits?: Fits) => {
    const key = keyOf(table, name)
    if (key !== undefined) take(key, fits)
  }
  for (const part of [identifiers, attrs]) {
    for (const { field, table, fits } of referringFields(registry)(model)) {
      const { [field.name]: value } = part
      const all = isEdit(field, value) ? [value.add, value.remove] : [value]
      for (const name of all.flat()) takeName(table, name, fits)
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
const referringFields = onceFor((registry: Registry) =>
  onceFor(({ fields }: Model) =>
    [...fields.values()].flatMap((field) => {
      const table = registry.targets.get(field.reference?.target ?? '')?.table
      const only = field.reference && onlyOf(registry, field.reference)
      const fits = only && ((other: Entry) => only.values.some((value) => mayHave(other, only.column, value)))
      return table === undefined ? [] : [{ field, table, fits }]
    }),
  ),
)

/** Whether the row of an entry may have this value: it has no other one. */
function mayHave({ identifiers, attrs }: Entry, field: string, value: unknown): boolean {
  const { [field]: there = identifiers[field] } = attrs
  return typeof there !== 'string' || typeof value !== 'string' || comparedName(there) === comparedName(value)
}
