import { EVENT_ID } from 'js-yaml'
import type { FieldError, FieldPath, Place } from '../errors.ts'
import { hidden } from '../hidden.ts'
import { isObject } from '../json-object.ts'
import type { Registry } from '../models/registry.ts'
import { nodesOf, placesIn } from './nodes.ts'
import { lookAt, type VisibilityOf } from './visibility.ts'

/**
 * Finds the places of errors in the document that was sent. It is called once there are errors, so that a document without any
 * costs nothing. The text is parsed again: one pass over its nodes for all errors.
 */

type Sent = { readonly value: unknown; readonly text: string | undefined; readonly registry: Registry }

/** @param text the text of a value that was read from YAML. A value that was sent as JSON has pointers without lines. */
export function withPlaces(errors: readonly FieldError[], { value, text, registry }: Sent): FieldError[] {
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

type FoundNode = {
  /** The offset of its key, or of the item of a list. */
  readonly offset: number
  /** Whether the node is a tag: the nodes of its value have no places of their own. */
  readonly isTag: boolean
  /** Whether it is a secret field, or inside one. */
  readonly isSecret: boolean
}

/** No key of YAML holds a NUL. */
const nameOf = (path: FieldPath): string => ['', ...path].join('\0')

/** The paths of the nodes on the way to one, the root first. */
const wayTo = (path: FieldPath): FieldPath[] => [[], ...path.map((_, index) => path.slice(0, index + 1))]

/**
 * Line and column of the nodes that the pointers name: those of a field's key, and of a list's item. A missing field has the
 * place of the node that lacks it. Nodes inside of a tag, such as `!If`, have none.
 */
export function findSpots(text: string, pointers: readonly FieldPath[], look: VisibilityOf): (Spot | undefined)[] {
  const { covered, found } = find(text, new Set(pointers.flatMap(wayTo).map(nameOf)), look)
  const placeAt = placesIn(text)
  return pointers.map((pointer) => {
    const there = wayTo(pointer).map((path) => found.get(nameOf(path)))
    const missing = there.indexOf(undefined)
    const last = missing < 0 ? there.at(-1) : there[missing - 1]
    if (last === undefined || (missing >= 0 && last.isTag)) return undefined
    const place = placeAt(last.offset)
    return last.isSecret ? place : { ...place, source: lineFrom(covered, last.offset - place.column + 1) }
  })
}

/** @returns `covered`: the text with a NUL in the place of each hidden character */
function find(text: string, wanted: ReadonlySet<string>, look: VisibilityOf) {
  const found = new Map<string, FoundNode>()
  const parts: string[] = []
  let end = 0
  for (const { event, isKey, isInTag, path, start } of nodesOf(text)) {
    // A key shows as much as its mapping.
    const visibility = look(isKey ? path.slice(0, -1) : path)
    const isHidden = isKey ? visibility === 'masked' || visibility === 'secret' : visibility !== 'shown'
    if (isHidden && event.type === EVENT_ID.SCALAR && event.valueStart >= 0) {
      parts.push(
        text.slice(end, event.valueStart),
        text.slice(event.valueStart, event.valueEnd).replace(/[^\r\n]+/g, ({ length }) => '\0'.repeat(length)),
      )
      end = event.valueEnd
    }
    const name = nameOf(path)
    if (isKey || isInTag || start < 0 || !wanted.has(name)) continue
    const isTag = 'tagStart' in event && event.tagStart >= 0
    found.set(name, { offset: start, isTag, isSecret: visibility === 'secret' })
  }
  return { covered: parts.join('') + text.slice(end), found }
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
    .replace(/\0+/g, hidden)
    .slice(0, maxSource)
    .toWellFormed()
