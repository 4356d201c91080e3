import { parseSent } from '../../document/yaml.ts'
import { ErrorList, Problem } from '../../errors.ts'
import { parseJson } from '../../http/body.ts'
import { loadRegistry, type Registry } from '../../models/registry.ts'
import { compile } from '../../plan/compile.ts'
import { nothingAllowed } from '../../plan/engine.ts'
import { toBlueprint } from '../../plan/submission.ts'
import { type Command, fileHelp, fileOptions, readArguments, readContext } from '../arguments.ts'
import { errorLines } from '../client.ts'
import { type Document, isUnreadable, readInputs, type Unreadable } from '../inputs.ts'
import { openOutput } from '../output.ts'
import { codeOfResults, emptyResult, printResult, type Result } from '../report.ts'
import { finish } from '../send.ts'

/** `gatewright validate`: the checks of the service that need no database. */

const usage = `gatewright validate FILE... [OPTIONS]

Checks files without a service: their form, and each field against the models of this version. What must exist in the
database (references, required fields of what is new) is checked by plan.

${fileHelp}`

const conditions = {
  ...{
    mode: 'plan' as const,
    reviewed: null,
    createOnly: false,
    replaceProvider: false,
    prune: false,
    owner: null,
    allow: nothingAllowed,
  },
} as const

async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, fileOptions)
  const { documents, secrets } = await readInputs(positionals, readContext(values.context))
  const output = openOutput(secrets)
  const registry = await loadRegistry()
  const results = documents.map((document): Result => {
    const errors = isUnreadable(document) ? document.errors : errorsOf(document, registry)
    const outcome = errors.length === 0 ? 'valid' : 'refused'
    return { file: document.file, ...emptyResult, errors: errors.map(output.redact), outcome }
  })
  if (values.json !== true) for (const result of results) printResult(output, result)
  finish(results, values, { output, title: 'validate' })
  return codeOfResults(results)
}

function errorsOf(document: Exclude<Document, Unreadable>, registry: Registry): readonly string[] {
  try {
    errorsIn(document, registry).throwIfAny()
    return []
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return error.fields === undefined ? [error.message] : errorLines(error.fields)
  }
}

/** @throws {Problem} for what cannot be read as a document */
function errorsIn({ form, body }: Document, registry: Registry): ErrorList {
  if (form === 'blueprint') return compile(parseSent(body), registry).errors
  const { value, errors } = parseJson(Buffer.from(body))
  return toBlueprint(value, registry, conditions, new ErrorList().include([errors])).plan.errors
}

export const command: Command = { usage, options: fileOptions, run }
