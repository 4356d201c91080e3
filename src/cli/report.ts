import { isObject } from '../json-object.ts'
import { itemsOf } from '../sides.ts'
import type { Delivered, Outcome } from './deliver.ts'
import { type ExitCode, exitCodes, worst } from './exit.ts'
import { type Colour, type Output, shown, writeOut } from './output.ts'
import type { Change, FieldChange } from './runs.ts'

/** The results of a command over files: lines, JSON and a Markdown summary. */

export type Result = Omit<Delivered, 'outcome'> & {
  readonly file: string
  /** Those that were sent as one document. */
  readonly files?: readonly string[]
  readonly outcome: Outcome | 'valid' | 'not tried'
}

export const emptyResult = { logs: [], errors: [], details: [], changes: null, run: null, etag: null } as const

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

export const codeOfResults = (results: readonly Result[]): ExitCode =>
  worst(results.map(({ outcome }) => looks[outcome].code))

/** What to do next, where that is not plain. */
const advice: Partial<Readonly<Record<Result['outcome'], string>>> = {
  unknown: 'It may have been applied, or not. Run the same again: what stands already is reported as unchanged.',
  unreachable: 'Nothing was applied.',
  accepted: 'Recorded. Its outcome is not known yet.',
}

const width = 12
const indent = ' '.repeat(width)

/** Prints one result. @param isDiff shows each field */
export function printResult(output: Output, result: Result, { isDiff = false }: { isDiff?: boolean } = {}): void {
  const { file, outcome, status, errors, details, logs, changes, run, etag } = result
  const word = output.paint(looks[outcome].colour, outcome.padEnd(width - 1))
  output.line(`${word} ${shown(file)}${status === undefined ? '' : ` (${status})`}`)
  const tell = (text: string) => {
    for (const line of shown(text).split('\n')) output.line(`${indent}${line}`)
  }
  for (const [index, error] of errors.entries()) {
    tell(error)
    const { line, source } = details[index] ?? {}
    if (source !== undefined) tell(`${String(line).padStart(5)} | ${source}`)
  }
  if (isDiff && changes !== null) for (const line of changes.flatMap(diffLines)) output.line(paintDiff(output, line))
  else if (outcome !== 'unchanged' || changes === null) for (const line of logs) tell(line)
  const next = advice[outcome]
  if (next !== undefined) tell(next)
  if (run !== null && ['accepted', 'unknown'].includes(outcome)) tell(`gatewright logs -f ${idOf(run)}`)
  if (etag !== null && outcome === 'changes' && !isDiff) tell(`plan ${etag.replaceAll('"', '')}`)
}

export const idOf = (run: string): string => run.split('/').findLast((part) => part !== '') ?? run

function paintDiff(output: Output, line: string): string {
  const text = `${indent}${shown(line)}`
  if (line.trimStart().startsWith('+')) return output.paint('green', text)
  if (line.trimStart().startsWith('-')) return output.paint('red', text)
  return text
}

const marks: Readonly<Record<string, string>> = { create: '+', delete: '-', update: '~' }

const keyOf = ({ key }: Change): string =>
  Object.values(key)
    .map((value) => JSON.stringify(value))
    .join(' ')

function diffLines(change: Change): string[] {
  const { action, model, fields } = change
  if (action === 'unchanged') return []
  const lines = Object.entries(fields).flatMap(([name, field]) => fieldLines(name, field))
  return [`${marks[action] ?? '?'} ${model} ${keyOf(change)}`, ...lines]
}

function fieldLines(name: string, field: FieldChange): string[] {
  if (typeof field === 'string') return field === 'unchanged' ? [] : [`  ~ ${name}: ${field}`]
  const { from, to } = field
  const value = (each: unknown) => markers.find(([name]) => isMarker(each, name))?.[1] ?? JSON.stringify(each)
  const items = itemsOf(from, to)
  if (items !== null)
    return [
      ...items.removed.map((item) => `  - ${name}: ${item}`),
      ...items.added.map((item) => `  + ${name}: ${item}`),
    ]
  return [
    ...(from === null || from === undefined ? [] : [`  - ${name}: ${value(from)}`]),
    ...(to === undefined || (to === null && from === null) ? [] : [`  + ${name}: ${value(to)}`]),
  ]
}

/** What stands for a value that is not reported. */
const markers = [
  ['set_by_server', '(set by the server)'],
  ['not_shown', '(not shown)'],
] as const

const isMarker = (value: unknown, name: string): boolean => isObject(value) && name in value

/** `2 applied, 1 refused` */
export function totals(results: readonly Result[]): string {
  const groups = Map.groupBy(results, ({ outcome }) => outcome)
  return [...groups].map(([outcome, { length }]) => `${length} ${outcome}`).join(', ')
}

/** The one JSON document of `--json`. */
export const toJson = (results: readonly Result[]): string =>
  JSON.stringify(
    {
      exit: codeOfResults(results),
      results: results.map(({ file, files = [file], outcome, status, logs, errors, details, changes, run, etag }) => ({
        ...{ file, files, outcome, status: status ?? null, logs, errors, details, changes, run, etag },
      })),
    },
    null,
    2,
  )

const fence = '`'.repeat(6)

/** Comments of pull requests end at 65,536 characters. */
const maxSummary = 60_000

const cell = (text: string): string => shown(text).replaceAll('|', '\\|').replaceAll('<', '&lt;').replace(/\s+/g, ' ')

/** Markdown for a pull request. */
export function writeSummary(file: string, title: string, results: readonly Result[], output: Output): void {
  const rows = results.flatMap(({ file, files = [file], outcome }) =>
    files.map((name) => `| ${cell(name)} | ${outcome} |`),
  )
  const details = results.flatMap(({ file: name, errors, logs, changes, outcome }) => {
    const lines = [...errors, ...(changes === null || outcome === 'applied' ? logs : changes.flatMap(diffLines))]
    if (lines.length === 0) return []
    // A fence that is longer than any in the text.
    const text = [`${fence}diff`, ...lines.map(shown), fence].join('\n')
    return [`<details><summary>${cell(name)}</summary>\n\n${text}\n\n</details>\n`]
  })
  const head = [`### gatewright ${title}: ${totals(results)}`, '', '| File | Outcome |', '| --- | --- |']
  const text = output.redact([...head, ...rows, '', ...details].join('\n'))
  const cut = text.length > maxSummary ? `${text.slice(0, maxSummary)}\n${fence}\n\nThe summary is cut here.\n` : text
  writeOut(file, cut)
}
