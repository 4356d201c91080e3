import { mkdirSync, readdirSync } from 'node:fs'
import { dirname, join, sep } from 'node:path'
import { UsageError } from '../exit.ts'
import { attempt, writeOut } from '../output.ts'
import { type Chosen, entriesOf } from './entries.ts'
import { layOut } from './layout.ts'
import { printExport } from './print.ts'
import type { Rows } from './rows.ts'

/** Writes an export as a folder of files. */

export type FileOfExport = {
  /** The path below the folder, with slashes. */
  readonly path: string
  readonly owner: string | undefined
  readonly entries: number
  readonly text: string
}

/** @throws {UsageError} for rows that no document can express, and when there are none */
export function toFiles(rows: Rows, chosen: Chosen): FileOfExport[] {
  if (chosen.rows.length === 0) throw new UsageError('There is nothing to export.')
  const ofRows = Map.groupBy(chosen.variables, ({ row }) => row)
  return layOut(rows, chosen.rows).map(({ path, title, owner, rows: some }) => {
    const variables = some.flatMap((row) => ofRows.get(row) ?? [])
    const text = printExport(entriesOf(rows, some, { variables, owner }), variables, { title, owner })
    return { path, owner, entries: some.length, text }
  })
}

/**
 * @returns the files that were there and have no object of this export, as paths with the folder
 * @throws {UsageError} for a file that cannot be written
 */
export function writeFiles(folder: string, files: readonly FileOfExport[]): string[] {
  for (const { path, text } of files) {
    const file = join(folder, path)
    attempt(`${dirname(file)} cannot be made`, () => mkdirSync(dirname(file), { recursive: true }))
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
