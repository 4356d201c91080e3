import { fileHelp, fileOptions, flag, readArguments } from '../arguments.ts'
import { errorsOf } from '../check.ts'
import { emptyResult, type Result } from '../deliver.ts'
import { UsageError } from '../exit.ts'
import { type Document, isUnreadable, readInputs } from '../inputs.ts'
import { compareFiles } from '../joined.ts'
import { openOutput } from '../output.ts'
import { printResult } from '../report.ts'
import { finish, redacted } from '../send.ts'

export const usage = `gatewright validate FILE... [OPTIONS]

Checks files without a service: their form, and each field against the models of this version. What must exist in the
database (references, required fields of what is new) is checked by plan.

${fileHelp}  --schema             instead of that, prints the JSON Schema of files, for editors, and says how they use it
`

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, { ...fileOptions, schema: flag })
  if (values.schema === true) {
    if (positionals.length > 0) throw new UsageError('Use either files or --schema.')
    return (await import('../schema.ts')).printSchema()
  }
  const { documents, secrets } = await readInputs(positionals, { ...values, isPlan: true })
  const output = openOutput(values, secrets)
  const readable = documents.filter((each): each is Document => !isUnreadable(each))
  const { refused } = await compareFiles(readable, { label: undefined, isOption: false })
  const twice = new Map(refused.map((each) => [each.file, each.errors]))
  const results: Result[] = []
  for (const document of documents) {
    const { file } = document
    const { errors: found, details = [] } = isUnreadable(document) ? document : await errorsOf(document)
    const errors = [...found, ...(twice.get(file) ?? [])]
    const outcome = errors.length === 0 ? 'valid' : 'refused'
    results.push(redacted({ ...emptyResult, file, errors, details, outcome }, output))
  }
  for (const result of results) printResult(output, result)
  return finish(results, output, 'validate', values.summary)
}
