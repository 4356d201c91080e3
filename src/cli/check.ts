import { isBlueprint } from '../document/document.ts'
import { placesIn } from '../document/nodes.ts'
import { withPlaces } from '../document/places.ts'
import { isTag, type TagError } from '../document/tags.ts'
import { readForm } from '../document/yaml.ts'
import { detailOf, type ErrorDetail, ErrorList } from '../errors.ts'
import { isObject } from '../json-object.ts'
import { loadRegistry, type Registry } from '../models/registry.ts'
import { compile } from '../plan/compile.ts'
import { errorsOfEntries } from '../plan/read-blueprint.ts'
import { ownerIn, toBlueprint } from '../plan/submission.ts'
import { circlesOnce, type Located, linesOf, type SourceFile, toPath } from './places.ts'

/** The checks of the service that need no database: the form of a file, and its fields against the models of this version. */

/** The errors of a file, each with its place. */
export const errorsOf = async (source: SourceFile): Promise<Located> =>
  located(source, errorsIn(source.value, await loadRegistry()))

/** Gives errors their places in the file. */
export async function located(source: SourceFile, errors: ErrorList): Promise<Located> {
  const details = await detailsOf(source, errors)
  return { errors: [...linesOf(source.file, details), ...[errors.unlisted ?? []].flat()], details }
}

async function detailsOf({ value, text }: SourceFile, { list }: ErrorList): Promise<readonly ErrorDetail[]> {
  // The text is read once more for them.
  if (list.length === 0) return []
  return circlesOnce(withPlaces(list, { value, text, registry: await loadRegistry() }).map(detailOf))
}

/** The errors of a blueprint or a submission, which may hold tags that have no value. */
function errorsIn(value: unknown, registry: Registry): ErrorList {
  const errors = new ErrorList()
  if (!isBlueprint(value)) {
    ownerIn(value, errors)
    return toBlueprint(value, registry, undefined, errors).plan.errors
  }
  const blueprint = readForm(value, errors)
  if (blueprint !== undefined) return errors.include([compile(blueprint, registry).errors])
  return errors.include([errorsOfEntries({ value, text: undefined }, registry)])
}

/** The most errors that are listed. An export of a large installation has hundreds of variables: each is a line. */
const maxListed = 500

/** All errors of a file in which tags have no value: those of the tags, and those of the rest without them. */
export async function errorsBesideTags(source: SourceFile, tagErrors: readonly TagError[]): Promise<Located> {
  const { file, text, value } = source
  const placeAt = placesIn(text)
  const ofTags = tagErrors.map(
    ({ message, offset = 0 }): ErrorDetail => ({ code: 'syntax', message, pointer: '', ...placeAt(offset) }),
  )
  const found = isObject(value) ? await detailsOf(source, errorsIn(value, await loadRegistry())) : []
  const all = [...ofTags, ...found.filter((detail) => !isOfTag(detail, value))].sort(
    (one, other) => (one.line ?? 0) - (other.line ?? 0) || (one.column ?? 0) - (other.column ?? 0),
  )
  const details = all.slice(0, maxListed)
  const more = all.length - details.length
  const unlisted = more === 0 ? [] : [`${more} more errors are not listed.`]
  return { errors: [...linesOf(file, details), ...unlisted], details }
}

/** Whether an error concerns a value that is missing because its tag has none. */
function isOfTag({ code, pointer }: ErrorDetail, value: unknown): boolean {
  if (code.startsWith('unknown_')) return false
  let node = value
  for (const part of toPath(pointer)) {
    if (isTag(node)) return true
    node = typeof node === 'object' && node !== null ? (node as Record<string, unknown>)[part] : undefined
  }
  return isTag(node)
}
