import {
  CORE_SCHEMA,
  constructFromEvents,
  DUMP_SCHEMA,
  dump,
  type Event,
  mergeTag,
  parseEvents,
  YAMLException,
} from 'js-yaml'
import { z } from 'zod'
import type { ErrorCode } from '../error-codes.ts'
import { ErrorList, type FieldPath, Problem } from '../errors.ts'
import { isObject } from '../json-object.ts'
import { addIssues, sentence } from '../messages.ts'
import { filledLine, shownOnly } from '../models/fields.ts'
import { notKept } from '../numbers.ts'
import { turns } from '../turns.ts'
import { type Blueprint, documentLimits, type Entry, Find, KeyOf } from './document.ts'
import { blueprintForm } from './form.ts'
import { forbiddenName } from './measure.ts'
import { type LineColumn, placesIn, unkeptNumbers } from './nodes.ts'
import { offsetOfKey } from './places.ts'
import type { CallerSide } from './scope.ts'
import { eventsOf } from './short-lines.ts'
import { explain } from './syntax-errors.ts'
import { Expression, ForbiddenName, parsedTags, printedTags, TagError, unreadTags } from './tags.ts'
import { evaluateDocument, evaluateStored, normalise } from './written.ts'

const printSchema = DUMP_SCHEMA.withTags(...printedTags)
const parseSchema = CORE_SCHEMA.withTags(...parsedTags([], ''))
/** The schema of a document that was sent: it accepts what other readers accept. */
const sentSchema = parseSchema.withTags(mergeTag)

/** Prints a blueprint as YAML text that `parse` reads back as an equal document. */
export function print(blueprint: Blueprint): string {
  return blueprint.entries.length > maxPretty ? printOnLines(blueprint) : printValue(blueprint)
}

/** A document with more entries has a line for each: that takes a tenth of the time, and it is too long for a reader. */
const maxPretty = 200

function printOnLines({ entries, ...head }: Blueprint): string {
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${inFlow(value)}\n`)
  return [...lines, 'entries:\n', ...entries.map((entry) => `- ${inFlow(entry)}\n`)].join('')
}

/** Prints JSON, which is YAML, with the tags of a blueprint. */
function inFlow(value: unknown): string {
  if (value instanceof KeyOf) return `!KeyOf ${quotedText(value.id)}`
  if (value instanceof Find) return `!Find [${quotedText(value.model)}, ${inFlow(value.identifiers)}]`
  if (value instanceof Expression) return `${value.name} ${inFlow(value.content)}`
  if (Array.isArray(value)) return `[${value.map(inFlow).join(', ')}]`
  if (typeof value === 'string') return quotedText(value)
  if (typeof value !== 'object' || value === null)
    return Object.is(value, -0) ? '-0' : (JSON.stringify(value) ?? 'null')
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return `{${members.map(([name, member]) => `${keyInFlow(name)}: ${inFlow(member)}`).join(', ')}}`
}

/** The longest key of a mapping that YAML takes without a sign before it. */
const longestPlainKey = 500

function keyInFlow(name: string): string {
  const key = quotedText(name)
  return key.length > longestPlainKey ? `? ${key} ` : key
}

/** Quotes a text. JSON leaves some characters as they are that YAML does not print. */
const quotedText = (text: string): string =>
  JSON.stringify(text).replace(
    /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** Prints a value of `readText`, if it holds no other tags than those of a blueprint. */
export const printValue = (value: unknown): string => dump(value, { schema: printSchema, noRefs: true, lineWidth: 120 })

const documentSchema = blueprintForm(z.string())

/**
 * The value of YAML text that a caller sent, with its tags evaluated. It may not have the form of a blueprint. The cost of
 * refusing a text that is too large does not grow with the text.
 *
 * @throws {Problem} `invalid`, with line and column where there is one
 */
export function readSentText(text: string): unknown {
  try {
    return readText(text, 'refuse')
  } catch (error) {
    throw error instanceof TagError ? refusedTag(error) : error
  }
}

/**
 * Parses YAML text of any form, with the limits of a blueprint, and evaluates its tags.
 *
 * @param prepare changes the document as it is written, before its tags are evaluated
 * @throws {Problem} `invalid`, with line and column where there is one
 * @throws {TagError} with its place where it has one
 */
export function readText(
  text: string,
  caller: CallerSide,
  prepare: (written: unknown) => unknown = (written) => written,
): unknown {
  return placed(text, () => evaluateDocument(prepare(readWritten(text)), caller))
}

/**
 * Parses YAML text of any form, with the limits of a blueprint, and leaves its tags as they are.
 *
 * @throws {Problem} `invalid`, with line and column where there is one
 */
export const readWritten = (text: string): unknown => theOnly(readDocuments(text, 'sent'))

/** Parses each document of a text of another service, with `!Unread` for tags that are unknown here. One may be empty. */
export const readForeign = (text: string): unknown[] => readDocuments(text, 'foreign')

function readDocuments(text: string, origin: 'sent' | 'foreign'): unknown[] {
  if (Buffer.byteLength(text) > documentLimits.bytes)
    throw refused(`is longer than ${documentLimits.bytes} bytes`, 'too_long')
  const breaks = /[\r\n\\]/g
  for (let count = 0; breaks.test(text); count += 1) {
    if (count >= documentLimits.breaks)
      throw refused(`holds more than ${documentLimits.breaks} line breaks and backslashes`, 'too_long')
  }
  return construct(text, countingDepth, origin)
}

/** The start of the entries of a document that `printOnLines` printed. `dump` would have indented them. */
const linesBegin = '\nentries:\n- {'
/** Entries that are parsed in one piece. */
const atATime = 20

/**
 * Parses the YAML text of a checked document, with turns for other work when it is large. Aliases are refused: it was printed
 * without them.
 *
 * @throws {Problem} `invalid`, with line and column where there is one
 */
export async function parse(text: string): Promise<Blueprint> {
  const stored = (part: string) => theOnly(construct(part, () => documentLimits.depth, 'stored'))
  const end = text.indexOf(linesBegin)
  if (end === -1) return readDocument(placed(text, () => evaluateStored(stored(text))))
  const lines = text
    .slice(end + linesBegin.indexOf('- {'))
    .trimEnd()
    .split('\n')
  const takeTurns = turns()
  const written = { ...(stored(text.slice(0, end)) as object), entries: [] as unknown[] }
  for (let from = 0; from < lines.length; from += atATime) {
    await takeTurns()
    written.entries.push(...(stored(lines.slice(from, from + atATime).join('\n')) as unknown[]))
  }
  await takeTurns()
  const evaluated = evaluateStored(written)
  await takeTurns()
  return readDocument(evaluated)
}

/**
 * Checks that a value has the form of a blueprint, for example one that was sent as JSON, without tags.
 *
 * @throws {Problem} `invalid`, with all errors of the form
 */
export function readDocument(value: unknown): Blueprint {
  const errors = new ErrorList()
  const blueprint = readStored(value, errors)
  if (blueprint === undefined) throw errors.problem(unreadable)
  return blueprint
}

/** Checks the form of a document that was sent now. @param errors takes the errors. @returns undefined for another form */
export function readForm(value: unknown, errors: ErrorList): Blueprint | undefined {
  const blueprint = readStored(value, errors)
  for (const [path, text] of blueprint === undefined ? [] : shownTexts(blueprint)) {
    // White space is shown as one blank.
    const hidden = shownOnly(text.replaceAll(/\s+/g, ' '))
    if (hidden !== undefined) errors.of('entry').add(path, 'wrong_format', hidden)
  }
  return blueprint
}

/** The texts of a document that are displayed, beside the fields of its rows. */
function* shownTexts({ metadata, entries }: Blueprint): Generator<[FieldPath, string]> {
  yield [['metadata', 'name'], metadata.name]
  for (const [label, value] of Object.entries(metadata.labels ?? {}))
    yield [['metadata', 'labels', label], `${label} ${value}`]
  for (const [index, { id = '', was = '' }] of entries.entries())
    yield* [[['entries', index, 'id'], id] as [FieldPath, string], [['entries', index, 'was'], was]]
}

/** Checks the form of a stored document. Those of earlier versions are read as they are. */
function readStored(value: unknown, errors: ErrorList): Blueprint | undefined {
  const normal = normalise(value)
  const parsed = documentSchema.safeParse(normal)
  if (parsed.success) return named(parsed.data)
  addIssues(errors.of('entry'), parsed.error.issues, { input: normal, known: fieldsAt })
  return undefined
}

const entrySchema = documentSchema.shape.entries.element

const fieldsAt = ([first, , ...more]: FieldPath): readonly string[] => {
  if (first === undefined) return Object.keys(documentSchema.shape)
  return first === 'entries' && more.length === 0 ? Object.keys(entrySchema.shape) : []
}

/** The entries that have the right form, with their indexes, of a document that may not have it. */
export function readEntries(value: unknown): { readonly index: number; readonly entry: Entry }[] {
  const normal = normalise(value)
  const entries = isObject(normal) && Array.isArray(normal.entries) ? normal.entries : []
  return entries.slice(0, documentLimits.entries).flatMap((each: unknown, index) => {
    const { data } = entrySchema.safeParse(each)
    return data === undefined ? [] : [{ index, entry: data }]
  })
}

/**
 * A blueprint without members that have no effect, and with the name of its first entry when it has none of its own. With `prune` the
 * name is a part of the stack's: it does not follow from the entries.
 */
function named({ context: _, metadata, entries, ...rest }: z.output<typeof documentSchema>): Blueprint {
  const [first] = rest.prune === undefined ? entries : []
  const [identifier] = Object.values(first?.identifiers ?? {})
  const text = [first?.model, identifier].filter((part) => typeof part === 'string').join(' ')
  return {
    ...rest,
    metadata: { ...metadata, name: metadata?.name ?? filledLine(255).safeParse(text).data ?? 'blueprint' },
    entries: entries.map(({ permissions: _, ...entry }) => entry),
  }
}

/** Adds the place to an error of a tag. */
export function placed<Result>(text: string, work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof TagError)) throw error
    const offset = error instanceof ForbiddenName ? offsetOfKey(text, forbiddenName) : error.offset
    if (offset !== undefined) error.place = placesIn(text)(offset)
    throw error
  }
}

const refusedTag = (error: TagError) =>
  refused(error.message, error instanceof ForbiddenName ? 'unknown_field' : 'syntax', error.place)

function theOnly(documents: readonly unknown[]): unknown {
  const [only = null] = documents
  if (documents.length > 1) throw refused(`holds ${documents.length} documents: it takes one`, 'unsupported_yaml')
  if (only !== null) return only
  throw refused('is empty, or holds only comments: write its content, or remove it', 'unsupported_yaml')
}

function construct(text: string, maxDepth: () => number, origin: 'sent' | 'stored' | 'foreign'): unknown[] {
  const isSent = origin !== 'stored'
  let events: Event[] = []
  try {
    events = isSent ? eventsOf(text, maxDepth) : parseEvents(text, { maxDepth: maxDepth() })
    const unkept = isSent ? unkeptNumbers(text, events) : []
    if (origin === 'sent') refuseNumbers(unkept, text)
    const offsets = unkept.map(({ offset }) => offset)
    const tags = [...parsedTags(events, text), ...(origin === 'foreign' ? unreadTags(events, text, offsets) : [])]
    const base = isSent ? sentSchema : parseSchema
    return constructFromEvents(events, {
      source: text,
      schema: tags.length === 1 ? base : base.withTags(...tags),
      maxAliases: isSent ? documentLimits.expanded : 0,
      maxTotalMergeKeys: isSent ? documentLimits.expanded : 0,
    })
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error
    const { message, place } = explain(error, text, events)
    throw problemOf(message, 'syntax', place)
  }
}

/**
 * The depth limit as a number that counts how often it is read. The parser compares with it at the start of each node, and has no
 * other place where nodes could be counted before all of them are in memory.
 */
function countingDepth(): number {
  let nodes = 0
  const depth = {
    [Symbol.toPrimitive]: () => {
      nodes += 1
      if (nodes > documentLimits.nodes) throw refused(`holds more than ${documentLimits.nodes} nodes`, 'too_long')
      return documentLimits.depth
    },
  }
  return depth as unknown as number
}

/** Refuses all such numbers at once: only their places are known. */
function refuseNumbers(unkept: ReturnType<typeof unkeptNumbers>, text: string): void {
  if (unkept.length === 0) return
  const errors = new ErrorList()
  for (const { path } of unkept) errors.add(path, 'invalid_value', notKept)
  const places = unkept.map(({ offset }) => offset).map(placesIn(text))
  throw errors
    .problem(unreadable)
    .withErrors(errors.list.map((error, index) => ({ ...error, place: { pointer: error.path, ...places[index] } })))
}

const unreadable = 'The blueprint cannot be read.'

function refused(why: string, code: ErrorCode, at?: LineColumn): Problem {
  const place = at === undefined ? '' : ` (line ${at.line}, column ${at.column})`
  return problemOf(sentence(`The blueprint ${why.replace(/\.$/, '')}${place}`), code, at)
}

const problemOf = (message: string, code: ErrorCode, at: LineColumn | undefined) =>
  new Problem('invalid', unreadable, {
    fields: { blueprint: [message] },
    errors: [{ path: ['blueprint'], code, message, place: { pointer: [], ...at } }],
  })
