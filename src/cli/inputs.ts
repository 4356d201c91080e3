import { readdir } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { readEnvironmentName } from '../config.ts'
import { isBlueprint } from '../document/document.ts'
import { TagErrors } from '../document/scope.ts'
import { holdsTag, TagError } from '../document/tags.ts'
import { printValue, readText } from '../document/yaml.ts'
import { type ErrorDetail, Problem } from '../errors.ts'
import { isObject, type JsonObject } from '../json-object.ts'
import { reasonOf } from '../start-error.ts'
import type { fileOptions, readArguments } from './arguments.ts'
import { mayHoldForms, withTags } from './caller-forms.ts'
import { addWanted, readContext, refuseUnused } from './context.ts'
import { UsageError } from './exit.ts'
import type { Part, Unset } from './places.ts'
import { environmentOf, findProject, type Project, projectName, twoProjects } from './project.ts'
import { callerSide, type GivenValues } from './tags.ts'
import { isFolder, problemLines, readTextOf } from './text-file.ts'

/** The inputs of a command, read, and with the caller's tags resolved. */

export type Document = Part['document'] & {
  readonly value: JsonObject
  /** The owner that `gatewright.yaml` gives to its path. */
  readonly ofPath?: string | undefined
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

export type Inputs = Awaited<ReturnType<typeof readInputs>>

/** @property isPlan whether secrets need no value: what stands keeps them */
type FileValues = ReturnType<typeof readArguments<typeof fileOptions>>['values'] & { readonly isPlan?: boolean }

export const isUnreadable = <Other extends object>(input: Other | Unreadable): input is Unreadable => 'errors' in input

const limits = { files: 10_000, filesAtOnce: 16 } as const

const extensions = /\.(ya?ml|json)$/i

/**
 * @param named none: the folder of `gatewright.yaml`
 * @throws {UsageError} when no file is named, or a folder has none
 */
export async function readInputs(named: readonly string[], values: FileValues) {
  const project = await findProject(named)
  const paths = named.length > 0 || project === null ? named : [relative('', project.folder) || '.']
  if (paths.length === 0) throw new UsageError('Name files or folders, or - for standard input.')
  const { env = readEnvironmentName(), 'files-from': filesFrom = null, isPlan = false } = values
  const environment = env === undefined ? undefined : await environmentOf(env, project)
  const contextFiles = [environment?.context, values['context-file']].filter((file) => file !== undefined)
  const context = await readContext(values.context, contextFiles)
  if (filesFrom !== null && !isFolder(filesFrom)) throw new UsageError(`--files-from ${filesFrom} is no folder.`)
  /** Values from variables and files, which output does not show. */
  const secrets = new Set<string>()
  const files: string[] = []
  const isNoDocument = notDocuments(project, contextFiles)
  for (const path of paths) files.push(...(path === '-' ? ['-'] : await filesOf(path, isNoDocument)))
  if (files.filter((file) => file === '-').length > 1) throw new UsageError('Standard input (-) can be read once.')
  if (files.length > limits.files) throw new UsageError(`These are more than ${limits.files} files.`)
  const documents: (Document | Unreadable)[] = await Readable.from(files)
    .map((file: string) => readInput(file, { context, filesFrom, isPlan, secrets, project, named: paths }), {
      concurrency: limits.filesAtOnce,
    })
    .toArray()
  /** Whether the project has other files, too. */
  const isPart = project !== null && !paths.some((path) => resolve(path) === project.folder)
  // A file that cannot be read may look up what the others do not.
  if (!documents.some(isUnreadable)) await refuseUnused(context, isPart)
  return { documents, secrets, project, isPart }
}

/** Whether a file of a folder is `gatewright.yaml`, or a context file. @throws {UsageError} for that of another project */
function notDocuments(project: Project | null, contextFiles: readonly string[]): (path: string) => boolean {
  const { folder = '', environments = {} } = project ?? {}
  const ofProject = Object.values(environments).flatMap(({ context = [] }) => context)
  const all = new Set([...ofProject.map((file) => resolve(folder, file)), ...contextFiles.map((file) => resolve(file))])
  return (path) => {
    if (basename(path) !== projectName) return all.has(resolve(path))
    if (project !== null && resolve(path) !== resolve(project.file)) throw twoProjects(project.file, path)
    return project !== null
  }
}

/** @param isLeftOut whether a file of a folder is left out */
export async function filesOf(path: string, isLeftOut: (path: string) => boolean = () => false): Promise<string[]> {
  if (!isFolder(path)) return [path]
  const files = (await filesBelow(path)).filter((file) => !isLeftOut(file))
  if (files.length === 0) throw new UsageError(`The folder ${path} holds no .yaml, .yml or .json files.`)
  return files
}

/** Hidden files and folders are left out. */
async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => {
    throw new UsageError(`${folder} cannot be read (${reasonOf(error)}).`)
  })
  const files: string[] = []
  for (const entry of entries.sort((one, other) => (one.name < other.name ? -1 : 1))) {
    const path = join(folder, entry.name)
    if (entry.name.startsWith('.') || entry.name === 'node_modules') continue
    if (entry.isDirectory()) files.push(...(await filesBelow(path)))
    else if (extensions.test(entry.name)) files.push(path)
  }
  return files
}

type Reading = GivenValues & {
  readonly isPlan: boolean
  readonly secrets: Set<string>
  readonly project: Project | null
  /** The files and folders of the command line. */
  readonly named: readonly string[]
}

async function readInput(path: string, reading: Reading): Promise<Document | Unreadable> {
  const file = nameOf(path)
  const found = await readTextOf(path)
  if ('why' in found) return { file, errors: [found.why] }
  try {
    const document = await toDocument(file, found.text, { ...reading, path })
    if (isUnreadable(document) || path === '-') return document
    return { ...document, ofPath: await reading.project?.ownerOf(path) }
  } catch (error) {
    if (error instanceof Problem) return { file, errors: problemLines(file, error) }
    if (!(error instanceof TagError)) throw error
    const { place, message } = error
    const at = place === undefined ? 'The file ' : `${file}:${place.line}:${place.column} `
    return { file, errors: [`${at}${message}`] }
  }
}

const noForm = 'Is neither a submission (app, provider_model, provider) nor a blueprint (entries).'
// It is not left out: with a mistyped key, that would delete what the file names.
const notOfFolder = 'A folder stands for all of its .yaml, .yml and .json files: move this one out, or name the files.'

export const nameOf = (path: string): string => (path === '-' ? 'standard input' : path)

async function toDocument(
  file: string,
  text: string,
  scope: Reading & { readonly path: string },
): Promise<Document | Unreadable> {
  const { path, named } = scope
  const { caller, isUsed } = callerSide({ ...scope, folder: path === '-' ? '.' : dirname(path) })
  const errors = new TagErrors()
  const models = mayHoldForms(text) ? await readModels() : null
  const value = readText(text, { ...caller, errors }, (written) => {
    if (scope.context.values.size > 0) addWanted(written, scope.context.wanted)
    return models === null ? written : withTags(written, text, models)
  })
  let unset: Unset | undefined
  if (errors.count > 0) {
    const { keepSecrets } = await import('./unset.ts')
    const { errors: left, unset: kept } = keepSecrets(value, errors.list, await readModels(), scope.isPlan)
    unset = kept
    const { errorsBesideTags } = await import('./check.ts')
    if (left.length > 0) return { file, ...(await errorsBesideTags({ file, text, value }, left)) }
  }
  const form = formOf(value)
  if (form === null || !isObject(value))
    return { file, errors: [named.includes(path) ? noForm : `${noForm} ${notOfFolder}`] }
  if (form === 'blueprint') return { file, form, value, text, unset, body: isUsed() ? printValue(value) : text }
  if (holdsTag(value)) return { file, errors: ['A submission takes no !KeyOf or !Find: write a blueprint.'] }
  return { file, form, value, text, unset, body: JSON.stringify(value) }
}

/** The models are loaded only for files that need them: for others, a command starts without them. */
const readModels = async () => (await import('../models/registry.ts')).loadRegistry()

function formOf(value: unknown): Document['form'] | null {
  if (!isObject(value)) return null
  if (isBlueprint(value)) return 'blueprint'
  return 'app' in value || 'provider_model' in value || 'provider' in value ? 'submission' : null
}
