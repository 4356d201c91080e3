import { printValue, readWritten } from '../../document/yaml.ts'
import { Problem } from '../../errors.ts'
import { UsageError } from '../exit.ts'
import { shown } from '../output.ts'
import { type Chosen, type ExportedDocument, entriesOf } from './entries.ts'
import { checkEntries, smaller } from './read.ts'
import { describe, type Variable } from './variables.ts'

/**
 * Prints a document, with its variables in a comment at the head.
 *
 * @throws {UsageError} for rows that no document can express, and more than one may have
 */
export function printExport(chosen: Chosen, part: ExportedDocument): string {
  const { owner, title, rows } = part
  const entries = entriesOf(chosen, part)
  checkEntries(entries.length)
  const document = {
    version: 1,
    metadata: { name: title.slice(0, 255).toWellFormed() },
    ...(owner !== undefined && { owner }),
    entries,
  }
  const text = `${head(rows.flatMap((row) => chosen.variables.get(row) ?? []))}${printValue(document)}`
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
