import { documentLimits } from '../../document/document.ts'
import { printValue, readWritten } from '../../document/yaml.ts'
import { Problem } from '../../errors.ts'
import { UsageError } from '../exit.ts'
import { shown } from '../output.ts'
import { describe, type Variable } from './variables.ts'

/** Prints a document as text. */

export type ExportedEntry = {
  readonly model: string
  readonly id?: string
  /** The label under which it is managed, unless the document names it. */
  readonly owner?: string
  readonly identifiers: Readonly<Record<string, unknown>>
  readonly attrs: Readonly<Record<string, unknown>>
}

const smaller = 'export it in parts, with --only or --owner, or as files, with --directory.'

/** @throws {UsageError} for more rows than a document may have */
export function checkEntries(count: number): void {
  if (count > documentLimits.entries)
    throw new UsageError(`These are ${count} entries, and a document may have ${documentLimits.entries}: ${smaller}`)
}

/**
 * Prints the document, with its variables in a comment at the head.
 *
 * @throws {UsageError} for more rows than one document may have
 */
export function printExport(
  entries: readonly ExportedEntry[],
  variables: readonly Variable[],
  { owner, title = 'export' }: { readonly owner: string | undefined; readonly title?: string },
): string {
  if (entries.length === 0) throw new UsageError('There is nothing to export.')
  checkEntries(entries.length)
  const document = {
    version: 1,
    metadata: { name: title.slice(0, 255).toWellFormed() },
    ...(owner !== undefined && { owner }),
    entries,
  }
  const text = `${head(variables)}${printValue(document)}`
  try {
    readWritten(text)
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const [[why] = []] = Object.values(error.fields ?? {}) as string[][]
    throw new UsageError(`The export cannot be one document: ${why ?? error.message} If it is too large, ${smaller}`)
  }
  return text
}

function head(variables: readonly Variable[]): string {
  const lines = variables.map((variable) => `#   ${variable.name}  ${shown(describe(variable))}\n`)
  return lines.length === 0 ? '' : `# Variables with its secrets:\n${lines.join('')}`
}
