import { loadRegistry } from '../../models/registry.ts'
import { readArguments, readContext } from '../arguments.ts'
import { type ExitCode, exitCodes, UsageError } from '../exit.ts'
import { type Imported, importText, type Judgement } from '../importing.ts'
import { readOne, standardInput } from '../inputs.ts'
import { type Output, openOutput, shown, writeOut } from '../output.ts'

/** `gatewright import`: a document of another service of this API family. */

export const usage = `gatewright import FILE [OPTIONS]

Reports what of a blueprint of another service of this API family can be applied here: for each entry whether it applies,
applies partly (without what is unknown here), or cannot be applied, and why. Flows, property mappings and the key pair that
are shipped there are those that are shipped here. A WARNING names each application whose access is not restricted any more.
Prints a blueprint of the entries that can
be applied; the report stands above it, as comments. Models may have another prefix (theirs_flows.flow is
service_flows.flow). What must exist in the database is checked by plan. !Env and !File stay as they are: apply resolves
them. The exit code is 1 unless all entries apply as they are.

  FILE                 a file, or - for standard input
  --out FILE           writes the blueprint to FILE
  --context KEY=VALUE  the value of !Context KEY; repeat it for more
  --json               one JSON document on standard output
`

const options = {
  out: { type: 'string' },
  context: { type: 'string', multiple: true },
  json: { type: 'boolean' },
} as const

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, options)
  const [path, ...others] = positionals
  if (path === undefined || others.length > 0) throw new UsageError('import takes one file, or - for standard input.')
  const context = readContext(values.context)
  const imported = importText(await readOne(path), context, await loadRegistry())
  const { out } = values
  if (out !== undefined && imported.document !== null) writeOut(out, imported.document)
  const exit = codeOf(imported)
  const output = openOutput()
  if (values.json === true) output.json(toJson(path === '-' ? standardInput : path, exit, imported))
  else printReport(output, imported, out)
  return exit
}

const codeOf = ({ judgements }: Imported): ExitCode =>
  judgements.every(({ outcome }) => outcome === 'applies') ? exitCodes.done : exitCodes.refused

const toJson = (file: string, exit: ExitCode, { judgements, warnings, document }: Imported): string =>
  JSON.stringify(
    {
      exit,
      file,
      entries: judgements.map(({ leftOut, ...judgement }) => ({ ...judgement, left_out: leftOut })),
      warnings,
      document,
    },
    null,
    2,
  )

const colours = { applies: 'green', partly: 'yellow', cannot: 'red' } as const

function printReport(output: Output, { judgements, warnings, document }: Imported, out: string | undefined): void {
  // Above the blueprint, the report is a comment.
  const mark = out === undefined ? '# ' : ''
  const tell = (text: string) => output.line(`${mark}${text}`)
  for (const { entry, model, name, outcome, leftOut, reasons } of judgements) {
    const word = output.paint(colours[outcome], outcome.padEnd(8))
    tell(`${word} entry ${entry}: ${oneLine([model, name].filter(Boolean).join(' '))}`)
    for (const each of leftOut) tell(`         without ${oneLine(each)}`)
    for (const reason of reasons) tell(`         ${oneLine(reason)}`)
  }
  tell(summaryOf(judgements))
  for (const warning of warnings) output.note(output.paint('red', `WARNING: ${oneLine(warning)}`))
  if (document === null) output.note('No entry can be applied: there is no blueprint to write.')
  else if (out === undefined) output.line(document.trimEnd())
}

const oneLine = (text: string): string => shown(text).replace(/\s+/g, ' ')

function summaryOf(judgements: readonly Judgement[]): string {
  const count = (asked: Judgement['outcome']) => judgements.filter(({ outcome }) => outcome === asked).length
  return `of ${judgements.length}: ${count('applies')} applies, ${count('partly')} partly, ${count('cannot')} cannot`
}
