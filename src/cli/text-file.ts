import { isUtf8 } from 'node:buffer'
import { createReadStream, existsSync, realpathSync, statSync } from 'node:fs'
import { isAbsolute, relative, resolve, sep } from 'node:path'
import type { z } from 'zod'
import { attempt } from '../attempt.ts'
import { documentLimits } from '../document/document.ts'
import { readWritten } from '../document/yaml.ts'
import { ErrorList, type FieldPath, Problem } from '../errors.ts'
import { addIssues } from '../messages.ts'
import { reasonOf } from '../start-error.ts'
import { UsageError } from './exit.ts'
import { shown } from './output.ts'
import type { SourceFile } from './places.ts'
import { readUpTo } from './read-up-to.ts'

/** Whether a path is below one of the folders, and where it leads to is, too: a link may point outside. */
export function isBelow(folders: readonly string[], path: string): boolean {
  const isIn = (folder: string, each: string) => {
    const way = relative(folder, each)
    return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)
  }
  // This comes before the file is searched: a document must not find out whether a file exists elsewhere.
  if (!folders.some((folder) => isIn(resolve(folder), path))) return false
  return !existsSync(path) || folders.some((folder) => isIn(realpathSync(folder), realpathSync(path)))
}

export const isFolder = (path: string): boolean => attempt(() => statSync(path))?.isDirectory() === true

/** The text of one file, with its tags. @returns the reason when it cannot be read */
export async function readTextOf(path: string): Promise<{ readonly text: string } | { readonly why: string }> {
  const tooLong = new Problem('invalid', `Is longer than ${documentLimits.bytes} bytes.`)
  try {
    const stream = path === '-' ? process.stdin : createReadStream(path)
    const bytes = await readUpTo(stream, documentLimits.bytes, () => tooLong)
    return isUtf8(bytes) ? { text: bytes.toString('utf8').replace(/^\uFEFF/, '') } : { why: 'Is not UTF-8.' }
  } catch (error) {
    return { why: error === tooLong ? tooLong.message : `Cannot be read (${reasonOf(error)}).` }
  }
}

/** @param file the name; empty where it is not known */
export const problemLines = (file: string, { errors, message }: Problem): string[] =>
  errors === undefined
    ? [message]
    : errors.map(({ message: text, place }) => {
        // The text names the blueprint too.
        const at = place?.line === undefined || file === '' ? '' : `${file}:${place.line}:${place.column} `
        return `${at}${text.replace(/^The blueprint /, 'The file ')}`
      })

/**
 * Reads a file that is no document, as YAML or JSON.
 *
 * @param known the fields of the object at a path
 * @throws {UsageError} with the place of each error
 */
export async function readSettings<Schema extends z.ZodType>(
  file: string,
  schema: Schema,
  known: (path: FieldPath) => readonly string[] = () => [],
): Promise<SourceFile & { readonly settings: z.output<Schema> }> {
  const found = await readTextOf(file)
  if ('why' in found) throw new UsageError(`${file}: ${found.why}`)
  const source = { file, text: found.text, value: writtenIn(file, found.text) }
  const { data, error } = schema.safeParse(source.value)
  if (error === undefined) return { ...source, settings: data as z.output<Schema> }
  const errors = new ErrorList()
  const issues = error.issues.map((each) => ({
    ...each,
    message: each.message.replace(/^[a-z]/, (letter) => letter.toUpperCase()),
  }))
  addIssues(errors, issues, { input: source.value, known })
  throw await wrongAt(source, errors)
}

function writtenIn(file: string, text: string): unknown {
  try {
    return readWritten(text)
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const lines = problemLines(file, error).map((line) => (line.startsWith(`${file}:`) ? line : `${file}: ${line}`))
    throw new UsageError(shown(lines.join('\n')))
  }
}

/** The error of values of a file, each with its place. */
export async function wrongAt(source: SourceFile, errors: ErrorList): Promise<UsageError> {
  // It is loaded for errors only: a command that works starts without it.
  const { located } = await import('./check.ts')
  return new UsageError(shown((await located(source, errors)).errors.join('\n')))
}
