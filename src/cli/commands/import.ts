import { loadRegistry } from '../../models/registry.ts'
import { flag, readArguments, text, texts } from '../arguments.ts'
import { readPairs } from '../context.ts'
import { type ExitCode, exitCodes, UsageError } from '../exit.ts'
import type { Skipped } from '../import/sources.ts'
import { type Given, type Imported, importFiles, type Judgement } from '../importing.ts'
import { filesOf, nameOf } from '../inputs.ts'
import { type Output, oneLine, openOutput, writeOut } from '../output.ts'
import { readTextOf } from '../text-file.ts'

export const usage = `gatewright import PATH... [OPTIONS]

Reports what of blueprints of another service of this API family can be applied here: for each entry whether it applies,
applies partly (without what is unknown here), or cannot be applied, and why. Flows, property mappings and the key pair that
are shipped there are those that are shipped here. A WARNING names each application whose access is not restricted any more.
Prints a blueprint of the entries that can be applied; the report stands above it, as comments. Models may have another
prefix (theirs_flows.flow is service_flows.flow). Keys are labels of their document: an entry is printed by its name, and what
refers to it by !KeyOf. What must exist in the database is checked by plan. !Env and !File stay as they are: apply resolves
them. The exit code is 1 unless all entries apply as they are, and all files can be read.

  PATH                 a file of one document or several, also in the data of ConfigMap and Secret manifests; a folder; or -
                       for standard input
  --out FILE           writes the blueprint to FILE
  --context KEY=VALUE  the value of !Context KEY; repeat it for more
  --json               one JSON document on standard output
`

const options = { out: text, context: texts, json: flag } as const

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, options)
  if (positionals.length === 0) throw new UsageError('import takes files and folders, or - for standard input.')
  const context = new Map(readPairs(values.context))
  const files = await Promise.all(positionals.map((path) => (path === '-' ? [path] : filesOf(path))))
  const given = await Promise.all(files.flat().map(read))
  const imported = await importFiles(given, context, await loadRegistry())
  const { out } = values
  if (out !== undefined && imported.document !== null) writeOut(out, imported.document)
  const exit = codeOf(imported)
  const output = openOutput(values)
  output.json(toJson(positionals.map(nameOf).join(' '), exit, imported))
  if (values.json !== true) printReport(output, imported, out)
  return exit
}

async function read(path: string): Promise<Given | Skipped> {
  const [name, found] = [nameOf(path), await readTextOf(path)]
  return 'text' in found ? { name, text: found.text } : { name, why: `${name}: ${found.why}`, isWrong: true }
}

const codeOf = ({ judgements, skipped }: Imported): ExitCode =>
  judgements.every(({ outcome }) => outcome === 'applies') && !skipped.some(({ isWrong }) => isWrong)
    ? exitCodes.done
    : exitCodes.refused

const toJson = (file: string, exit: ExitCode, { judgements, skipped, warnings, document }: Imported) => ({
  exit,
  file,
  entries: judgements.map(({ leftOut, ...judgement }) => ({ ...judgement, left_out: leftOut })),
  skipped: skipped.map(({ name, why }) => ({ file: name, why })),
  warnings,
  document,
})

const colours = { applies: 'green', partly: 'yellow', cannot: 'red' } as const

function printReport(output: Output, imported: Imported, out: string | undefined): void {
  const { judgements, skipped, warnings, document } = imported
  // The report is a comment above the blueprint.
  const mark = out === undefined ? '# ' : ''
  const print = (text: string) => output.line(`${mark}${text}`)
  for (const { name, why } of skipped) print(`skipped  ${oneLine(`${name}: ${why}`)}`)
  let last = judgements.every(({ file }) => file === judgements[0]?.file) ? judgements[0]?.file : ''
  for (const { file, entry, model, name, outcome, leftOut, ignored, reasons } of judgements) {
    if (file !== last) print(`${oneLine(file)}:`)
    last = file
    const word = output.paint(colours[outcome], outcome.padEnd(8))
    print(`${word} entry ${entry}: ${oneLine([model, name].filter(Boolean).join(' '))}`)
    for (const each of leftOut) print(`         without ${oneLine(each)}`)
    for (const each of ignored) print(`         ignored ${oneLine(each)}`)
    for (const reason of reasons) print(`         ${oneLine(reason)}`)
  }
  print(summaryOf(judgements))
  for (const warning of warnings) output.note(output.paint('red', `WARNING: ${oneLine(warning)}`))
  if (document === null) output.note('No entry can be applied: there is no blueprint to write.')
  else if (out === undefined) output.line(document.trimEnd())
}

function summaryOf(judgements: readonly Judgement[]): string {
  const count = (asked: Judgement['outcome']) => judgements.filter(({ outcome }) => outcome === asked).length
  return `of ${judgements.length}: ${count('applies')} applies, ${count('partly')} partly, ${count('cannot')} cannot`
}
