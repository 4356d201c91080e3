import { withPlaces } from '../../document/places.ts'
import { readForm } from '../../document/yaml.ts'
import { detailOf, ErrorList, Problem } from '../../errors.ts'
import { parseJson } from '../../http/body.ts'
import { loadRegistry, type Registry } from '../../models/registry.ts'
import { compile } from '../../plan/compile.ts'
import { unconditional } from '../../plan/engine.ts'
import { errorsOfEntries, readSent } from '../../plan/read-blueprint.ts'
import { toBlueprint } from '../../plan/submission.ts'
import { fileHelp, fileOptions, readArguments, readGiven } from '../arguments.ts'
import { errorLines } from '../client.ts'
import { type Document, isUnreadable, readInputs } from '../inputs.ts'
import { declaredTwice } from '../joined.ts'
import { openOutput } from '../output.ts'
import { type Located, locate } from '../places.ts'
import { codeOfResults, emptyResult, printResult, type Result } from '../report.ts'
import { finish, redacted } from '../send.ts'

/** `gatewright validate`: the checks of the service that need no database. */

export const usage = `gatewright validate FILE... [OPTIONS]

Checks files without a service: their form, and each field against the models of this version. What must exist in the
database (references, required fields of what is new) is checked by plan.

${fileHelp}`

const conditions = { ...unconditional, mode: 'plan' } as const

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, fileOptions)
  const { documents, secrets } = await readInputs(positionals, readGiven(values))
  const output = openOutput(secrets)
  const registry = await loadRegistry()
  const results: Result[] = []
  const readable = documents.filter((each): each is Document => !isUnreadable(each))
  const twice = new Map((await declaredTwice(readable)).map((each) => [each.file, each.errors]))
  for (const document of documents) {
    const { file } = document
    const { errors: found, details } = isUnreadable(document)
      ? { errors: document.errors, details: document.details ?? [] }
      : await errorsOf(document, registry)
    const errors = [...found, ...(twice.get(file) ?? [])]
    const outcome = errors.length === 0 ? 'valid' : 'refused'
    results.push({ ...redacted({ ...emptyResult, errors, details }, output), file, outcome })
  }
  if (values.json !== true) for (const result of results) printResult(output, result)
  finish(results, values, { output, title: 'validate' })
  return codeOfResults(results)
}

async function errorsOf(document: Document, registry: Registry): Promise<Located> {
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

/** @throws {Problem} for what cannot be read as a document */
function errorsIn({ form, body }: Document, registry: Registry): { value: unknown; errors: ErrorList } {
  if (form === 'blueprint') {
    const sent = readSent(body)
    const errors = new ErrorList()
    const blueprint = readForm(sent.value, errors)
    const found = blueprint === undefined ? errorsOfEntries(sent, registry) : compile(blueprint, registry).errors
    return { value: sent.value, errors: errors.include([found]) }
  }
  const { value, errors } = parseJson(Buffer.from(body))
  return { value, errors: toBlueprint(value, registry, conditions, new ErrorList().include([errors])).plan.errors }
}
