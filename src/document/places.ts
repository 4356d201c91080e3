import {
  EVENT_MAPPING,
  EVENT_POP,
  EVENT_SCALAR,
  EVENT_SEQUENCE,
  type Event,
  getScalarValue,
  SCALAR_STYLE_DOUBLE_QUOTED,
  SCALAR_STYLE_SINGLE_QUOTED,
} from 'js-yaml'
import type { FieldError, FieldPath, Place } from '../errors.ts'
import { isObject } from '../json-object.ts'
import type { Registry } from '../models/registry.ts'
import { documentLimits } from './document.ts'
import { eventsOf, withKeys } from './events.ts'
import { masked } from './mask.ts'
import { type Look, lookAt, type Visibility } from './visibility.ts'

/**
 * Finds the places of errors in the document that was sent. It is called once there are errors, so that a document without any
 * costs nothing. The text is parsed again: one pass over its events, and one over its lines, for all errors.
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
  /** The offset of its key, or of the item of a list. Undefined: the text has no such node. */
  offset?: number
  /** Whether the node is a tag: the nodes of its value have no places of their own. */
  isTag?: boolean
  /** Whether it is a secret field, or inside one. */
  isSecret?: boolean
}

type Frame = {
  readonly target: Target | undefined
  readonly visibility: Visibility
  /** Set while the children's visibility is undecided. */
  readonly path: readonly string[] | undefined
  readonly isMapping: boolean
  /** The key whose value comes next; undefined before a key. */
  key: string | undefined
  keyStart: number
  items: number
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
  const hidden = walk(text, root, look)
  const found = pointers.map((pointer) => reach(root, pointer))
  const lines = linesOf(
    text,
    found.flatMap((target) => target?.offset ?? []),
  )
  return found.map((target) => {
    const { offset, isSecret = false } = target ?? {}
    if (offset === undefined) return undefined
    const { line, start, end } = lines.get(offset) ?? { line: 1, start: 0, end: 0 }
    const place = { line, column: offset - start + 1 }
    return isSecret ? place : { ...place, source: masking(text, { start, end }, hidden) }
  })
}

/** The last node on the way to a pointer that the text has; undefined where a tag stands before its end. */
function reach(root: Target, pointer: FieldPath): Target | undefined {
  let last = root
  for (const part of pointer) {
    const next = last.inner.get(String(part))
    if (next?.offset === undefined) return last.isTag === true ? undefined : last
    last = next
  }
  return last
}

type Range = { readonly start: number; readonly end: number }

/** Sets the offsets of targets. @returns the ranges of hidden text, in their order */
function walk(text: string, root: Target, look: Look): readonly Range[] {
  const hidden: Range[] = []
  const frames: Frame[] = []
  for (const event of eventsOf(text, () => documentLimits.depth)) {
    if (event.type === EVENT_POP) {
      frames.pop()
      continue
    }
    const frame = frames.at(-1)
    const start = startOf(event)
    if (start === undefined) continue
    const isKey = frame?.isMapping === true && frame.key === undefined
    if (isKey && event.type === EVENT_SCALAR) {
      frame.key = getScalarValue(text, event)
      frame.keyStart = start
      if (frame.visibility === 'masked' || frame.visibility === 'secret') hide(hidden, event)
      continue
    }
    const part = frame === undefined || isKey ? undefined : (frame.key ?? String(frame.items))
    const target = frame === undefined ? root : part === undefined ? undefined : frame.target?.inner.get(part)
    const path = frame === undefined ? [] : part === undefined || !frame.path ? undefined : [...frame.path, part]
    // A value under a key that is no text is no field.
    const visibility = frame?.visibility ?? (path === undefined ? 'masked' : look(path))
    if (target !== undefined) {
      const offset = frame?.isMapping === true ? frame.keyStart : start
      if (offset >= 0) target.offset = offset
      target.isTag = 'tagStart' in event && event.tagStart >= 0
      target.isSecret = visibility === 'secret'
    }
    if (frame !== undefined) {
      // A mapping stands in the place of a key: its value comes next, under no name.
      frame.key = isKey ? '' : undefined
      frame.items += 1
    }
    if (event.type === EVENT_SCALAR) {
      if (visibility !== 'shown') hide(hidden, event)
    } else {
      const inner = target?.isTag === true ? undefined : target
      const isOpen = visibility === undefined
      const isMapping = event.type === EVENT_MAPPING
      const nothing = { key: undefined, keyStart: 0, items: 0 }
      frames.push({ target: inner, visibility, path: isOpen ? path : undefined, isMapping, ...nothing })
    }
  }
  return hidden
}

/** @returns the offset of the first key of a mapping with this name; undefined when the text has none */
export function offsetOfKey(text: string, name: string): number | undefined {
  for (const { event, isKey } of withKeys(
    text,
    eventsOf(text, () => documentLimits.depth),
  ))
    if (isKey && event.type === EVENT_SCALAR && getScalarValue(text, event) === name) return startOf(event)
  return undefined
}

const isQuoted = ({ style }: { style: unknown }) =>
  style === SCALAR_STYLE_SINGLE_QUOTED || style === SCALAR_STYLE_DOUBLE_QUOTED

/** @returns undefined for an event that is no node, and -1 for a scalar without text */
function startOf(event: Event): number | undefined {
  switch (event.type) {
    case EVENT_MAPPING:
    case EVENT_SEQUENCE:
      return event.start
    case EVENT_SCALAR:
      if (event.tagStart >= 0) return event.tagStart
      return isQuoted(event) ? event.valueStart - 1 : event.valueStart
    default:
      return undefined
  }
}

function hide(hidden: Range[], { valueStart, valueEnd }: { valueStart: number; valueEnd: number }): void {
  if (valueEnd > valueStart) hidden.push({ start: valueStart, end: valueEnd })
}

/** The lines that hold the offsets, from one pass over the text. */
function linesOf(text: string, offsets: readonly number[]): Map<number, Range & { readonly line: number }> {
  const lines = new Map<number, Range & { readonly line: number }>()
  let line = 1
  let start = 0
  for (const offset of offsets.toSorted((one, other) => one - other)) {
    for (let end = text.indexOf('\n', start); end >= 0 && end < offset; end = text.indexOf('\n', start)) {
      start = end + 1
      line += 1
    }
    const end = text.indexOf('\n', offset)
    lines.set(offset, { line, start, end: end < 0 ? text.length : end })
  }
  return lines
}

/** Line and column of offsets, from 1. */
export function placesAt(
  text: string,
  offsets: readonly number[],
): { readonly line: number; readonly column: number }[] {
  const lines = linesOf(text, offsets)
  return offsets.map((offset) => {
    const { line, start } = lines.get(offset) ?? { line: 1, start: 0 }
    return { line, column: offset - start + 1 }
  })
}

const maxSource = 200

/** The line with hidden parts masked. */
function masking(text: string, { start, end }: Range, hidden: readonly Range[]): string {
  let shown = ''
  let at = start
  for (let index = firstAfter(hidden, start); shown.length <= maxSource; index += 1) {
    const range = hidden[index]
    if (range === undefined || range.start >= end) break
    shown += text.slice(at, Math.max(at, range.start)) + masked
    at = Math.min(range.end, end)
  }
  return (shown + text.slice(at, Math.min(end, at + maxSource))).slice(0, maxSource).replace(/\r$/, '').toWellFormed()
}

/** The index of the first range that ends after the offset: ranges do not overlap. */
function firstAfter(ranges: readonly Range[], offset: number): number {
  let [low, high] = [0, ranges.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((ranges[middle]?.end ?? 0) > offset) high = middle
    else low = middle + 1
  }
  return low
}
