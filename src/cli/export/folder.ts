import { mkdirSync, readdirSync } from 'node:fs'
import { dirname, join, sep } from 'node:path'
import { reasonOf } from '../../start-error.ts'
import { UsageError } from '../exit.ts'
import { writeOut } from '../output.ts'
import { type Chosen, entriesOf } from './entries.ts'
import { layOut, type Part } from './layout.ts'
import { printExport } from './print.ts'
import type { Rows } from './rows.ts'

/** An export as a folder of files. */

export type FileOfExport = Part & { readonly text: string }

/** @throws {UsageError} for what is no document; nothing is written then */
export const toFiles = (rows: Rows, chosen: Chosen): FileOfExport[] =>
  layOut(rows, chosen.rows).map((part) => {
    const within = new Set(part.rows)
    const variables = chosen.variables.filter(({ row }) => within.has(row))
    return { ...part, text: printExport(entriesOf(rows, part.rows, { variables, owner: part.owner }), variables, part) }
  })

/**
 * @returns the files that stood there and are of no object of this export, as paths with the folder
 * @throws {UsageError} for a file that cannot be written
 */
export function writeFiles(folder: string, files: readonly FileOfExport[]): string[] {
  for (const { path, text } of files) {
    const file = join(folder, path)
    try {
      mkdirSync(dirname(file), { recursive: true })
    } catch (error) {
      throw new UsageError(`${dirname(file)} cannot be made (${reasonOf(error)}).`)
    }
    writeOut(file, text)
  }
  const written = new Set(files.map(({ path }) => path))
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((path) => path.split(sep))
    .filter((parts) => !parts.some((part) => part.startsWith('.') || part === 'node_modules'))
    .map((parts) => parts.join('/'))
    .filter((path) => /\.(ya?ml|json)$/i.test(path) && !written.has(path))
    .map((path) => join(folder, path))
    .sort()
}
