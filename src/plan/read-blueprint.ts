import type { Blueprint } from '../document/document.ts'
import { withPlaces } from '../document/places.ts'
import { readEntries, readSentText } from '../document/yaml.ts'
import { type ErrorList, Problem } from '../errors.ts'
import type { Registry } from '../models/registry.ts'
import { compile } from './compile.ts'

/** A blueprint as it was sent: text in YAML, or a value that was parsed from JSON. */
export type SentBlueprint = {
  readonly value: unknown
  /** The text; undefined for JSON. */
  readonly text: string | undefined
}

/** @throws {Problem} `invalid` for a text that is not YAML */
export const readSent = (body: unknown): SentBlueprint =>
  typeof body === 'string' ? { value: readSentText(body), text: body } : { value: body, text: undefined }

/**
 * The errors in the entries with the right form, when the document as a whole has another form: one answer lists both. A `!KeyOf`
 * may name an entry with another form, so an unknown one is no error here.
 */
export function errorsOfEntries({ value }: SentBlueprint, registry: Registry): ErrorList {
  const read = readEntries(value)
  const blueprint: Blueprint = { version: 1, metadata: { name: '' }, entries: read.map(({ entry }) => entry) }
  const { errors } = compile(blueprint, registry, (_, index) => ['entries', read[index]?.index ?? index])
  return errors.without('unknown_entry')
}

/** Gives the errors of a refused document their places. */
export function placed(error: unknown, sent: SentBlueprint, registry: Registry): unknown {
  if (!(error instanceof Problem) || error.errors === undefined) return error
  return error.withErrors(withPlaces(error.errors, { ...sent, registry }))
}
