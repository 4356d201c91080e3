import {
  EVENT_DOCUMENT,
  EVENT_MAPPING,
  EVENT_POP,
  EVENT_SCALAR,
  EVENT_SEQUENCE,
  type Event,
  getScalarValue,
  parseEvents,
  SCALAR_STYLE_PLAIN,
  YAMLException,
} from 'js-yaml'
import type { FieldPath } from '../errors.ts'
import { isKept, mayLoseDigits } from '../numbers.ts'
import { documentLimits } from './document.ts'
import { type ShortLine, scan } from './scan.ts'

/**
 * The events of a YAML text. YAML 1.2 wants each line inside of brackets or quotes indented more than the key before them. Other
 * readers (PyYAML, go-yaml, js-yaml 4) do not, and files have their `]` in the column of the key. The parser refuses those, and
 * has no option for it.
 */

/** An error of the parser, at an offset of the text. */
export class YamlError extends Error {
  override readonly name = 'YamlError'
  readonly reason: string
  readonly offset: number | undefined
  constructor({ reason, mark }: YAMLException, offset = mark?.position) {
    super(reason)
    this.reason = reason
    this.offset = offset
  }
}

/** The parser's reason for a line that is indented less than it wants. */
export const tooShort = 'deficient indentation'

/**
 * Parses a text. Lines with too few spaces are indented in a copy, which is parsed; the events are those of the text as it is.
 * Spaces at the start of a line inside of brackets or quotes are no part of any value.
 *
 * @param maxDepth called before each time that the text is parsed
 * @throws {YamlError}
 */
export function eventsOf(text: string, maxDepth: () => number): Event[] {
  try {
    return parseEvents(text, { maxDepth: maxDepth() })
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error
    const { shortLines } = error.reason === tooShort ? scan(text) : { shortLines: [] }
    if (shortLines.length === 0 || sumOf(shortLines) > maxMissing) throw new YamlError(error)
    return eventsOfIndented(text, shortLines, maxDepth())
  }
}

/** The most spaces that are added to a text. */
const maxMissing = documentLimits.bytes

const sumOf = (lines: readonly ShortLine[]): number => lines.reduce((sum, { missing }) => sum + missing, 0)

function eventsOfIndented(text: string, lines: readonly ShortLine[], maxDepth: number): Event[] {
  const offsetOf = offsetsBefore(lines)
  try {
    const events = parseEvents(indented(text, lines), { maxDepth })
    for (const event of events) moveBack(event, offsetOf)
    return events
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error
    throw new YamlError(error, error.mark && offsetOf(error.mark.position))
  }
}

function indented(text: string, lines: readonly ShortLine[]): string {
  const parts: string[] = []
  let from = 0
  for (const { start, missing } of lines) {
    parts.push(text.slice(from, start), ' '.repeat(missing))
    from = start
  }
  return parts.join('') + text.slice(from)
}

/** Maps an offset of the indented text to that of the text. */
function offsetsBefore(lines: readonly ShortLine[]): (offset: number) => number {
  // The ends of the added spaces in the indented text, and the number of spaces that were added up to there.
  const ends: number[] = []
  const added = [0]
  for (const { start, missing } of lines) {
    const sum = (added.at(-1) ?? 0) + missing
    ends.push(start + sum)
    added.push(sum)
  }
  return (offset) => {
    let [low, high] = [0, ends.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((ends[middle] ?? 0) <= offset) low = middle + 1
      else high = middle
    }
    // An offset among the added spaces of a line is its start.
    return Math.min(offset - (added[low] ?? 0), lines[low]?.start ?? Number.POSITIVE_INFINITY)
  }
}

const offsetFields = ['start', 'valueStart', 'valueEnd', 'anchorStart', 'anchorEnd', 'tagStart', 'tagEnd'] as const

function moveBack(event: Event, offsetOf: (offset: number) => number): void {
  const offsets = event as Partial<Record<(typeof offsetFields)[number], number>>
  for (const field of offsetFields) {
    const offset = offsets[field]
    if (offset !== undefined && offset > 0) offsets[field] = offsetOf(offset)
  }
}

type Found = { event: Event; isKey: boolean; keys: Map<string, number>; path: () => FieldPath }

/** Yields each event, with whether it is a key, the keys of its mapping before it, and its path. */
export function* withKeys(text: string, events: readonly Event[]): Generator<Found> {
  const open: { isMapping: boolean; keys: Map<string, number>; isKey: boolean; part: string | number }[] = []
  // The first open node is the document.
  const path = () => open.slice(1).map(({ part }) => part)
  for (const event of events) {
    if (event.type === EVENT_POP) {
      open.pop()
      continue
    }
    const node = open.at(-1)
    const isKey = node?.isMapping === true && node.isKey
    if (node !== undefined) {
      node.isKey = !node.isKey
      if (isKey) node.part = event.type === EVENT_SCALAR ? getScalarValue(text, event) : ''
      else if (typeof node.part === 'number') node.part += 1
    }
    yield { event, isKey, keys: node?.keys ?? new Map(), path }
    if (event.type === EVENT_MAPPING || event.type === EVENT_SEQUENCE || event.type === EVENT_DOCUMENT) {
      const isMapping = event.type === EVENT_MAPPING
      open.push({ isMapping, keys: new Map(), isKey: true, part: isMapping ? '' : -1 })
    }
  }
}

/** @returns the offset of the first key that is like the one at an offset, in its mapping */
export function firstKeyLike(text: string, events: readonly Event[], offset: number): number | undefined {
  for (const { event, isKey, keys } of withKeys(text, events)) {
    if (!isKey || event.type !== EVENT_SCALAR) continue
    const name = getScalarValue(text, event)
    if (event.valueStart === offset) return keys.get(name)
    keys.set(name, event.valueStart)
  }
  return undefined
}

/** @returns the offset of a mapping or list in the place of a key */
export function firstNodeKey(text: string, events: readonly Event[]): number | undefined {
  for (const { event, isKey } of withKeys(text, events)) if (isKey && 'start' in event) return event.start
  return undefined
}

/** The texts that YAML reads as a number when they stand without quotes. */
export const number = /^(?:0o[0-7]+|0x[\da-f]+|[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|[-+]?\.inf|\.nan)$/i
const numberTags = ['!!int', '!!float']

/** @returns the numbers that would not be kept as they are written, with their offsets */
export function unkeptNumbers(text: string, events: readonly Event[]): { path: FieldPath; offset: number }[] {
  if (!mayLoseDigits(text)) return []
  const unkept = withKeys(text, events).flatMap(({ event, path }) => {
    if (event.type !== EVENT_SCALAR) return []
    const { valueStart: offset, valueEnd, tagStart, tagEnd, style } = event
    const isNumber = tagStart < 0 ? style === SCALAR_STYLE_PLAIN : numberTags.includes(text.slice(tagStart, tagEnd))
    const written = text.slice(offset, valueEnd)
    return isNumber && number.test(written) && !isKept(written) ? [{ path: path(), offset }] : []
  })
  return unkept.toArray()
}
