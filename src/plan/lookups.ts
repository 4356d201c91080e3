import { Find, KeyOf } from '../document/document.ts'
import { Expression } from '../document/tags.ts'
import type { ErrorSink, FieldPath } from '../errors.ts'
import type { Registry } from '../models/registry.ts'

/** The entries and models that `!KeyOf` and `!Find` of a document name. */

export const skippedEntry = Symbol('skipped')

/** Reference targets by entry id; null for an entry that leaves no row. */
export type Targets = Map<string, string | null | typeof skippedEntry>

type Checking = { readonly registry: Registry; readonly targets: Targets; readonly errors: ErrorSink }

/** All `!KeyOf` and `!Find` in a value. */
export function lookupsIn(value: unknown): (KeyOf | Find)[] {
  if (value instanceof KeyOf) return [value]
  if (value instanceof Find) return [value, ...lookupsIn(value.identifiers)]
  if (value instanceof Expression) return lookupsIn(value.content)
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(lookupsIn) : []
}

/** The most different `!Find` of a document. Each is a search of its own in the database. */
export const maxFinds = 1_000

/** All `!Find` in a value, as texts: those that read the same row by the same fields are equal. */
export const findsIn = (value: unknown): string[] =>
  lookupsIn(value).flatMap((tag) =>
    tag instanceof Find ? [JSON.stringify([tag.model, Object.entries(tag.identifiers).sort()])] : [],
  )

/**
 * Checks every `!KeyOf` and `!Find` in a value.
 *
 * @param asks whether only the existence of the row counts: an entry that is skipped has none
 */
export function checkLookups(value: unknown, at: FieldPath, context: Checking, asks = false): boolean {
  const isSkipped = (tag: KeyOf | Find) => tag instanceof KeyOf && context.targets.get(tag.id) === skippedEntry
  return lookupsIn(value)
    .map((tag) => (asks && isSkipped(tag)) || checkLookup(tag, at, context) !== undefined)
    .every(Boolean)
}

/** @returns the reference target of the row that the tag finds; undefined for a tag with errors, which are added */
export function checkLookup(
  tag: KeyOf | Find,
  at: FieldPath,
  { registry, targets, errors }: Checking,
): string | undefined {
  const found = tag instanceof KeyOf ? targets.get(tag.id) : registry.byName(tag.model)?.target
  const name = tag instanceof KeyOf ? `!KeyOf ${tag.id}` : `!Find ${tag.model}`
  if (found === undefined) errors.add(at, 'unknown_entry', `${name} names nothing that stands before this entry.`)
  else if (found === null) errors.add(at, 'unknown_entry', `${name} names an entry that is absent: it has no key.`)
  else if (found === skippedEntry)
    errors.add(at, 'unknown_entry', `${name} names an entry that is skipped: it has no key.`)
  else return found
  return undefined
}
