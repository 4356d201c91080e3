import { Find, KeyOf } from '../document/document.ts'
import type { ErrorList } from '../errors.ts'
import type { Field } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { comparedName } from '../names.ts'
import { ByNames } from './by-names.ts'
import { Deferred } from './deferred.ts'
import { ListEdit } from './list-edit.ts'
import { Named } from './named.ts'
import { isSame } from './same-value.ts'
import { ForNew } from './secret-forms.ts'
import type { Step } from './step.ts'

/** An entry in messages. */
export const entryName = ({ id }: Pick<Step, 'id'>, index: number): string =>
  id === undefined ? `Entry ${index} of the document` : `Entry ${JSON.stringify(id)}`

/** The message for two values of one field. It does not show them: they may be secrets. */
export const otherValue = (entry: string): string =>
  `${entry} names the same row, and has another value for this field: leave one of the two out.`

export const alsoPresent = (entry: string): string =>
  `${entry} names the same row, and one of the two is absent: leave one of them out.`

/** A row that entries without conditions name, as far as it is known without the database. */
type Row = {
  /** The first entry with the state `absent`, and the first with another one. */
  absent?: string | undefined
  present?: string | undefined
  /** The values of its fields in the other entries. */
  readonly values: Map<string, Comparable & { readonly entry: string }>
}

/** A value that can be compared with another of the same form: names of rows are compared only with names. */
type Comparable = { readonly form: 'plain' | 'names'; readonly value: unknown }

/**
 * The rows that the entries of a document name. An entry with another value for a field than an earlier one is an error: the
 * later value would win, and each apply of the document would write both. Entries with conditions are left out: they may have
 * other values (docs/adr/0080-a-document-says-one-thing-of-a-row.md).
 */
export class RowsNamed {
  readonly #rows = new ByNames<Row>(merge)
  readonly #registry: Registry
  readonly #errors: ErrorList

  constructor(registry: Registry, errors: ErrorList) {
    this.#registry = registry
    this.#errors = errors
  }

  add(step: Step, index: number): void {
    const row = this.#rows.of(step, () => ({ values: new Map() }))
    const { state, path } = step
    const entry = entryName(step, index)
    const ofEntry = this.#errors.of('entry')
    const { absent, present } = row
    const other = state === 'absent' ? present : absent
    if (other !== undefined) ofEntry.add(path, 'invalid_combination', alsoPresent(other))
    if (state === 'must_created' && present !== undefined)
      ofEntry.add(path, 'exists', `${present} names the same row: it is there already.`)
    if (state === 'absent') row.absent ??= entry
    else {
      row.present ??= entry
      this.#compare(step, row, entry, 'identifiers')
      this.#compare(step, row, entry, 'attrs')
    }
  }

  #compare({ model, path, ...step }: Step, row: Row, entry: string, where: 'identifiers' | 'attrs'): void {
    for (const [name, sent] of step[where]) {
      // The entry changes this name.
      if (where === 'identifiers' && step.attrs.has(name)) continue
      const field = model.fields.get(name)
      const found = field && this.#comparable(field, sent)
      if (field === undefined || found === undefined) continue
      const before = row.values.get(name)
      if (before === undefined) row.values.set(name, { ...found, entry })
      else if (differ(field, before, found))
        this.#errors.of(where).add([...path, name], 'invalid_combination', otherValue(before.entry))
    }
  }

  /** @returns undefined for a value that only the database can compare, and for one with errors */
  #comparable({ reference }: Field, sent: unknown): Comparable | undefined {
    const value = sent instanceof ForNew ? sent.value : sent
    if (value === undefined || value instanceof Deferred || value instanceof ListEdit) return undefined
    const items: readonly unknown[] = Array.isArray(value) ? value : [value]
    if (items.some((item) => item instanceof KeyOf || item instanceof Find || item === undefined)) return undefined
    const names = items.flatMap((item) => (item instanceof Named ? comparedName(item.name) : []))
    if (names.length === 0) return { form: 'plain', value }
    // Two names of a row that has several may be of one row.
    const models = this.#registry.targets.get(reference?.target ?? '')?.models ?? []
    if (names.length < items.length || models.some((model) => model.names.length > 1)) return undefined
    return { form: 'names', value: Array.isArray(value) ? names : names[0] }
  }
}

function differ(field: Field, one: Comparable, other: Comparable): boolean {
  if (one.form === other.form) return !isSame(field, one.value, other.value)
  return isEmpty(one) || isEmpty(other)
}

/** A value that differs from each name. */
const isEmpty = ({ value }: Comparable): boolean => value === null || (Array.isArray(value) && value.length === 0)

function merge(row: Row, other: Row): void {
  row.absent ??= other.absent
  row.present ??= other.present
  for (const [name, value] of other.values) if (!row.values.has(name)) row.values.set(name, value)
}
