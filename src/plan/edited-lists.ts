import type { ErrorSink } from '../errors.ts'
import type { Registry } from '../models/registry.ts'
import { itemsOf, ListEdit, placesOf } from './list-edit.ts'
import { listError } from './named.ts'
import { sentFor } from './secret-forms.ts'
import type { Row } from './statements.ts'
import type { Step } from './step.ts'
import { keysOf, storedKeys } from './storage.ts'

type EditedEntry = { readonly step: Step; readonly sent: ReadonlyMap<string, unknown> }

/**
 * The entry with whole lists in place of its edits: they are judged, compared and shown as lists are. Only the difference is
 * stored.
 *
 * @param row the row behind the locks of an apply; a link that may be very large has only the items that the edit names
 * @param resolved fields with keys in the place of references
 */
export function withResults(
  { targets }: Registry,
  asked: Step,
  row: Row | undefined,
  resolved: ReadonlyMap<string, unknown>,
  errors: ErrorSink,
): EditedEntry {
  const sent = sentFor(asked, row, resolved, errors)
  const edits = new Map<string, ListEdit>()
  const attrs = new Map(asked.attrs)
  for (const [name, edit] of sent) {
    const field = asked.model.fields.get(name)
    if (!(edit instanceof ListEdit) || field === undefined) continue
    const had: readonly unknown[] = row === undefined ? [] : storedKeys(field, row)
    const [there, removed] = [new Set(had), new Set(itemsOf(edit.remove))]
    const kept = had.filter((key) => !removed.has(key))
    const written = asked.attrs.get(name)
    const items = placesOf(edit.add, written instanceof ListEdit ? written.add : [])
    const added = items.filter(({ key }) => !there.has(key))
    edits.set(name, edit)
    sent.set(name, edit.remove === undefined ? undefined : [...kept, ...added.map(({ key }) => key)])
    attrs.set(name, [...kept, ...added.map(({ key, tag = key }) => tag)])
    const target = targets.get(field.reference?.target ?? '')
    // A link that may be very large has no limit on its length, like the route that adds a user to a group.
    const isWhole = field.storage.in !== 'link' || field.storage.many !== true
    const error =
      isWhole && target && added.length > 0 ? listError(field, target, kept.length + added.length) : undefined
    if (error !== undefined) errors.add([...asked.path, name], error.code, error.message)
  }
  return { step: edits.size === 0 ? asked : { ...asked, attrs, edits }, sent }
}

/** The keys that an edit names; undefined for a whole list. */
export const keysNamed = (edit: unknown): (string | number)[] | undefined =>
  edit instanceof ListEdit ? keysOf(itemsOf(edit)) : undefined
