import type { Field } from '../models/define.ts'
import type { Step } from '../plan/compile.ts'
import type { Effect } from '../plan/effect.ts'
import type { Conditions } from '../plan/engine.ts'
import { itemsOf, type ListEdit } from '../plan/list-edit.ts'
import { ownerFor } from '../plan/owners.ts'
import type { Key } from '../plan/row-set.ts'
import { alsoPresent, entryName, otherValue } from '../plan/rows-named.ts'
import { isSame } from '../plan/same-value.ts'
import { keysOf } from '../plan/storage.ts'

/** One row in the entries of a document: its owner, and the values of its fields, each with the entry that has it. */
type Row = {
  /** The first entry without conditions. */
  entry?: string | undefined
  /** The label under which that entry manages the row. */
  owner?: string | null
  readonly values: Map<string, { readonly value: unknown; readonly entry: string }>
  /** Whether an item of an edited list shall be there. */
  readonly items: Map<string, Map<unknown, { readonly isThere: boolean; readonly entry: string }>>
  /** All fields that they name, those with conditions too. */
  readonly named: Set<string>
}

/**
 * The rows of the entries so far. `plan/rows-named.ts` compares them by their names and plain values; here the keys are known, so
 * that a row with two names is found, and a value in two forms.
 */
export class Said {
  readonly #request: Pick<Conditions, 'owner'>
  readonly #rows = new Map<string, Row>()

  constructor(request: Pick<Conditions, 'owner'>) {
    this.#request = request
  }

  /** Adds an error for each field that has another value in an earlier entry, and for another owner. */
  check({ step, row, sent, isForeign, errors }: Effect): void {
    const { model, path, state } = step
    const earlier = isForeign || step.conditions !== undefined ? undefined : this.#earlier(step, row?.pk)
    if (earlier?.entry === undefined) return
    // Each apply would give the row to one owner, and then to the other.
    if (state !== 'absent' && model.isLabelled === true && earlier.owner !== ownerFor(step, this.#request))
      errors
        .of('entry')
        .add([...path, 'owner'], 'invalid_combination', otherOwner(earlier.entry, earlier.owner ?? null))
    if (state === 'absent') errors.add(path, 'invalid_combination', alsoPresent(earlier.entry))
    else
      for (const [name, value] of sent) {
        const field = model.fields.get(name)
        if (field === undefined || step.reset?.has(name)) continue
        const edit = step.edits?.get(name)
        const other = edit === undefined ? otherEntry(earlier, field, value) : otherEditor(earlier, name, edit)
        if (other !== undefined) errors.add([...path, name], 'invalid_combination', otherValue(other))
      }
  }

  /** Keeps the owner and the values of an entry. @param key the key of the row */
  keep({ step, sent, isForeign }: Effect, key: Key, index: number): void {
    if (isForeign || step.state === 'absent') return
    const entry = entryName(step, index)
    const row = this.#rows.getOrInsertComputed(
      placeOf(step, key),
      (): Row => ({ values: new Map(), items: new Map(), named: new Set() }),
    )
    const isSaid = step.conditions === undefined
    if (isSaid && row.entry === undefined) Object.assign(row, { entry, owner: ownerFor(step, this.#request) })
    for (const [name, value] of sent) {
      if (step.reset?.has(name)) continue
      row.named.add(name)
      const edit = step.edits?.get(name)
      if (isSaid && edit !== undefined) keepItems(row, name, edit, entry)
      else if (isSaid && !row.values.has(name) && isKnown(value)) row.values.set(name, { value, entry })
    }
  }

  /** Fields that an entry would only reset, and that an earlier entry names, by another name of the row. */
  namedBefore({ step, row }: Effect): readonly string[] {
    const named = step.reset === undefined ? undefined : this.#earlier(step, row?.pk)?.named
    return named === undefined ? [] : [...(step.reset ?? [])].filter((name) => named.has(name))
  }

  #earlier(step: Step, key: Key | undefined): Row | undefined {
    return key === undefined ? undefined : this.#rows.get(placeOf(step, key))
  }
}

/** The entry with another value of a field. */
function otherEntry({ values, items }: Row, field: Field, value: unknown): string | undefined {
  if (!isKnown(value)) return undefined
  const before = values.get(field.name)
  if (before !== undefined && !isSame(field, before.value, value)) return before.entry
  const has = new Set(itemsOf(value))
  return [...(items.get(field.name) ?? [])].find(([item, { isThere }]) => has.has(item) !== isThere)?.[1].entry
}

/** The entry that adds an item which this one removes, or removes one which this one adds. */
function otherEditor({ values, items }: Row, name: string, edit: ListEdit): string | undefined {
  const list = values.get(name)
  const has = new Set(itemsOf(list?.value))
  const others = saidOf(edit).map(([item, isThere]) => {
    const earlier = items.get(name)?.get(item)
    if (list !== undefined && has.has(item) !== isThere) return list.entry
    return earlier !== undefined && earlier.isThere !== isThere ? earlier.entry : undefined
  })
  return others.find((entry) => entry !== undefined)
}

function keepItems({ items }: Row, name: string, edit: ListEdit, entry: string): void {
  const said = items.getOrInsertComputed(name, () => new Map())
  for (const [item, isThere] of saidOf(edit)) if (!said.has(item)) said.set(item, { isThere, entry })
}

const saidOf = ({ add, remove }: ListEdit): [item: unknown, isThere: boolean][] => [
  ...keysOf(add).map((item): [unknown, boolean] => [item, true]),
  ...keysOf(remove).map((item): [unknown, boolean] => [item, false]),
]

const placeOf = ({ model: { table } }: Step, key: Key): string => `${table} ${key}`

function otherOwner(entry: string, owner: string | null): string {
  const whose = owner === null ? 'without an owner' : `for the owner ${JSON.stringify(owner)}`
  return `${entry} names the same row ${whose}: a row has one owner.`
}

/** Whether a value has no errors. */
const isKnown = (value: unknown): boolean =>
  Array.isArray(value) ? value.every(isKnown) : value !== undefined && typeof value !== 'symbol'
