import { EVENT_ID, type Event, getScalarValue, SCALAR_STYLE } from 'js-yaml'
import type { FieldPath } from '../errors.ts'
import { isKept, mayLoseDigits } from '../numbers.ts'
import { documentLimits } from './document.ts'
import { countUpTo, eventsOf } from './short-lines.ts'

/** The nodes of a YAML text with their paths and offsets, in one pass over the parser's events. */

type NodeEvent = Exclude<Event, { type: typeof EVENT_ID.POP | typeof EVENT_ID.DOCUMENT }>

export type Node = {
  readonly event: NodeEvent
  readonly isKey: boolean
  readonly isInTag: boolean
  /** A key has the path of its value. */
  readonly path: FieldPath
  /** The offset of its key, if it is the value of one; else its own. Negative for an item without text. */
  readonly start: number
}

/** An open document, list or mapping. */
type Frame = {
  readonly type: typeof EVENT_ID.DOCUMENT | typeof EVENT_ID.SEQUENCE | typeof EVENT_ID.MAPPING
  readonly path: FieldPath
  readonly isInTag: boolean
  items: number
  /** The key whose value comes next. A mapping or list in the place of a key has no name. */
  key: { readonly name: string; readonly start: number } | undefined
}

/** @param events of the text, which was read before */
export function* nodesOf(
  text: string,
  events: readonly Event[] = eventsOf(text, () => documentLimits.depth),
): Generator<Node> {
  const open: Frame[] = []
  for (const event of events) {
    if (event.type === EVENT_ID.POP) {
      open.pop()
      continue
    }
    const node = event.type === EVENT_ID.DOCUMENT ? undefined : nodeIn(open.at(-1), event, text)
    if (node !== undefined) yield node
    if (event.type === EVENT_ID.DOCUMENT || event.type === EVENT_ID.SEQUENCE || event.type === EVENT_ID.MAPPING) {
      const isTag = 'tagStart' in event && event.tagStart >= 0
      const { path = [], isInTag = false } = node ?? {}
      open.push({ type: event.type, path, isInTag: isInTag || isTag, items: 0, key: undefined })
    }
  }
}

function nodeIn(frame: Frame | undefined, event: NodeEvent, text: string): Node {
  const { type, path = [], isInTag = false, key } = frame ?? {}
  const node = { event, isKey: false, isInTag, path, start: startOf(event) }
  if (frame === undefined || type === EVENT_ID.DOCUMENT) return node
  if (type === EVENT_ID.SEQUENCE) {
    frame.items += 1
    return { ...node, path: [...path, frame.items - 1] }
  }
  if (key !== undefined) {
    frame.key = undefined
    return { ...node, path: [...path, key.name], start: key.start }
  }
  frame.key = { name: event.type === EVENT_ID.SCALAR ? getScalarValue(text, event) : '', start: node.start }
  return { ...node, isKey: true, path: [...path, frame.key.name] }
}

function startOf(event: NodeEvent): number {
  if ('start' in event) return event.start
  if (event.type !== EVENT_ID.SCALAR) return event.anchorStart - 1
  if (event.tagStart >= 0) return event.tagStart
  const isQuoted = event.style === SCALAR_STYLE.SINGLE_QUOTED || event.style === SCALAR_STYLE.DOUBLE_QUOTED
  return isQuoted ? event.valueStart - 1 : event.valueStart
}

/** Line and column, from 1. */
export type LineColumn = { readonly line: number; readonly column: number }

/** @returns a function that gives the line and column of an offset */
export function placesIn(text: string): (offset: number) => LineColumn {
  const starts = [0]
  for (const { 0: lineBreak, index } of text.matchAll(/\r\n?|\n/g)) starts.push(index + lineBreak.length)
  return (offset) => {
    const line = countUpTo(starts, offset)
    return { line, column: offset - (starts[line - 1] ?? 0) + 1 }
  }
}

/** The texts that YAML reads as a number when they stand without quotes. */
export const number = /^(?:0o[0-7]+|0x[\da-f]+|[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|[-+]?\.inf|\.nan)$/i
const numberTags = ['!!int', '!!float']

/** @returns the numbers that would not be kept as they are written, with their offsets */
export function unkeptNumbers(text: string, events: readonly Event[]): { path: FieldPath; offset: number }[] {
  if (!mayLoseDigits(text)) return []
  const unkept = nodesOf(text, events).flatMap(({ event, path }) => {
    if (event.type !== EVENT_ID.SCALAR) return []
    const { valueStart: offset, valueEnd, tagStart, tagEnd, style } = event
    const isNumber = tagStart < 0 ? style === SCALAR_STYLE.PLAIN : numberTags.includes(text.slice(tagStart, tagEnd))
    const written = text.slice(offset, valueEnd)
    return isNumber && number.test(written) && !isKept(written) ? [{ path, offset }] : []
  })
  return unkept.toArray()
}
