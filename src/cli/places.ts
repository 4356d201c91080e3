import { z } from 'zod'
import type { ErrorDetail, FieldPath } from '../errors.ts'
import { isObject } from '../json-object.ts'

/** Errors with their places in the caller's own file: the text that is sent may have other lines. */

const detail = z.looseObject({ code: z.string(), message: z.string(), pointer: z.string().optional() })

/** The errors of a refusal, one by one, where the answer has them. */
export function detailsOf({ body }: { readonly body: unknown }): readonly ErrorDetail[] {
  const { data } = z.object({ errors: z.array(detail) }).safeParse(body)
  // A newer service may have codes that this version does not know: they are only printed.
  return (data?.errors ?? []) as readonly unknown[] as readonly ErrorDetail[]
}

/** A file of the caller by its name, or `standard input`, with its value. */
export type SourceFile = { readonly file: string; readonly text: string; readonly value: unknown }

export type Located = { readonly errors: readonly string[]; readonly details: readonly ErrorDetail[] }

/** The variables of secrets that are not set, and a line for each secret that is not compared with what stands. */
export type Unset = { readonly variables: readonly string[]; readonly lines: readonly string[] }

/** A file of the document that is sent. */
export type Part = {
  readonly document: SourceFile & { readonly form: 'submission' | 'blueprint'; readonly unset?: Unset | undefined }
  /** The index of its first entry in the document. */
  readonly from: number
  /** Its entries that are sent, with their places in the file; absent for a file that is sent as it is. */
  readonly entries?: readonly Placed[]
}

export type Placed = { readonly entry: unknown; readonly place: FieldPath }

/** The entries of a blueprint: a list, or a mapping of lists. Undefined for anything else. */
export function entriesIn(written: unknown): readonly Placed[] | undefined {
  const inList = (list: readonly unknown[], place: FieldPath) =>
    list.map((entry, index) => ({ entry, place: [...place, index] }))
  if (Array.isArray(written)) return inList(written, ['entries'])
  if (!isObject(written) || !Object.values(written).every((list) => Array.isArray(list))) return undefined
  return Object.entries(written).flatMap(([name, list]) => inList(list as readonly unknown[], ['entries', name]))
}

/** The entries of a file. The two of a submission have the names of its parts. */
export function entriesOf(value: unknown): readonly Placed[] {
  const { entries, provider_model: model, provider, app } = Object(value)
  const submitted = (id: string, model: unknown, name: string, attrs: unknown) =>
    isObject(attrs) ? [{ entry: { id, model, identifiers: { [name]: attrs[name] }, attrs }, place: [id] }] : []
  const ofProvider = submitted('provider', model, 'name', provider)
  return entriesIn(entries) ?? [...ofProvider, ...submitted('app', 'service_core.application', 'slug', app)]
}

/** The entries of a part that are sent. */
export const sentOf = ({ document, entries }: Part): readonly Placed[] => entries ?? entriesOf(document.value)

/**
 * Finds each error of an answer in its file by its pointer, like the service does in the text that was sent.
 *
 * @param lines those of all errors. What is in no detail follows, such as the number of errors that are not listed, or the advice
 *   of a 409
 */
export async function locate(parts: readonly Part[], { errors: lines, details: all }: Located): Promise<Located> {
  const details = circlesOnce(all)
  const errors: string[] = []
  const found: ErrorDetail[] = []
  for (const part of parts) {
    const own = details.flatMap((each) => pointedIn(each, part, parts))
    if (own.length === 0) continue
    const pointers = own.map(({ pointer }) => toPath(pointer))
    const spots = await spotsIn(part.document, pointers)
    const placed = own.map(({ line: _, column: __, source: ___, ...rest }, index) => ({
      ...rest,
      // What concerns the whole document has no line, and values inside of a tag that was replaced, such as `!If`, have none.
      ...(rest.pointer && spots[index]),
    }))
    errors.push(...linesOf(part.document.file, placed))
    found.push(...placed)
  }
  const messages = found
    .map(({ message }) => message.replace(/\.$/, ''))
    .sort((one, other) => other.length - one.length)
  const others = lines.map((line) => messages.reduce(without, line).replace(/^[.;\s]+/, ''))
  return { errors: [...errors, ...others.filter((line) => line !== '')], details: found }
}

/** The errors, of which those of one circle of references stand at its first entry only. */
export const circlesOnce = (details: readonly ErrorDetail[]): readonly ErrorDetail[] => {
  const said = new Set<string>()
  return details.filter(({ code, message }) => code !== 'circle' || (!said.has(message) && said.add(message)))
}

/** The line without a message and the name of its field. */
function without(line: string, message: string): string {
  const at = line.indexOf(message)
  if (at < 0) return line
  return `${line.slice(0, at).replace(/^.*: $/, '')}${line.slice(at + message.length).replace(/^[.;]\s*/, '')}`
}

/** @returns the error with its pointer in the file of the part; none for an error of another part */
function pointedIn(detail: ErrorDetail, part: Part, parts: readonly Part[]): ErrorDetail[] {
  const { document, entries, from } = part
  if (entries === undefined) return [detail]
  const [, , number = '', ...rest] = (detail.pointer ?? '').split('/')
  const index = /^\/entries\/\d/.test(detail.pointer ?? '') ? Number(number) : -1
  if (parts.findLast((each) => each.from <= index) !== part) return []
  const place = (entries[index - from]?.place ?? []).map((each) =>
    String(each).replaceAll('~', '~0').replaceAll('/', '~1'),
  )
  // The two entries of a submission are its provider and its application, with their fields.
  return [{ ...detail, pointer: ['', ...place, ...(document.form === 'blueprint' ? rest : rest.slice(1))].join('/') }]
}

async function spotsIn({ text, value }: SourceFile, paths: readonly FieldPath[]) {
  // These modules are loaded for errors only: a command that works starts without them.
  const { findSpots } = await import('../document/places.ts')
  const { lookAt } = await import('../document/visibility.ts')
  const { loadRegistry } = await import('../models/registry.ts')
  return findSpots(text, paths, lookAt(value, await loadRegistry()))
}

/** `groups.yaml:12:7` for a place. */
export async function locatePlace(source: SourceFile, place: FieldPath): Promise<string> {
  const [spot] = await spotsIn(source, [place])
  return spot?.line === undefined ? source.file : `${source.file}:${spot.line}:${spot.column}`
}

/** The messages of these codes name the object. */
const ofObjects = new Set<string>(['denied', 'other_owner', 'other_stack', 'changed'])

/** `groups.yaml:12:7 entries.3.name: May not be empty.` */
export const linesOf = (file: string, details: readonly ErrorDetail[]): string[] =>
  details.map(({ code, line, column, message, pointer, header, parameter }) => {
    const place = line === undefined ? '' : `${file}:${line}:${column} `
    const isNamed = line !== undefined && ofObjects.has(code)
    const field = header ?? parameter ?? (isNamed ? '' : fieldOf(toPath(pointer)))
    return `${place}${field === '' ? '' : `${field}: `}${message}`
  })

/** The field in the form of the answer: without the part of the entry. */
function fieldOf([first, index, part, ...rest]: readonly string[]): string {
  const isPart = first === 'entries' && (part === 'attrs' || part === 'identifiers') && rest.length > 0
  return [first, index, ...(isPart ? [] : [part]), ...rest].filter((each) => each !== undefined).join('.')
}

/** The names and indexes of a JSON pointer. */
export const toPath = (pointer = ''): readonly string[] =>
  pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
