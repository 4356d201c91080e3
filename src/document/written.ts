import { isObject, type JsonObject } from '../json-object.ts'
import { documentLimits } from './document.ts'
import { evaluateNow, isTrue } from './evaluate.ts'
import { measure } from './measure.ts'
import { type CallerSide, scopeOf } from './scope.ts'
import { isTag, TagError } from './tags.ts'

/** Changes a document as it is written to one with the form of a blueprint: evaluates tags, and replaces other forms by ours. */

/** @throws {TagError} for a tag without a value, and for a document that is too large when it is written out */
export function evaluateDocument(written: unknown, caller: CallerSide): unknown {
  const { context, document } = withoutContext(written)
  const scope = scopeOf(document, context, caller, documentLimits)
  if (scope.tagged.size === 0 && !isTag(document)) return document
  const evaluated = evaluateNow(document, scope)
  measure(evaluated)
  return evaluated
}

/** The context of a blueprint is for its tags alone: it may hold secrets, and is not kept. */
export function withoutContext(written: unknown) {
  if (!isObject(written) || isTag(written) || !('entries' in written)) return { context: {}, document: written }
  const { context = {}, ...document } = written
  if (context !== null && (!isObject(context) || isTag(context)))
    throw new TagError(undefined, 'context: Must be an object')
  return { context: context ?? {}, document }
}

/** Evaluates a document that was checked when it was sent. */
export const evaluateStored = (written: unknown): unknown => evaluateNow(written, scopeOf(written))

/** Puts entries into one list, and removes empty members. */
export function normalise(value: unknown): unknown {
  if (!isObject(value) || isTag(value)) return value
  const { context, metadata, ...document } = value
  const entries = isObject(value.entries) ? inOneList(value.entries) : value.entries
  return {
    ...document,
    ...withoutEmpty({ metadata, context }),
    entries: Array.isArray(entries) ? entries.map(normaliseEntry) : entries,
  }
}

const withoutEmpty = (members: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(members).filter(([, each]) => each !== undefined && each !== null))

/** Joins a mapping of lists of entries: its names are for the reader. */
export function inOneList(sections: Readonly<Record<string, unknown>>): unknown {
  const lists = Object.values(sections)
  return lists.every((list) => Array.isArray(list)) ? lists.flat(1) : sections
}

function normaliseEntry(entry: unknown): unknown {
  if (!isObject(entry) || isTag(entry)) return entry
  const { attrs, conditions, id, ...rest } = entry
  const kept = Array.isArray(conditions) ? conditionsOf(conditions) : conditions
  return { ...rest, ...withoutEmpty({ id, attrs, conditions: kept }) }
}

/**
 * The conditions that are kept. One that is false is enough. True ones are kept as one `true`: the entry is still a conditional
 * one, which may have other values for a row than another entry. Values are not kept: they may be secrets.
 */
function conditionsOf(conditions: readonly unknown[]): readonly unknown[] | undefined {
  if (conditions.length === 0) return undefined
  if (conditions.some((each) => !isTag(each) && !isTrue(each))) return [false]
  const open = conditions.filter(isTag)
  return open.length === 0 ? [true] : open
}
