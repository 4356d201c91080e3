import { isBlueprint } from '../document/document.ts'
import { withPlaces } from '../document/places.ts'
import { readForm } from '../document/yaml.ts'
import { detailOf, ErrorList, Problem } from '../errors.ts'
import { parseJson } from '../http/body.ts'
import type { Registry } from '../models/registry.ts'
import { compile } from '../plan/compile.ts'
import { errorsOfEntries, readSent } from '../plan/read-blueprint.ts'
import { toBlueprint } from '../plan/submission.ts'
import { errorLines } from './client.ts'
import { type Located, locate, type SourceFile } from './places.ts'

/** The checks of the service that need no database: the form of a file, and its fields against the models of this version. */

type Sent = { readonly form: 'submission' | 'blueprint'; readonly body: string }

export async function errorsOf(document: SourceFile & Sent, registry: Registry): Promise<Located> {
  try {
    const { value, errors } = errorsIn(document, registry)
    const placed = withPlaces(errors.list, { value, text: undefined, registry })
    return await locate(document, placed.map(detailOf), errorLines(errors.tree()))
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const lines = error.fields === undefined ? [error.message] : errorLines(error.fields)
    return await locate(document, error.errors?.map(detailOf) ?? [], lines)
  }
}

/** @throws {Problem} for a file that cannot be read as a document */
function errorsIn({ form, body }: Sent, registry: Registry): { value: unknown; errors: ErrorList } {
  if (form === 'blueprint') {
    const { value } = readSent(body)
    return { value, errors: errorsOfValue(value, registry) }
  }
  const { value, errors } = parseJson(Buffer.from(body))
  return { value, errors: new ErrorList().include([errors]).include([errorsOfValue(value, registry)]) }
}

/** The errors of a blueprint or a submission, which may hold tags that have no value. */
export function errorsOfValue(value: unknown, registry: Registry): ErrorList {
  if (!isBlueprint(value)) return toBlueprint(value, registry).plan.errors
  const errors = new ErrorList()
  const blueprint = readForm(value, errors)
  const sent = { value, text: undefined }
  return errors.include([
    blueprint === undefined ? errorsOfEntries(sent, registry) : compile(blueprint, registry).errors,
  ])
}
