import type { TagError } from '../document/tags.ts'
import { isTag } from '../document/tags.ts'
import { detailOf, type ErrorDetail, type FieldError, type FieldPath } from '../errors.ts'
import { isObject } from '../json-object.ts'
import { type Located, locate, type SourceFile } from './places.ts'

/** All errors of a file in which tags have no value: those of the tags, and those of the rest without them. */

/** The most errors that are listed. An export of a large installation has hundreds of variables: each is a line. */
const maxListed = 500

/** @param value the value of the file, in which the tags of the errors still stand */
export async function errorsBesideTags(
  { file, text, value }: SourceFile,
  tagErrors: readonly TagError[],
): Promise<Located> {
  // These modules are loaded for errors only: a command that works starts without them.
  const { placesIn } = await import('../document/nodes.ts')
  const placeAt = placesIn(text)
  const ofTags = tagErrors.map(({ message, offset = 0 }) => {
    const { line, column } = placeAt(offset)
    const detail: ErrorDetail = { code: 'syntax', message, pointer: '', line, column }
    return { error: `${file}:${line}:${column} ${message}`, detail }
  })
  const others = await otherErrors({ file, text, value })
  const all = [...ofTags, ...others].sort(
    ({ detail: one }, { detail: other }) =>
      (one.line ?? 0) - (other.line ?? 0) || (one.column ?? 0) - (other.column ?? 0),
  )
  const listed = all.slice(0, maxListed)
  const more = all.length - listed.length
  const counted = more === 0 ? [] : [`${more} more errors are not listed.`]
  return { errors: [...listed.map(({ error }) => error), ...counted], details: listed.map(({ detail }) => detail) }
}

async function otherErrors({ file, text, value }: SourceFile): Promise<{ error: string; detail: ErrorDetail }[]> {
  if (!isObject(value)) return []
  const [{ withPlaces }, { loadRegistry }, { errorsOfValue }] = await Promise.all([
    import('../document/places.ts'),
    import('../models/registry.ts'),
    import('./check.ts'),
  ])
  const registry = await loadRegistry()
  const placed = withPlaces(errorsOfValue(value, registry).list, { value, text: undefined, registry })
  const meant = placed.filter((error) => !isOfTag(error, value))
  const { errors, details } = await locate({ file, text, value }, meant.map(detailOf), [])
  return details.map((detail, index) => ({ error: errors[index] ?? detail.message, detail }))
}

/** Whether an error concerns a value that is missing because its tag has none. */
function isOfTag({ code, place, path }: FieldError, value: unknown): boolean {
  const pointer: FieldPath = place?.pointer ?? path
  if (code.startsWith('unknown_')) return false
  let node = value
  for (const part of pointer) {
    if (isTag(node)) return true
    node = typeof node === 'object' && node !== null ? (node as Record<string, unknown>)[String(part)] : undefined
  }
  return isTag(node)
}
