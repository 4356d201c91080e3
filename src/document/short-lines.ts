import { EVENT_ID, type Event, parseEvents, SCALAR_STYLE, YAMLException } from 'js-yaml'
import { documentLimits } from './document.ts'

/**
 * YAML 1.2 wants each line inside of brackets and quotes indented more than the key before them. Other readers (PyYAML, go-yaml,
 * js-yaml 4) do not, and files have their `]` in the column of the key. The parser refuses those, and has no option for it.
 */

const tooShort = 'deficient indentation'
/** Spaces that a line gets at a time. */
const pad = 40
/** The most characters that are parsed again. */
const mostParsed = 2 * documentLimits.bytes

/**
 * Parses a text. Lines that are too short for the parser get spaces in a copy, which is parsed; the events are those of the text as
 * it is. Spaces at the start of a line inside of brackets or quotes are no part of any value.
 *
 * @param maxDepth called before each time that the text is parsed
 * @throws {YAMLException} of the first such line, when the text is no YAML with more spaces either
 */
export function eventsOf(text: string, maxDepth: () => number): Event[] {
  try {
    return parseEvents(text, { maxDepth: maxDepth() })
  } catch (error) {
    if (!isTooShort(error)) throw error
    const events = parsePadded(text, maxDepth, linesLike(text)) ?? parsePadded(text, maxDepth, (start) => [start])
    if (events === undefined) throw error
    return events
  }
}

const isTooShort = (error: unknown): error is YAMLException & { mark: { position: number } } =>
  error instanceof YAMLException && error.reason === tooShort && error.mark !== undefined

/**
 * @param alike the starts of the lines that get spaces with a line
 * @returns undefined when the text cannot be read so, or a text of several lines would be changed
 */
function parsePadded(
  text: string,
  maxDepth: () => number,
  alike: (start: number) => readonly number[],
): Event[] | undefined {
  const spaces = new Map<number, number>()
  for (let parsed = 0; parsed < mostParsed; ) {
    const lines = [...spaces].sort(([one], [other]) => one - other)
    const offsetOf = offsetsIn(lines)
    try {
      const events = parseEvents(padded(text, lines), { maxDepth: maxDepth() })
      for (const event of events) moveBack(event, offsetOf)
      return events.some((event) => isChanged(event, spaces)) ? undefined : events
    } catch (error) {
      if (!isTooShort(error)) return undefined
      parsed += error.mark.position
      const short = startOfLine(text, offsetOf(error.mark.position))
      // A document mark ends all brackets.
      if (/^(?:---|\.\.\.)(?!\S)/.test(text.slice(short, short + 4))) return undefined
      for (const start of alike(short)) spaces.set(start, (spaces.get(start) ?? 0) + pad)
    }
  }
  return undefined
}

const startOfLine = (text: string, offset: number): number =>
  Math.max(text.lastIndexOf('\n', offset - 1), text.lastIndexOf('\r', offset - 1)) + 1

/** Brackets alone: the lines of lists and mappings that end in the same way get their spaces together. */
function linesLike(text: string): (start: number) => readonly number[] {
  const starts = new Map<string, number[]>()
  const lines = new Map<number, string>()
  for (const { 0: line, index } of text.matchAll(/^ *[\]}][\]}, ]*$/gm)) {
    starts.getOrInsertComputed(line, () => []).push(index)
    lines.set(index, line)
  }
  return (start) => starts.get(lines.get(start) ?? '') ?? [start]
}

type Lines = readonly (readonly [start: number, spaces: number])[]

function padded(text: string, lines: Lines): string {
  const parts: string[] = []
  let from = 0
  for (const [start, spaces] of lines) {
    parts.push(text.slice(from, start), ' '.repeat(spaces))
    from = start
  }
  return parts.join('') + text.slice(from)
}

/** Maps an offset of the text with more spaces to that of the text. */
function offsetsIn(lines: Lines): (offset: number) => number {
  const added = [0]
  for (const [, spaces] of lines) added.push((added.at(-1) ?? 0) + spaces)
  /** The end of the spaces of each line. */
  const ends = lines.map(([start], index) => start + (added[index + 1] ?? 0))
  return (offset) => {
    const before = countUpTo(ends, offset)
    // An offset among the spaces of a line is its start.
    return Math.min(offset - (added[before] ?? 0), lines[before]?.[0] ?? Number.POSITIVE_INFINITY)
  }
}

/** Counts the numbers that are not above a limit. @param sorted the least first */
export function countUpTo(sorted: readonly number[], limit: number): number {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((sorted[middle] ?? 0) <= limit) low = middle + 1
    else high = middle
  }
  return low
}

const offsetFields = ['start', 'valueStart', 'valueEnd', 'anchorStart', 'anchorEnd', 'tagStart', 'tagEnd'] as const

function moveBack(event: Event, offsetOf: (offset: number) => number): void {
  const offsets = event as Partial<Record<(typeof offsetFields)[number], number>>
  for (const field of offsetFields) {
    const offset = offsets[field]
    if (offset !== undefined && offset > 0) offsets[field] = offsetOf(offset)
  }
}

const blockStyles: readonly number[] = [SCALAR_STYLE.LITERAL_BLOCK, SCALAR_STYLE.FOLDED_BLOCK]

/** Whether a text behind `|` or `>` has a line with more spaces: there they are a part of the value. */
function isChanged(event: Event, spaces: ReadonlyMap<number, number>): boolean {
  if (event.type !== EVENT_ID.SCALAR || !blockStyles.includes(event.style)) return false
  return [...spaces.keys()].some((start) => start >= event.valueStart && start < event.valueEnd)
}
