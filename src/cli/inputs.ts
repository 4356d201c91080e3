import { isUtf8 } from 'node:buffer'
import { createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { documentLimits, isBlueprint } from '../document/document.ts'
import { TagErrors } from '../document/scope.ts'
import { holdsTag, TagError } from '../document/tags.ts'
import { printValue, readText } from '../document/yaml.ts'
import { type ErrorDetail, Problem } from '../errors.ts'
import { isObject } from '../json-object.ts'
import { reasonOf } from '../start-error.ts'
import type { GivenValues } from './arguments.ts'
import { mayHoldForms, withTags } from './caller-forms.ts'
import { UsageError } from './exit.ts'
import { readUpTo } from './read-up-to.ts'
import { callerSide } from './tags.ts'

/** The inputs of a command, read, and with the caller's tags resolved. */

export type Document = {
  /** The name that the caller gave, or `standard input`. */
  readonly file: string
  readonly form: 'submission' | 'blueprint'
  readonly value: Readonly<Record<string, unknown>>
  /** The text of the file. */
  readonly text: string
  /** The body to send: JSON for a submission, YAML for a blueprint. */
  readonly body: string
}

/** A file that cannot be sent, with the reasons. */
export type Unreadable = {
  readonly file: string
  readonly errors: readonly string[]
  /** The errors of its tags and of its form, in the order of `errors`. */
  readonly details?: readonly ErrorDetail[]
}

export type Inputs = {
  readonly documents: readonly (Document | Unreadable)[]
  /** Values from variables and files, which output does not show. */
  readonly secrets: ReadonlySet<string>
}

export const isUnreadable = <Other extends object>(input: Other | Unreadable): input is Unreadable => 'errors' in input

const limits = { files: 10_000, folderDepth: 16, filesAtOnce: 16 } as const

const extensions = /\.(ya?ml|json)$/i

/** @throws {UsageError} when no file is named, or a folder has none */
export async function readInputs(paths: readonly string[], given: GivenValues): Promise<Inputs> {
  if (paths.length === 0) throw new UsageError('Name files or folders, or - for standard input.')
  const { filesFrom } = given
  if (filesFrom !== null && (await stat(filesFrom).catch(() => undefined))?.isDirectory() !== true)
    throw new UsageError(`--files-from ${filesFrom} is no folder.`)
  const secrets = new Set<string>()
  const files: string[] = []
  for (const path of paths) files.push(...(path === '-' ? ['-'] : await filesOf(path)))
  if (files.filter((file) => file === '-').length > 1) throw new UsageError('Standard input (-) can be read once.')
  if (files.length > limits.files) throw new UsageError(`These are more than ${limits.files} files.`)
  const documents: (Document | Unreadable)[] = await Readable.from(files)
    .map((file: string) => readInput(file, { ...given, secrets }), { concurrency: limits.filesAtOnce })
    .toArray()
  return { documents, secrets }
}

export async function filesOf(path: string): Promise<string[]> {
  const found = await stat(path).catch(() => undefined)
  if (found?.isDirectory() !== true) return [path]
  const files = await filesBelow(path, 0)
  if (files.length === 0) throw new UsageError(`The folder ${path} holds no .yaml, .yml or .json files.`)
  return files
}

/** Hidden files and folders are left out. */
async function filesBelow(folder: string, depth: number): Promise<string[]> {
  if (depth > limits.folderDepth) throw new UsageError(`${folder} is nested deeper than ${limits.folderDepth} folders.`)
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => {
    throw new UsageError(`${folder} cannot be read (${reasonOf(error)}).`)
  })
  const files: string[] = []
  for (const entry of entries.sort((one, other) => (one.name < other.name ? -1 : 1))) {
    const path = join(folder, entry.name)
    if (entry.name.startsWith('.') || entry.name === 'node_modules') continue
    if (entry.isDirectory()) files.push(...(await filesBelow(path, depth + 1)))
    else if (extensions.test(entry.name)) files.push(path)
  }
  return files
}

type Reading = GivenValues & { readonly secrets: Set<string> }

async function readInput(path: string, reading: Reading): Promise<Document | Unreadable> {
  const file = nameOf(path)
  const found = await readTextOf(path)
  if ('why' in found) return { file, errors: [found.why] }
  try {
    return await toDocument(file, found.text, { ...reading, folder: path === '-' ? '.' : dirname(path) })
  } catch (error) {
    if (error instanceof Problem) return { file, errors: problemLines(file, error) }
    if (!(error instanceof TagError)) throw error
    const { place, message } = error
    const at = place === undefined ? 'The file ' : `${file}:${place.line}:${place.column} `
    return { file, errors: [`${at}${message}`] }
  }
}

export const nameOf = (path: string): string => (path === '-' ? 'standard input' : path)

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

async function toDocument(
  file: string,
  text: string,
  scope: Reading & { readonly folder: string },
): Promise<Document | Unreadable> {
  const { caller, isUsed } = callerSide(scope)
  const errors = new TagErrors()
  const prepare = mayHoldForms(text) ? await formsOf(text) : undefined
  const value = readText(text, { ...caller, errors }, prepare)
  if (errors.count > 0) {
    // It is loaded for errors only: a command that works starts without it.
    const { errorsBesideTags } = await import('./check.ts')
    return { file, ...(await errorsBesideTags({ file, text, value }, errors.list)) }
  }
  const form = formOf(value)
  if (form === null || !isObject(value))
    return { file, errors: ['Is neither a submission (app, provider_model, provider) nor a blueprint (entries).'] }
  if (form === 'blueprint') return { file, form, value, text, body: isUsed() ? printValue(value) : text }
  if (holdsTag(value)) return { file, errors: ['A submission takes no !KeyOf or !Find: write a blueprint.'] }
  return { file, form, value, text, body: JSON.stringify(value) }
}

/** Replaces the forms of the caller. The code for it is loaded only for files that may need it. */
async function formsOf(text: string): Promise<(written: unknown) => unknown> {
  const { loadRegistry } = await import('../models/registry.ts')
  const registry = await loadRegistry()
  return (written) => withTags(written, text, registry)
}

function formOf(value: unknown): Document['form'] | null {
  if (!isObject(value)) return null
  if (isBlueprint(value)) return 'blueprint'
  return 'app' in value || 'provider_model' in value || 'provider' in value ? 'submission' : null
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
