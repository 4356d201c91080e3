import type { Result } from './deliver.ts'
import { type Output, shown, writeOut } from './output.ts'
import { blockLines, isLeftOver, logsOf, outcomesOf, remarksOf } from './report.ts'
import { objectOf } from './runs.ts'
import { byFile, type PlacedChange, placed, totalsOf, totalsText, unchangedText } from './totals.ts'

/** The Markdown of `--summary`, for a pull request: totals, deletions, a table of the files, and the fields of each. */

/** The most characters. Comments of pull requests end at 65,536. */
const most = { all: 60_000, deletions: 10_000, rows: 20_000, file: 20_000 } as const

type Plain = (text: string) => string

export function writeSummary(file: string, title: string, results: readonly Result[], output: Output): void {
  // Each text is redacted by itself: a secret is never a part of the Markdown itself.
  const plain: Plain = (text) => shown(output.redact(text))
  const parts = [
    `### gatewright ${title}: ${headOf(title, results)}\n`,
    ...deletionsOf(title, results, plain),
    ...tableOf(results, plain),
  ]
  const left = most.all - parts.join('\n').length
  writeOut(file, [...parts, ...detailsOf(title, results, plain, left)].join('\n'))
}

/** The totals, with the files that were not applied; the outcomes of files where there are no totals. */
function headOf(title: string, results: readonly Result[]): string {
  const totals = totalsOf(results)
  if (totals === null) return outcomesOf(results)
  const open = results.filter(({ outcome }) => !['changes', 'unchanged', 'applied'].includes(outcome))
  const text = totalsText(totals, title === 'apply')
  return open.length === 0 ? text : `${text} (${outcomesOf(open)})`
}

function deletionsOf(title: string, results: readonly Result[], plain: Plain): string[] {
  const deleted = results.flatMap(({ changes }) => (changes ?? []).filter(({ action }) => action === 'delete'))
  if (deleted.length === 0) return []
  const names = new Set(deleted.map((change) => `- ${inText(plain(objectOf(change)))}\n`))
  const { taken, left } = takeUpTo([...names], most.deletions)
  return [`**${title === 'apply' ? 'Deleted' : 'Deletes'}**\n`, taken.join('') + moreOf(left, 'deletion', '\n')]
}

function tableOf(results: readonly Result[], plain: Plain): string[] {
  const files = results.flatMap((result) => byFile(result)).filter(({ outcome }) => outcome !== 'unchanged')
  const rows = files.map(({ file, outcome }) => `| ${inText(plain(file))} | ${outcome} |\n`)
  const { taken, left } = takeUpTo(rows, most.rows)
  const table = taken.length === 0 ? '' : `| File | Outcome |\n| --- | --- |\n${taken.join('')}\n`
  const unchanged = unchangedText(results).map((text) => `${text}\n`)
  return [[table + moreOf(left, 'file', ''), ...unchanged].join('')]
}

/** Each file folded away, as long as there is space: it is cut between files. */
function detailsOf(title: string, results: readonly Result[], plain: Plain, space: number): string[] {
  const blocks = results
    .flatMap((result) => textsOf(title, result))
    .filter(({ lines }) => lines.length > 0)
    .map(({ file, lines }) => blockOf(plain(file), lines.map(plain)))
  const { taken, left } = takeUpTo(blocks, space - 100)
  const more = `The fields of ${left} more ${left === 1 ? 'file' : 'files'} are not shown.\n`
  return left === 0 ? taken : [...taken, more]
}

/** The log of an apply is of the whole document; a plan shows the changes of each of its files, and what stands beside them. */
function textsOf(title: string, result: Result) {
  const { file: all, errors, changes } = result
  if (errors.length > 0 || changes === null || title === 'apply')
    return [{ file: all, lines: [...errors, ...logsOf(result)] }]
  const titleOf = (each: PlacedChange) => (isLeftOver(each) ? 'left over' : (each.file ?? all))
  const blocks = Map.groupBy(placed(result), titleOf)
  return [
    ...[...blocks].map(([file, of]) => ({
      file,
      lines: of.flatMap((each) => blockLines({ ...each, file: undefined }, true)),
    })),
    { file: 'remarks', lines: remarksOf(result) },
  ]
}

function blockOf(file: string, lines: readonly string[]): string {
  const all = lines.map((line) => `${line}\n`)
  const { taken, left } = takeUpTo(all, most.file)
  const text = taken.join('')
  // The fence is longer than any in the text.
  const fence = '`'.repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([run]) => run.length + 1)))
  const more = moreOf(left, 'line', '\n')
  return `<details><summary>${inText(file)}</summary>\n\n${fence}diff\n${text}${fence}\n\n${more}</details>\n`
}

/** The first of the texts, as far as they fit. A text that is too long by itself is left out, too. */
function takeUpTo(texts: readonly string[], space: number): { readonly taken: string[]; readonly left: number } {
  let sum = 0
  const end = texts.findIndex((text) => {
    sum += text.length + 1
    return sum > space
  })
  const taken = end === -1 ? [...texts] : texts.slice(0, end)
  return { taken, left: texts.length - taken.length }
}

const moreOf = (count: number, what: string, end: string): string =>
  count === 0 ? '' : `\n${count} more ${count === 1 ? `${what} is` : `${what}s are`} not shown.\n${end}`

/** A name as Markdown shows it, in a line of text, a cell and an HTML element alike: no character of it is markup. */
const inText = (text: string): string =>
  text
    .replace(/\s+/g, ' ')
    .trim()
    .replace(
      /[&<>|\\`*[\]~#$!@]|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])|:(?=\/\/)|(?<=www)\./giu,
      (each) => `&#${each.codePointAt(0)};`,
    )
