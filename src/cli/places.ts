import { z } from 'zod'
import type { ErrorDetail, FieldPath } from '../errors.ts'
import { isObject } from '../json-object.ts'
import type { Answer } from './client.ts'

/** Errors with their places in the caller's own file: the text that is sent may have other lines. */

const detail = z.looseObject({ code: z.string(), message: z.string(), pointer: z.string().optional() })

/** The errors of a 400, one by one; none for another answer. */
export function detailsOf({ status, body }: Answer): readonly ErrorDetail[] {
  const { data } = z.object({ errors: z.array(detail) }).safeParse(body)
  // A newer service may have codes that this version does not know: they are only printed.
  return status === 400 && data !== undefined ? (data.errors as readonly unknown[] as readonly ErrorDetail[]) : []
}

/** A file of the caller, with its value. */
export type SourceFile = { readonly file: string; readonly text: string; readonly value: unknown }

export type Located = { readonly errors: readonly string[]; readonly details: readonly ErrorDetail[] }

/**
 * Finds each error in the file by its pointer, like the service does in the text that was sent. Values inside of a tag that was
 * replaced, such as `!If`, have no line.
 *
 * @param lines those of all errors. Lines that are in no detail follow, such as the number of errors that are not listed
 */
export async function locate(
  source: SourceFile,
  details: readonly ErrorDetail[],
  lines: readonly string[],
): Promise<Located> {
  if (details.length === 0) return { errors: lines, details }
  const paths = details.map(({ pointer }) => toPath(pointer))
  const spots = await spotsIn(source, paths)
  const located = details.map(
    ({ line: _, column: __, source: ___, ...rest }, index): ErrorDetail => ({
      ...rest,
      ...(rest.pointer !== undefined && spots[index]),
    }),
  )
  const others = lines.filter((line) => !details.some(({ message }) => line.includes(message)))
  return { errors: [...located.map((each) => lineOf(source.file, each)), ...others], details: located }
}

/** A place in a file: the names and indexes on the way to it. */
export type Place = readonly (string | number)[]

/** The entries of a blueprint with their places: a list, or a mapping of lists. Undefined for anything else. */
export function entriesIn(written: unknown): readonly { readonly entry: unknown; readonly place: Place }[] | undefined {
  const inList = (list: readonly unknown[], place: Place) =>
    list.map((entry, index) => ({ entry, place: [...place, index] }))
  if (Array.isArray(written)) return inList(written, ['entries'])
  if (!isObject(written) || !Object.values(written).every((list) => Array.isArray(list))) return undefined
  return Object.entries(written).flatMap(([name, list]) => inList(list as readonly unknown[], ['entries', name]))
}

async function spotsIn({ text, value }: SourceFile, paths: readonly FieldPath[]) {
  // These modules are loaded for errors only: a command that works starts without them.
  const [{ findSpots }, { lookAt }, { loadRegistry }] = await Promise.all([
    import('../document/places.ts'),
    import('../document/visibility.ts'),
    import('../models/registry.ts'),
  ])
  return findSpots(text, paths, lookAt(value, await loadRegistry()))
}

/** `groups.yaml:12:7` for a place. */
export async function locatePlace(source: SourceFile, place: Place): Promise<string> {
  const [spot] = await spotsIn(source, [place])
  return spot?.line === undefined ? source.file : `${source.file}:${spot.line}:${spot.column}`
}

/** `groups.yaml:12:7 entries.3.name: May not be empty.` */
function lineOf(file: string, { line, column, message, pointer, header, parameter }: ErrorDetail): string {
  const place = line === undefined ? '' : `${file}:${line}:${column} `
  const field = header ?? parameter ?? fieldOf(toPath(pointer))
  return `${place}${field === '' ? '' : `${field}: `}${message}`
}

/** The field in the form of the answer: without the part of the entry. */
function fieldOf([first, index, part, ...rest]: FieldPath): string {
  const isPart = first === 'entries' && (part === 'attrs' || part === 'identifiers') && rest.length > 0
  return [first, index, ...(isPart ? [] : [part]), ...rest].filter((each) => each !== undefined).join('.')
}

const toPath = (pointer = ''): FieldPath =>
  pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
