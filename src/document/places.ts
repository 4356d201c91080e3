import { EVENT_SCALAR } from 'js-yaml'
import type { FieldError, FieldPath, Place } from '../errors.ts'
import { isObject } from '../json-object.ts'
import type { Registry } from '../models/registry.ts'
import { masked } from './mask.ts'
import { nodesOf, placesIn } from './nodes.ts'
import { type Look, lookAt } from './visibility.ts'

/**
 * Finds the places of errors in the document that was sent. It is called once there are errors, so that a document without any
 * costs nothing. The text is parsed again: one pass over its nodes for all errors.
 */

/** @param text the text of a value that was read from YAML. A value that was sent as JSON has pointers without lines. */
export function withPlaces(
  errors: readonly FieldError[],
  {
    value,
    text,
    registry,
  }: { readonly value: unknown; readonly text: string | undefined; readonly registry: Registry },
): FieldError[] {
  const pointers = errors.map((error) => error.place?.pointer ?? pointerOf(error, value))
  const isOfBody = ({ where }: FieldError) => where !== 'header' && where !== 'parameter'
  const spots = text === undefined ? [] : findSpots(text, pointers, lookAt(value, registry))
  return errors.map((error, index) => {
    const pointer = pointers[index] ?? error.path
    if (!isOfBody(error) || error.place !== undefined) return error
    return { ...error, place: { pointer, ...entryOf(pointer, value), ...spots[index] } }
  })
}

const entryAt = (path: FieldPath, value: unknown): Readonly<Record<string, unknown>> | undefined => {
  const [first, index] = path
  if (first !== 'entries' || typeof index !== 'number' || !isObject(value) || !Array.isArray(value.entries))
    return undefined
  const entry: unknown = value.entries[index]
  return isObject(entry) ? entry : undefined
}

/**
 * The pointer of an error. An error of a field names its entry and the field. Attributes come before identifiers, as in the
 * entry's values.
 */
function pointerOf({ path, where }: FieldError, value: unknown): FieldPath {
  const [first, index, name, ...rest] = path
  const entry = entryAt(path, value)
  if (entry === undefined || first === undefined || index === undefined || name === undefined || where === 'entry')
    return path
  // The path is one in the text of the body.
  if (name === 'attrs' || name === 'identifiers') return path
  const isIn = (part: unknown) => isObject(part) && Object.hasOwn(part, name)
  const found = !isIn(entry.attrs) && isIn(entry.identifiers) ? 'identifiers' : 'attrs'
  return [first, index, where ?? found, name, ...rest]
}

const maxId = 255

function entryOf(path: FieldPath, value: unknown): Pick<Place, 'entry'> {
  const id = entryAt(path, value)?.id
  return typeof id === 'string' && id.length <= maxId ? { entry: id } : {}
}

export type Spot = Pick<Place, 'line' | 'column' | 'source'>

/** A node of the document that is searched for, with the nodes below it. */
type Target = {
  readonly inner: Map<string, Target>
  /** What the text has there. */
  found?: {
    /** The offset of its key, or of the item of a list. */
    readonly offset: number
    /** Whether the node is a tag: the nodes of its value have no places of their own. */
    readonly isTag: boolean
    /** Whether it is a secret field, or inside one. */
    readonly isSecret: boolean
  }
}

/**
 * Line and column of the nodes that the pointers name: those of a field's key, and of a list's item. A missing field has the
 * place of the node that lacks it. Nodes inside of a tag, such as `!If`, have none.
 */
export function findSpots(text: string, pointers: readonly FieldPath[], look: Look): (Spot | undefined)[] {
  const root: Target = { inner: new Map() }
  for (const pointer of pointers) {
    let target = root
    for (const part of pointer) target = target.inner.getOrInsertComputed(String(part), () => ({ inner: new Map() }))
  }
  const covered = find(text, root, look)
  const placeAt = placesIn(text)
  return pointers.map((pointer) => {
    const found = reach(root, pointer)
    if (found === undefined) return undefined
    const place = placeAt(found.offset)
    return found.isSecret ? place : { ...place, source: lineFrom(covered, found.offset - place.column + 1) }
  })
}

/** Finds the targets. @returns the text with a NUL, which no YAML holds, in the place of each hidden character */
function find(text: string, root: Target, look: Look): string {
  const parts: string[] = []
  let end = 0
  for (const { event, isKey, isInTag, path, start } of nodesOf(text)) {
    // A key shows as much as its mapping.
    const visibility = look(isKey ? path.slice(0, -1) : path)
    const isHidden = isKey ? visibility === 'masked' || visibility === 'secret' : visibility !== 'shown'
    if (isHidden && event.type === EVENT_SCALAR && event.valueStart >= 0) {
      parts.push(
        text.slice(end, event.valueStart),
        text.slice(event.valueStart, event.valueEnd).replace(/[^\r\n]+/g, ({ length }) => '\0'.repeat(length)),
      )
      end = event.valueEnd
    }
    const target = isKey || isInTag ? undefined : targetAt(root, path)
    if (target !== undefined && start >= 0)
      target.found = {
        offset: start,
        isTag: 'tagStart' in event && event.tagStart >= 0,
        isSecret: visibility === 'secret',
      }
  }
  return parts.join('') + text.slice(end)
}

const targetAt = (root: Target, path: FieldPath): Target | undefined =>
  path.reduce<Target | undefined>((target, part) => target?.inner.get(String(part)), root)

/** The last node on the way to a pointer that the text has; undefined where a tag stands before its end. */
function reach(root: Target, pointer: FieldPath): Target['found'] {
  let last = root
  for (const part of pointer) {
    const next = last.inner.get(String(part))
    if (next?.found === undefined) return last.found?.isTag === true ? undefined : last.found
    last = next
  }
  return last.found
}

/** @returns the offset of the first key of a mapping with this name; undefined when the text has none */
export const offsetOfKey = (text: string, name: string): number | undefined =>
  nodesOf(text).find(({ isKey, path }) => isKey && path.at(-1) === name)?.start

const maxSource = 200
/** The characters of a line that are read for its source. Masking shortens them, so they are more than are shown. */
const maxRead = 10_000

/** The line that starts at an offset, with its hidden parts masked. */
const lineFrom = (covered: string, start: number): string =>
  (/^[^\r\n]*/.exec(covered.slice(start, start + maxRead))?.[0] ?? '')
    .replace(/\0+/g, masked)
    .slice(0, maxSource)
    .toWellFormed()
