import type { ErrorSink, FieldPath } from '../errors.ts'
import { isObject, type JsonObject } from '../json-object.ts'
import { unknownName } from '../messages.ts'
import type { Field } from '../models/define.ts'

/**
 * `{"add": [...], "remove": [...]}` in place of a list of references: the items that the list gets and loses. Its other items
 * stay, and the document does not name them.
 */
export class ListEdit {
  /** A list, like that of a field: of references first, then of keys. Undefined when it has errors. */
  readonly add: unknown
  readonly remove: unknown
  constructor(add: unknown, remove: unknown) {
    this.add = add
    this.remove = remove
  }
}

const words = ['add', 'remove'] as const

/** The items of a field in a document: for an edit, those that it adds and then those that it removes. */
export const itemsOf = (value: unknown): unknown[] => {
  const items: readonly unknown[] = value instanceof ListEdit ? words.map((word) => value[word]) : [value]
  return items.flat()
}

/** Whether a value is an edit: a plain object, and no tag, in place of a list of references. */
export const isEdit = ({ reference }: Field, sent: unknown): sent is JsonObject =>
  reference?.many === true && isObject(sent) && Object.getPrototypeOf(sent) === Object.prototype

/** @param check checks one of the lists, at its path */
export function editOf(
  sent: JsonObject,
  at: FieldPath,
  errors: ErrorSink,
  check: (list: unknown, word: string) => unknown,
): ListEdit | undefined {
  const names = Object.keys(sent)
  if (names.length === 0) return void errors.add(at, 'required', 'Takes a list, or an object with add, remove or both.')
  for (const name of names)
    if (!words.some((word) => word === name))
      errors.add([...at, name], 'unknown_field', () => unknownName('field', name, words))
  const [add, remove] = words.map((word) => (Object.hasOwn(sent, word) ? check(sent[word], word) : []))
  return new ListEdit(add, remove)
}

/** Refuses keys that stand in both lists. */
export function refuseBoth({ add, remove }: ListEdit, at: FieldPath, errors: ErrorSink): void {
  const removed = new Set([remove].flat())
  for (const { key, at: item } of placesOf(add, []))
    if (key !== undefined && removed.has(key))
      errors.add([...at, 'add', ...item], 'invalid_combination', 'Stands in remove, too: leave one of the two out.')
}

type Item = { readonly key: unknown; readonly tag: unknown; readonly at: FieldPath }

/** The keys in a field, each with the sent value and its place in the field. */
export function placesOf(value: unknown, written: unknown): Item[] {
  if (value instanceof ListEdit)
    return words.flatMap((word) => {
      const items = placesOf(value[word], written instanceof ListEdit ? written[word] : [])
      return items.map((item) => ({ ...item, at: [word, ...item.at] }))
    })
  if (!Array.isArray(value)) return [{ key: value, tag: written, at: [] }]
  const tags: readonly unknown[] = Array.isArray(written) ? written : []
  return value.map((key, index) => ({ key, tag: tags[index], at: [index] }))
}
