import { Find, KeyOf } from '../document/document.ts'
import { Expression } from '../document/tags.ts'
import type { ErrorSink, FieldPath } from '../errors.ts'
import type { Registry } from '../models/registry.ts'

/** The entries and models that `!KeyOf` and `!Find` of a document name. */

export const skippedEntry = Symbol('skipped')
/** Stands for an entry whose circle was reported, until its turn. */
export const inCircle = Symbol('circle')

/** Reference targets by entry id; null for an entry that leaves no row. */
export type Targets = Map<string, string | null | typeof skippedEntry | typeof inCircle>

type Checking = { readonly registry: Registry; readonly targets: Targets; readonly errors: ErrorSink }

/**
 * The `!KeyOf` and `!Find` in a value.
 *
 * @param which `needed` leaves out each `!Find` that only asks whether there is a row, `keys` all
 */
export function lookupsIn(
  value: unknown,
  which: 'all' | 'needed' | 'keys' = 'all',
  found: (KeyOf | Find)[] = [],
): (KeyOf | Find)[] {
  if (typeof value !== 'object' || value === null) return found
  if (value instanceof KeyOf) found.push(value)
  else if (value instanceof Find) {
    if (which !== 'keys') found.push(value)
    lookupsIn(value.identifiers, which, found)
  } else if (value instanceof Expression) {
    const { name, content } = value
    const asks = (index: number) => name === '!Condition' || (name === '!If' && index === 0)
    for (const [index, each] of typeof content === 'string' ? [] : content.entries())
      lookupsIn(each, which === 'needed' && asks(index) ? 'keys' : which, found)
  } else for (const each of Object.values(value)) lookupsIn(each, which, found)
  return found
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
  const what = tag instanceof KeyOf ? 'other entry of this document' : 'model'
  if (found === undefined) errors.add(at, 'unknown_entry', `${name} names no ${what}.`)
  else if (found === null) errors.add(at, 'unknown_entry', `${name} names an entry that is absent: it has no key.`)
  else if (found === skippedEntry)
    errors.add(at, 'unknown_entry', `${name} names an entry that is skipped: it has no key.`)
  else if (found !== inCircle) return found
  return undefined
}
