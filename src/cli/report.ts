import { differences } from '../sides.ts'
import type { Result } from './deliver.ts'
import { type ExitCode, exitCodes } from './exit.ts'
import { type Colour, type Output, shown } from './output.ts'
import { type Change, type FieldChange, idOf } from './runs.ts'
import { byFile, totalsOf, totalsText } from './totals.ts'

/** The results of a command over files, as lines and as JSON. */

const looks: Readonly<Record<Result['outcome'], { colour: Colour; code: ExitCode }>> = {
  applied: { colour: 'green', code: exitCodes.done },
  valid: { colour: 'green', code: exitCodes.done },
  unchanged: { colour: 'dim', code: exitCodes.done },
  accepted: { colour: 'yellow', code: exitCodes.done },
  changes: { colour: 'yellow', code: exitCodes.changes },
  refused: { colour: 'red', code: exitCodes.refused },
  'not tried': { colour: 'dim', code: exitCodes.done },
  unknown: { colour: 'red', code: exitCodes.unknown },
  unreachable: { colour: 'red', code: exitCodes.unknown },
}

/** The exit code for several outcomes: unknown ones are reported before refused ones. */
export function codeOfResults(results: readonly Result[]): ExitCode {
  const codes = results.map(({ outcome }) => looks[outcome].code)
  const { unknown, refused, changes, done } = exitCodes
  return [unknown, refused, changes].find((code) => codes.includes(code)) ?? done
}

/** The next step after an outcome, where it is not obvious. */
const advice: Partial<Readonly<Record<Result['outcome'], string>>> = {
  unknown: 'It may have been applied, or not. Run the same again: what stands already is reported as unchanged.',
  unreachable: 'Nothing was applied.',
  accepted: 'Recorded. Its outcome is not known yet.',
}

const width = 12
const indent = ' '.repeat(width)

/** Prints one result. @param isDiff shows each field */
export function printResult(
  output: Output,
  result: Result,
  { isDiff = false, isAll = false }: { isDiff?: boolean; isAll?: boolean } = {},
): void {
  const { file, outcome, status, errors, details, changes, run, etag } = result
  const word = output.paint(looks[outcome].colour, outcome.padEnd(width - 1))
  output.line(`${word} ${shown(file)}${status === undefined ? '' : ` (${status})`}`)
  const print = (text: string) => {
    for (const line of shown(text).split('\n')) output.line(`${indent}${line}`)
  }
  for (const [index, error] of errors.entries()) {
    print(error)
    const { line, source } = details[index] ?? {}
    if (source !== undefined) print(`${String(line).padStart(5)} | ${source}`)
  }
  if (isDiff && changes !== null) for (const line of changes.flatMap(diffLines)) output.line(paintDiff(output, line))
  else for (const line of logsOf(result)) print(line)
  // The lines of the log have these facts already, where they are printed.
  if (isDiff || outcome === 'unchanged') for (const line of unmanagedLines(result)) print(line)
  if (isAll) {
    for (const line of unnamedLines(result)) print(line)
    if (result.unnamed === null) print('What no file has is listed for an owner: --owner LABEL.')
  }
  const next = advice[outcome]
  if (next !== undefined) print(next)
  if (run !== null && ['accepted', 'unknown'].includes(outcome)) print(`gatewright logs -f ${idOf(run)}`)
  if (etag !== null && outcome === 'changes' && !isDiff) print(`plan ${etag.replaceAll('"', '')}`)
}

/** The lines of the log, and what a roll back leaves. An unchanged file has one line of its own. */
export const logsOf = (result: Result): readonly string[] => {
  const { outcome, logs, changes } = result
  return [...(outcome === 'unchanged' && changes !== null ? [] : logs), ...leftLines(result)]
}

const leftLines = ({ not_put_back: left }: Pick<Result, 'not_put_back'>): string[] =>
  (left ?? []).map((each) => `not put back: ${each}`)

function paintDiff(output: Output, line: string): string {
  const text = `${indent}${shown(line)}`
  if (line.trimStart().startsWith('+')) return output.paint('green', text)
  if (line.trimStart().startsWith('-')) return output.paint('red', text)
  return text
}

const marks: Readonly<Record<string, string>> = { create: '+', delete: '-', update: '~' }

/** `service_core.application "grafana"` */
export const objectOf = ({ model, key }: Pick<Change, 'model' | 'key'>): string =>
  [model, ...Object.values(key).map((value) => JSON.stringify(value))].join(' ')

export function diffLines(change: Change): string[] {
  const { action, fields } = change
  if (action === 'unchanged') return []
  const lines = Object.entries(fields).flatMap(([name, field]) => fieldLines(name, field))
  return [`${marks[action] ?? '?'} ${objectOf(change)}`, ...lines]
}

/** The lines about fields that a file named before. */
const unmanagedLines = ({ unmanaged }: Pick<Result, 'unmanaged'>): string[] =>
  (unmanaged ?? []).map(({ model, key, fields }) => {
    const what =
      fields.length === 1 ? 'is no longer managed, keeps its value' : 'are no longer managed, keep their values'
    return `${objectOf({ model, key })}: ${fields.join(', ')} ${what}`
  })

/** The lines about objects that the owner manages and no file has. */
const unnamedLines = ({ unnamed }: Pick<Result, 'unnamed'>): string[] =>
  (unnamed ?? []).map(({ owner, ...object }) => `? ${objectOf(object)} of owner ${owner} is in no file`)

/** The lines that stand beside the changes of a plan. */
export const asides = (result: Result): string[] => [
  ...unnamedLines(result),
  ...unmanagedLines(result),
  ...leftLines(result),
]

function fieldLines(name: string, field: FieldChange): string[] {
  if (typeof field === 'string') return field === 'unchanged' ? [] : [`  ~ ${name}: ${field}`]
  const { listed, more } = differences(name, field, { length: Number.POSITIVE_INFINITY })
  const lines = listed.flatMap(({ path, from, to }) => [
    ...(from === undefined || (from === 'null' && to !== undefined) ? [] : [`  - ${path}: ${from}`]),
    ...(to === undefined ? [] : [`  + ${path}: ${to}`]),
  ])
  return [...lines, ...(more > 0 ? [`  ~ ${name}: ${more} more`] : [])]
}

/** Prints the numbers of objects that are added, changed and deleted, where they are known. */
export function printTotals(output: Output, results: readonly Result[], isDone: boolean): void {
  const totals = totalsOf(results)
  if (totals !== null) output.line(output.paint('bold', totalsText(totals, isDone)))
}

/** `2 applied, 1 refused` */
export function outcomesOf(results: readonly Result[]): string {
  const groups = Map.groupBy(results, ({ outcome }) => outcome)
  return [...groups].map(([outcome, { length }]) => `${length} ${outcome}`).join(', ')
}

/** The one JSON document of `--json`. */
export const toJson = (results: readonly Result[]) => ({
  exit: codeOfResults(results),
  totals: totalsOf(results),
  results: results.map((result) => {
    const parts = byFile(result).map(({ file, outcome }) => ({ file, outcome }))
    return {
      ...result,
      files: parts.map(({ file }) => file),
      status: result.status ?? null,
      unnamed: result.unnamed ?? null,
      unmanaged: result.unmanaged ?? [],
      not_put_back: result.not_put_back ?? [],
      parts,
    }
  }),
})
