import { withPlaces } from '../document/places.ts'
import { readForm } from '../document/yaml.ts'
import { detailOf, ErrorList, Problem } from '../errors.ts'
import { parseJson } from '../http/body.ts'
import type { Registry } from '../models/registry.ts'
import { compile } from '../plan/compile.ts'
import { errorsOfEntries, readSent } from '../plan/read-blueprint.ts'
import { toBlueprint } from '../plan/submission.ts'
import { errorLines } from './client.ts'
import type { Document } from './inputs.ts'
import { type Located, locate } from './places.ts'

/** The checks of the service that need no database: the form of a file, and its fields against the models of this version. */

export async function errorsOf(document: Document, registry: Registry): Promise<Located> {
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
function errorsIn({ form, body }: Document, registry: Registry): { value: unknown; errors: ErrorList } {
  if (form === 'blueprint') {
    const sent = readSent(body)
    const errors = new ErrorList()
    const blueprint = readForm(sent.value, errors)
    const found = blueprint === undefined ? errorsOfEntries(sent, registry) : compile(blueprint, registry).errors
    return { value: sent.value, errors: errors.include([found]) }
  }
  const { value, errors } = parseJson(Buffer.from(body))
  return { value, errors: toBlueprint(value, registry, undefined, new ErrorList().include([errors])).plan.errors }
}
