import { differences } from '../sides.ts'
import type { Result } from './deliver.ts'
import { type ExitCode, exitCodes } from './exit.ts'
import { type Colour, type Output, shown } from './output.ts'
import { type FieldChange, idOf, objectOf } from './runs.ts'
import { byFile, type PlacedChange, placed, totalsOf, totalsText, unchangedText } from './totals.ts'

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

/** Prints one result, and why. Files that were not tried are counted at the end. */
export function printResult(output: Output, result: Result): void {
  const { file, outcome, status, errors, details, run } = result
  if (outcome === 'not tried') return
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
  for (const line of logsOf(result)) print(line)
  const next = advice[outcome]
  if (next !== undefined) print(next)
  if (run !== null && ['accepted', 'unknown'].includes(outcome)) print(`gatewright logs -f ${idOf(run)}`)
}

/** Prints plans: what is wrong, the totals, each change with its fields, and the number of what stays. */
export function printPlans(output: Output, results: readonly Result[], isFull: boolean): void {
  const planned = results.filter(({ changes }) => changes !== null)
  for (const result of results) if (result.changes === null) printResult(output, result)
  printTotals(output, results, false)
  // A document of one file does not name it.
  const changes = planned.flatMap((result) =>
    placed(result).map((each) => (results.length > 1 && !isLeftOver(each) ? { file: result.file, ...each } : each)),
  )
  const [left, named] = [changes.filter(isLeftOver), changes.filter((each) => !isLeftOver(each))]
  for (const each of named) printLines(output, blockLines(each, isFull))
  if (left.length > 0) output.line(output.paint('bold', 'left over'))
  for (const each of left) printLines(output, blockLines(each, isFull))
  for (const line of planned.flatMap(remarksOf)) output.line(shown(line))
  for (const line of unchangedText(results)) output.line(line)
}

/** The lines about secrets whose variables are not set. */
const notCompared = ({ parts, changes }: Pick<Result, 'parts' | 'changes'>): string[] =>
  changes === null ? [] : [...new Set(parts.flatMap(({ document }) => document.unset?.lines ?? []))]

/** Whether it is deleted because no file names it any more. */
export const isLeftOver = ({ change: { entry, action } }: PlacedChange): boolean =>
  entry === null && action === 'delete'

/** Lines of the log about what an entry does. The name is a text of JSON, or a key: those in remarks may be any words. */
const ofObject =
  /^[^":]+ (?:"(?:[^"\\]|\\.)*"|\d+) (?:(?:would be )?(?:created|updated|deleted)\b|left as it is$|is not there$)/
const ofUnchanged = /^[^":]+ (?:"(?:[^"\\]|\\.)*"|\d+) unchanged$/

/** The lines of the log, and what a roll back leaves; without the objects that stay as they are. */
export const logsOf = ({ changes, logs, parts, not_put_back: left }: Result): string[] => [
  ...logs.filter((line) => changes === null || !ofUnchanged.test(line)),
  ...(left ?? []).map((each) => `not put back: ${each}`),
  ...notCompared({ parts, changes }),
]

/** The lines of the log that stand beside the changes of a plan. */
export const remarksOf = (result: Result): string[] => logsOf(result).filter((line) => !ofObject.test(line))

function printLines(output: Output, lines: readonly string[]): void {
  for (const line of lines) {
    const colour = ({ '+': 'green', '-': 'red' } as const)[line.trimStart()[0] ?? '']
    output.line(colour === undefined ? shown(line) : output.paint(colour, shown(line)))
  }
}

const marks: Readonly<Record<string, string>> = { create: '+', delete: '-', update: '~' }

/** A change: its object, its file and owner, and its fields. @param isFull whether all of a new object, and long texts and lists are shown */
export function blockLines({ change, file, owner, named }: PlacedChange, isFull: boolean): string[] {
  const { action, fields } = change
  if (action === 'unchanged') return []
  const beside = [...(file === undefined ? [] : [file]), ...(typeof owner === 'string' ? [`owner ${owner}`] : [])]
  const head = `${marks[action] ?? '?'} ${objectOf(change)}${beside.length === 0 ? '' : ` (${beside.join(', ')})`}`
  // The others of a new object have their defaults.
  const shows = (name: string) => isFull || action !== 'create' || named?.has(name) !== false
  const lines = Object.entries(fields).flatMap(([name, field]) => (shows(name) ? fieldLines(name, field, isFull) : []))
  return [head, ...lines]
}

function fieldLines(name: string, field: FieldChange, isFull: boolean): string[] {
  if (typeof field === 'string') return field === 'unchanged' ? [] : [`  ~ ${name}: ${field}`]
  const all = { length: Number.POSITIVE_INFINITY, most: Number.POSITIVE_INFINITY }
  const { listed, more } = differences(name, field, isFull ? all : {})
  const lines = listed.flatMap(({ path, from, to }) => [
    ...(from === undefined || (from === 'null' && to !== undefined) ? [] : [`  - ${path}: ${from}`]),
    ...(to === undefined ? [] : [`  + ${path}: ${to}`]),
  ])
  return [...lines, ...(more > 0 ? [`  ~ ${name}: ${more} more (--full shows them)`] : [])]
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
      not_put_back: result.not_put_back ?? [],
      outputs: result.outputs ?? [],
      not_compared: notCompared(result),
      parts,
    }
  }),
})
