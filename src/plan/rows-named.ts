import { Find, KeyOf } from '../document/document.ts'
import type { ErrorList, ErrorSink } from '../errors.ts'
import type { Field } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { comparedName } from '../names.ts'
import { Deferred } from './deferred.ts'
import type { Effect } from './effect.ts'
import { type Conditions, ownerFor } from './engine.ts'
import { itemsOf, ListEdit } from './list-edit.ts'
import { Named } from './named.ts'
import { isSame } from './same-value.ts'
import { ForNew } from './secret-forms.ts'
import type { Key } from './statements.ts'
import { type Step, waysToFind } from './step.ts'
import { keysOf } from './storage.ts'

const entryName = ({ id }: Pick<Step, 'id'>, index: number): string =>
  id === undefined ? `Entry ${index} of the document` : `Entry ${JSON.stringify(id)}`

/** The message for two values of one field. It does not show them: they may be secrets. */
const otherValue = (entry: string): string =>
  `${entry} names the same row, and has another value for this field: leave one of the two out.`

const alsoPresent = (entry: string): string =>
  `${entry} names the same row, and one of the two is absent: leave one of them out.`

function otherOwner(entry: string, owner: string | null): string {
  const whose = owner === null ? 'without an owner' : `for the owner ${JSON.stringify(owner)}`
  return `${entry} names the same row ${whose}: a row has one owner.`
}

/** One row in the entries of a document. What is said of it is said by entries without conditions. */
type Facts = {
  /** The first entry with the state `absent`, and the first with another one. */
  absent?: string | undefined
  present?: string | undefined
  /** The label under which the latter manages the row. */
  owner?: string | null
  /** The values of its fields, each with the first entry that has one. */
  readonly values: Map<string, Comparable & { readonly entry: string }>
  /** Whether an item of an edited list shall be there. */
  readonly items: Map<string, Map<unknown, { readonly isThere: boolean; readonly entry: string }>>
  /** All fields that entries name, those with conditions too. */
  readonly named: Set<string>
}

const newRow = (): Facts => ({ values: new Map(), items: new Map(), named: new Set() })

/** A value that can be compared with another of the same form: names of rows are compared only with names. */
type Comparable = { readonly form: 'plain' | 'names'; readonly value: unknown }

/**
 * The rows that the entries of a document name. An entry with another value for a field than an earlier one is an error: the
 * later value would win, and each apply of the document would write both. Entries with conditions are left out: they may have
 * other values (docs/adr/0080-a-document-says-one-thing-of-a-row.md).
 *
 * The compiler finds rows by their names, and compares plain values. The judge knows the keys, so that a row with two names is
 * found, and a value in two forms. Each has rows of its own.
 */
export class RowsNamed {
  readonly #byNames = byNames(newRow)
  readonly #byKey = new Map<string, Facts>()

  /** Compares an entry without conditions, as far as it is known without the database. */
  addStep(step: Step, index: number, registry: Registry, errors: ErrorList): void {
    const row = this.#byNames(step)
    const { state, path, model } = step
    const entry = entryName(step, index)
    const { absent, present } = row
    const other = state === 'absent' ? present : absent
    if (other !== undefined) errors.of('entry').add(path, 'invalid_combination', alsoPresent(other))
    if (state === 'must_created' && present !== undefined)
      errors.of('entry').add(path, 'exists', `${present} names the same row: it is there already.`)
    if (state === 'absent') row.absent ??= entry
    else row.present ??= entry
    if (state === 'absent') return
    for (const where of ['identifiers', 'attrs'] as const)
      for (const [name, sent] of step[where]) {
        const field = model.fields.get(name)
        // The entry changes this name.
        const isChanged = where === 'identifiers' && step.attrs.has(name)
        const value = field === undefined || isChanged ? undefined : comparable(registry, field, sent)
        if (field !== undefined && value !== undefined) say(row, field, value, entry, path, errors.of(where))
      }
  }

  /** Compares an entry whose row has this key. */
  addEffect({ step, sent, errors }: Effect, key: Key, index: number, request: Pick<Conditions, 'owner'>): void {
    const row = this.#rowOf(step, key)
    const { state, path, model } = step
    const isSaid = step.conditions === undefined
    const entry = entryName(step, index)
    const owner = ownerFor(step, request)
    const { present } = row
    if (isSaid && present !== undefined) {
      // Each apply would give the row to one owner, and then to the other.
      if (state !== 'absent' && model.isLabelled === true && row.owner !== owner)
        errors.of('entry').add([...path, 'owner'], 'invalid_combination', otherOwner(present, row.owner ?? null))
      if (state === 'absent') errors.add(path, 'invalid_combination', alsoPresent(present))
    }
    if (state === 'absent') return
    if (isSaid && present === undefined) Object.assign(row, { present: entry, owner })
    for (const [name, value] of sent) {
      if (step.reset?.has(name)) continue
      row.named.add(name)
      const field = model.fields.get(name)
      const edit = step.edits?.get(name)
      if (isSaid && field !== undefined && (edit !== undefined || isKnown(value)))
        say(row, field, edit ?? { form: 'plain', value }, entry, path, errors)
    }
  }

  /** Fields that an entry would only reset, and that an earlier entry names, by another name of the row. */
  namedBefore({ step, row }: Effect): readonly string[] {
    if (step.reset === undefined || row === undefined) return []
    return [...step.reset.intersection(this.#rowOf(step, row.pk).named)]
  }

  #rowOf = ({ model: { table } }: Step, key: Key): Facts => this.#byKey.getOrInsertComputed(`${table} ${key}`, newRow)
}

/** Keeps what an entry says of a field, and adds an error where an earlier entry says otherwise. */
function say(
  row: Facts,
  field: Field,
  said: Comparable | ListEdit,
  entry: string,
  path: Step['path'],
  errors: ErrorSink,
): void {
  const other = said instanceof ListEdit ? otherEditor(row, field, said) : otherEntry(row, field, said)
  if (other !== undefined) errors.add([...path, field.name], 'invalid_combination', otherValue(other))
  if (!(said instanceof ListEdit)) row.values.getOrInsert(field.name, { ...said, entry })
  else
    for (const [item, isThere] of itemsSaid(said))
      row.items.getOrInsertComputed(field.name, () => new Map()).getOrInsert(item, { isThere, entry })
}

/** The entry with another value of a field. */
function otherEntry({ values, items }: Facts, field: Field, said: Comparable): string | undefined {
  const before = values.get(field.name)
  if (before !== undefined && differ(field, before, said)) return before.entry
  const has = new Set(itemsOf(said.value))
  return [...(items.get(field.name) ?? [])].find(([item, { isThere }]) => has.has(item) !== isThere)?.[1].entry
}

/** The entry that adds an item which this one removes, or removes one which this one adds. */
function otherEditor({ values, items }: Facts, { name }: Field, edit: ListEdit): string | undefined {
  const list = values.get(name)
  const has = new Set(itemsOf(list?.value))
  const others = itemsSaid(edit).map(([item, isThere]) => {
    const earlier = items.get(name)?.get(item)
    if (list !== undefined && has.has(item) !== isThere) return list.entry
    return earlier !== undefined && earlier.isThere !== isThere ? earlier.entry : undefined
  })
  return others.find((entry) => entry !== undefined)
}

const itemsSaid = ({ add, remove }: ListEdit): [item: unknown, isThere: boolean][] => [
  ...keysOf(add).map((item): [unknown, boolean] => [item, true]),
  ...keysOf(remove).map((item): [unknown, boolean] => [item, false]),
]

/** @returns undefined for a value that only the database can compare, and for one with errors */
function comparable({ targets }: Registry, { reference }: Field, sent: unknown): Comparable | undefined {
  const value = sent instanceof ForNew ? sent.value : sent
  if (value === undefined || value instanceof Deferred || value instanceof ListEdit) return undefined
  const items: readonly unknown[] = Array.isArray(value) ? value : [value]
  if (items.some((item) => item instanceof KeyOf || item instanceof Find || item === undefined)) return undefined
  const names = items.flatMap((item) => (item instanceof Named ? comparedName(item.name) : []))
  if (names.length === 0) return { form: 'plain', value }
  // Two names of a row that has several may be of one row.
  const models = targets.get(reference?.target ?? '')?.models ?? []
  if (names.length < items.length || models.some((model) => model.names.length > 1)) return undefined
  return { form: 'names', value: Array.isArray(value) ? names : names[0] }
}

function differ(field: Field, one: Comparable, other: Comparable): boolean {
  if (one.form === other.form) return !isSame(field, one.value, other.value)
  return isEmpty(one) || isEmpty(other)
}

/** A value that differs from each name. */
const isEmpty = ({ value }: Comparable): boolean => value === null || (Array.isArray(value) && value.length === 0)

/** Whether a value has no errors. */
const isKnown = (value: unknown): boolean =>
  Array.isArray(value) ? value.every(isKnown) : value !== undefined && typeof value !== 'symbol'

/** All names by which an entry names its row, also the one before a rename, but none that only the database knows. */
function namesOf({ model, identifiers, was }: Step): string[] {
  const [first = ''] = identifiers.keys()
  const ways = waysToFind(model, [...identifiers.keys()]).map((way) => way.map((name) => [name, identifiers.get(name)]))
  if (was !== undefined) ways.push([[first, was]])
  return ways
    .filter((way) => way.every(([, value]) => value !== undefined && !(value instanceof Deferred)))
    .map((way) => JSON.stringify([model.name, way]))
}

/**
 * Finds the facts about the row of an entry, by the names under which the entries before name it, without the database. Two names
 * of a row are one where an entry has both; that others are, only the judge knows.
 *
 * @param make makes the facts of a row that no entry has named yet
 */
export function byNames<Each>(make: () => Each): (step: Step) => Each {
  const rows = new Map<string, Each>()
  return (step) => {
    const names = namesOf(step)
    const row = names.flatMap((name) => rows.get(name) ?? []).at(0) ?? make()
    for (const name of names) rows.set(name, row)
    return row
  }
}
