import type { Event } from 'js-yaml'
import { nearest } from '../messages.ts'
import { documentLimits } from './document.ts'
import { firstKeyLike, firstNodeKey, tooShort, type YamlError } from './events.ts'
import { type Mark, type Scan, scan } from './scan.ts'
import { expressionNames } from './tags.ts'

/** Explains why a text is not YAML, and what to do about it. No sentence shows a value: it may be a secret. */

export type Explained = { readonly message: string; readonly offset: number | undefined }

/** @param events the events of the text, as far as it could be read */
export function explain(error: YamlError, text: string, events: readonly Event[]): Explained {
  const { reason, offset } = error
  if (offset === undefined) return { message: `The text cannot be read as YAML: ${reason}.`, offset }
  const found = { text, reason, offset, events }
  return (
    (events.length === 0 ? (ofTab(found) ?? ofMarks(found)) : undefined) ??
    ofReason(found) ?? { message: `Line ${lineAt(text, offset)} cannot be read as YAML: ${reason}.`, offset }
  )
}

type Found = {
  readonly text: string
  readonly reason: string
  readonly offset: number
  readonly events: readonly Event[]
}

const lineAt = (text: string, offset: number): number => text.slice(0, offset).split(/\r\n?|\n/).length

/** The line of an offset, with its own offset. */
function lineOf(text: string, offset: number) {
  const start = Math.max(text.lastIndexOf('\n', offset - 1), text.lastIndexOf('\r', offset - 1)) + 1
  const length = text.slice(start).search(/[\r\n]|$/)
  const content = text.slice(start, start + length)
  return { start, content, number: lineAt(text, start), indent: content.length - content.trimStart().length }
}

/** The next line above that is not blank. */
function lineAbove(text: string, offset: number) {
  const { start } = lineOf(text, offset)
  const above = text.slice(0, start).trimEnd()
  return above === '' ? undefined : lineOf(text, above.length)
}

const indentation = [tooShort, 'bad indentation', 'tab characters', 'can not read a block mapping entry', 'end of the']

function ofTab({ text, reason, offset }: Found): Explained | undefined {
  const { start, content, number } = lineOf(text, offset)
  const tab = /^ *\t/.exec(content)
  if (tab === null || !indentation.some((each) => reason.startsWith(each))) return undefined
  const message = `Line ${number} is indented with a tab: YAML takes spaces.`
  return { message, offset: start + tab[0].length - 1 }
}

const closerOf: Readonly<Record<string, string>> = { '[': ']', '{': '}' }

/** Explains brackets and quotes that are closed too late, or never. */
function ofMarks({ text, offset }: Found): Explained | undefined {
  const { open, crossed, quotesOverLines } = scan(text)
  const quoted = (mark: Mark) => `The \`${mark.sign}\` of line ${lineAt(text, mark.offset)}`
  if (crossed !== undefined && crossed.closed.offset <= offset) {
    const { opened, closed } = crossed
    const closer = closerOf[opened.sign]
    const message = `${quoted(opened)} needs its \`${closer}\` before the \`${closed.sign}\` of line ${lineAt(text, closed.offset)}.`
    return { message, offset: closed.offset }
  }
  const late = quotesThatEnd(quotesOverLines, lineOf(text, offset).start, offset)
  if (late !== undefined) {
    const message = `${quoted(late)} is closed only in line ${lineAt(text, offset)}: close it in its own line.`
    return { message, offset: late.offset }
  }
  const last = open.at(-1)
  if (last === undefined || last.offset > offset) return undefined
  return { message: `${quoted(last)} is never closed.`, offset: last.offset }
}

/** Finds quotes of an earlier line that end between two offsets. */
function quotesThatEnd(quotes: Scan['quotesOverLines'], from: number, to: number): Mark | undefined {
  for (const [end, mark] of quotes) if (end > from && end <= to) return mark
  return undefined
}

/** The explanations, by the start of the parser's reason. */
const sentences: readonly (readonly [reason: string, (found: Found) => Explained | undefined])[] = [
  ['bad indentation', ofIndentation],
  ['end of the stream', (found) => ofColon(found) ?? ofIndentation(found)],
  ['can not read a block mapping entry', ofColon],
  ["expected ':' after a mapping key", ofColon],
  ['a whitespace character is expected', (found) => at(found, 'needs a space after its colon')],
  ['missed comma', (found) => at(found, 'needs a comma before this')],
  ["expected the node content, but found ','", (found) => at(found, 'has a comma with nothing before it')],
  ['duplicated mapping key', ofDuplicate],
  [
    'unidentified alias',
    (found) => at(found, `has an alias (*) of an anchor (&) that is not before it: ${quotesFor('*')}`),
  ],
  ['name of an', (found) => at(found, `has no name behind its & or *: ${quotesFor('& or *')}`)],
  ['unknown', ofTag],
  ['cannot resolve', (found) => at(found, `has a tag that does not fit what follows it: ${quotesFor('!')}`)],
  ['unknown escape sequence', ofEscape],
  ['expected hexadecimal character', ofEscape],
  ['object-based map', ofNodeKey],
  ['the stream contains non-printable', ofCharacter],
  ['null byte', ofCharacter],
  ['expected valid JSON character', ofCharacter],
  ['nesting exceeded', (found) => at(found, `is nested deeper than ${documentLimits.depth}`)],
  ['a line break is expected', (found) => at(found, 'has text behind its | or >: the text begins in the next line')],
  [tooShort, (found) => at(found, 'is indented less than the value that it is part of')],
]

const ofReason = (found: Found): Explained | undefined =>
  sentences
    // The longest reason fits best: `unknown` is the start of others.
    .filter(([start]) => found.reason.startsWith(start))
    .sort(([one], [other]) => other.length - one.length)[0]?.[1](found)

const at = ({ text, offset }: Pick<Found, 'text' | 'offset'>, what: string): Explained => ({
  message: `Line ${lineAt(text, offset)} ${what}.`,
  offset,
})

const quotesFor = (sign: string): string => `put a text that begins with ${sign} in quotes`

function ofIndentation(found: Found): Explained {
  const { text, offset } = found
  const { start, content, number, indent } = lineOf(text, offset)
  const before = content.slice(0, offset - start)
  if (before.trim() !== '') return ofMiddle(found, before)
  const place = start + indent
  if (/^- /.test(content) && found.reason.startsWith('end of'))
    return at(found, 'begins a list item where a key is expected: a list stands below a key of its own')
  const indented = indent === 0 ? 'not indented' : `indented by ${indent} ${indent === 1 ? 'space' : 'spaces'}`
  const what = `Line ${number} is ${indented}, which fits no line above it`
  return { message: `${what}: keys of one mapping, and items of one list, begin in one column.`, offset: place }
}

/** Explains text behind a value that has ended, in its line. */
function ofMiddle(found: Found, before: string): Explained {
  const { text, offset } = found
  const sign = text[offset] ?? ''
  const last = before.trimEnd().at(-1) ?? ''
  if (sign === '-') return at(found, 'begins a list behind a key: begin it in the next line')
  if ('@`%'.includes(sign)) return at(found, quoteText(sign))
  if (last === "'") return at(found, "goes on behind its closing quote: a ' in single quotes is written twice")
  if (last === '"') return at(found, 'goes on behind its closing quote: a " in double quotes is written \\"')
  if (last === ']' || last === '}')
    return at(found, 'goes on behind its closing bracket: put text with brackets in quotes')
  if (sign !== ':') return at(found, 'goes on behind the end of its value')
  if (/:\s/.test(before)) return at(found, 'has a second colon with a space behind it: put the text in quotes')
  const { start, indent, number } = lineOf(text, offset)
  const message = `Line ${number} is indented more than the key before it, which has its value already: keys of one mapping begin in one column.`
  return { message, offset: start + indent }
}

const quoteText = (sign: string): string => `has a text that begins with ${sign}: put it in quotes`

/** Explains a line that should be `key: value`: the one that is named, or one above, which the parser has joined with it. */
function ofColon({ text, offset }: Found): Explained | undefined {
  const lines = [lineAbove(text, offset), lineOf(text, offset)].flatMap((line) => line ?? [])
  const isText = ({ content }: { content: string }) => content.trim() !== '' && !/:(\s|$)|^\s*(#|-(\s|$))/.test(content)
  const line = lines.find(isText)
  if (line === undefined) return undefined
  const colon = /^\s*[\w.-]+:(?=[^\s/])/.exec(line.content)
  if (colon !== null) return at({ text, offset: line.start + colon[0].length }, 'needs a space after its colon')
  return at({ text, offset: line.start + line.indent }, 'has no colon: an entry of a mapping is written "key: value"')
}

function ofNodeKey(found: Found): Explained {
  const offset = firstNodeKey(found.text, found.events) ?? found.offset
  return at({ ...found, offset }, 'has a mapping or list as a key: put text with braces or brackets in quotes')
}

function ofDuplicate(found: Found): Explained {
  const first = firstKeyLike(found.text, found.events, found.offset)
  const where = first === undefined ? '' : ` (first in line ${lineAt(found.text, first)})`
  return at(found, `has a key for the second time${where}: a mapping takes each key once`)
}

/** Explains an unknown tag. Its name is shown only when it is nearly one of ours: it may be the start of a secret. */
function ofTag(found: Found): Explained {
  const names = [...expressionNames, '!KeyOf']
  const name = /^![\w!-]{1,20}/.exec(found.text.slice(found.offset, found.offset + 21))?.[0] ?? ''
  const near = nearest(name, names)
  if (names.some((each) => each === name))
    return at(found, `has a tag before a mapping: ${name} takes a text or a list`)
  const hint = near === undefined ? quotesFor('!') : `did you mean ${near}`
  return at(found, `has an unknown tag: ${hint}`)
}

function ofEscape(found: Found): Explained {
  return at(found, 'has a \\ in double quotes that begins no escape: write \\\\, or take single quotes')
}

function ofCharacter(found: Found): Explained {
  const code = found.text.charCodeAt(found.offset).toString(16).toUpperCase().padStart(4, '0')
  return at(found, `holds the character U+${code}, which YAML does not take as it is`)
}
