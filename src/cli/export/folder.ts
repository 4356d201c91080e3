import { randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { dirname, join, sep } from 'node:path'
import { reasonOf } from '../../start-error.ts'
import { UsageError } from '../exit.ts'
import { writeOut } from '../output.ts'
import { type Chosen, entriesOf } from './entries.ts'
import { layOut, type Part } from './layout.ts'
import { printExport } from './print.ts'
import type { Rows } from './rows.ts'

/** Writes an export as a folder of files. */

export type FileOfExport = Omit<Part, 'rows'> & { readonly text: string; readonly entries: number }

/** Yields the files one by one: memory may not hold all. @throws {UsageError} for rows that no document can express */
export function* toFiles(rows: Rows, chosen: Chosen): Generator<FileOfExport> {
  const ofRows = Map.groupBy(chosen.variables, ({ row }) => row)
  for (const { rows: some, ...part } of layOut(rows, chosen.rows)) {
    const variables = some.flatMap((row) => ofRows.get(row) ?? [])
    const text = printExport(entriesOf(rows, some, { variables, owner: part.owner }), variables, part)
    yield { ...part, text, entries: some.length }
  }
}

export type Written = {
  readonly files: readonly Omit<FileOfExport, 'text'>[]
  /** The files that were there and have no object of this export, as paths with the folder. */
  readonly others: readonly string[]
}

/**
 * Writes all files beside their places, and puts them there once all are written.
 *
 * @throws {UsageError} for rows that no document can express, and for a file that cannot be written: the folder is unchanged then
 */
export function writeFiles(folder: string, files: Iterable<FileOfExport>): Written {
  const made = makeFolder(folder)
  // `plan` and `apply` ignore such a name.
  const beside = join(folder, `.gatewright-export-${randomUUID()}`)
  const remove = () => rmSync(made ?? beside, { recursive: true, force: true })
  process.once('exit', remove)
  try {
    const written: Omit<FileOfExport, 'text'>[] = []
    for (const { text, ...file } of files) {
      makeFolder(dirname(join(beside, file.path)))
      writeOut(join(beside, file.path), text)
      written.push(file)
    }
    if (written.length === 0) throw new UsageError('There is nothing to export.')
    for (const { path } of written) {
      makeFolder(dirname(join(folder, path)))
      move(join(beside, path), join(folder, path))
    }
    rmSync(beside, { recursive: true, force: true })
    return { files: written, others: othersIn(folder, written) }
  } catch (error) {
    remove()
    throw error
  } finally {
    process.off('exit', remove)
  }
}

/** @returns the first folder that was not there */
function makeFolder(path: string): string | undefined {
  try {
    return mkdirSync(path, { recursive: true })
  } catch (error) {
    throw new UsageError(`${path} cannot be made (${reasonOf(error)}).`)
  }
}

function move(from: string, to: string): void {
  try {
    renameSync(from, to)
  } catch (error) {
    throw new UsageError(`${to} cannot be written (${reasonOf(error)}).`)
  }
}

function othersIn(folder: string, files: readonly { readonly path: string }[]): string[] {
  const written = new Set(files.map(({ path }) => path))
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((path) => path.split(sep))
    .filter((parts) => !parts.some((part) => part.startsWith('.') || part === 'node_modules'))
    .map((parts) => parts.join('/'))
    .filter((path) => /\.(ya?ml|json)$/i.test(path) && !written.has(path))
    .map((path) => join(folder, path))
    .sort()
}
