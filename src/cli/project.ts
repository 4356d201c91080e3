import { existsSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { z } from 'zod'
import { serviceUrl } from '../config.ts'
import { ErrorList } from '../errors.ts'
import { own } from '../json-object.ts'
import { filledLine, ownerLabel } from '../models/fields.ts'
import { UsageError } from './exit.ts'
import { isBelow, isFolder, readSettings, wrongAt } from './text-file.ts'

/** `gatewright.yaml`: what is said once for all files of a folder. */

export const projectName = 'gatewright.yaml'

export type Project = Awaited<ReturnType<typeof readProject>>

const form = z.strictObject({
  stack: ownerLabel().exactOptional(),
  owners: z
    .record(z.string(), ownerLabel())
    .superRefine((owners, context) => {
      for (const [glob, label] of Object.entries(owners)) {
        const message = whyNoOwner(glob, label)
        if (message !== undefined) context.addIssue({ code: 'custom', path: [glob], message })
      }
    })
    .exactOptional(),
  environments: z
    .record(z.string(), z.strictObject({ url: serviceUrl, context: filledLine(1_000).exactOptional() }))
    .exactOptional(),
})

/** The most stars in a path: each of them multiplies the ways to match. */
const mostStars = 3

function whyNoOwner(glob: string, label: string): string | undefined {
  const parts = glob.replace(/\/$/, '').split('/')
  if (parts.some((part) => ['', '.', '..', '**'].includes(part))) return 'Takes a path below this folder: teams/*/.'
  const stars = glob.split('*').length - 1
  if (stars > mostStars) return `Takes at most ${mostStars} *.`
  const wrong = label.match(/\$\d+/g)?.find((each) => Number(each.slice(1)) < 1 || Number(each.slice(1)) > stars)
  return wrong && `${wrong} stands for nothing: the path has ${stars === 0 ? 'no *' : `${stars} *`}.`
}

/** @returns what matches the path of a file when the glob matches it, or a folder above */
export const patternOf = (glob: string): RegExp =>
  new RegExp(`^${glob.split('*').map(RegExp.escape).join('([^/]*)')}${glob.endsWith('/') ? '(?=.)' : '/'}`)

/**
 * Finds the project of paths: in the nearest folder at or above them, up to the one that holds `.git`.
 *
 * @param paths none: the current folder
 * @throws {UsageError} for paths of two projects
 */
export async function findProject(paths: readonly string[]): Promise<Project | null> {
  const named = paths.filter((path) => path !== '-')
  const all = (named.length === 0 ? ['.'] : named).map((path) => resolve(path))
  const folders = new Set(all.map((path) => (isFolder(path) ? path : dirname(path))))
  const [file, other] = new Set([...folders].flatMap((folder) => nearestAt(folder)))
  if (file === undefined) return null
  if (other !== undefined) throw twoProjects(file, other)
  return readProject(file)
}

const shownPath = (path: string): string => relative('', path) || '.'

export const twoProjects = (one: string, other: string) =>
  new UsageError(`${shownPath(one)} and ${shownPath(other)} are two projects: name the files of one.`)

function nearestAt(folder: string): string[] {
  const file = join(folder, projectName)
  if (existsSync(file)) return [file]
  const above = dirname(folder)
  return above === folder || existsSync(join(folder, '.git')) ? [] : nearestAt(above)
}

async function readProject(path: string) {
  const file = shownPath(path)
  const known = (at: readonly unknown[]) => (at.length === 0 ? Object.keys(form.shape) : ['url', 'context'])
  const { settings, ...source } = await readSettings(file, form, known)
  const { stack, owners = {}, environments = {} } = settings
  const folder = dirname(path)
  const rules = Object.entries(owners).map(([glob, label]) => ({ glob, label, pattern: patternOf(glob) }))
  return {
    /** Its path from the current folder. */
    file,
    folder,
    stack,
    environments,
    /** The owner of the file at a path. @throws {UsageError} when what stands for `$1` makes no label */
    async ownerOf(document: string): Promise<string | undefined> {
      const below = relative(folder, resolve(document)).replaceAll(sep, '/')
      if (below.startsWith('../')) return undefined
      for (const { glob, label, pattern } of rules) {
        const [found, ...stars] = pattern.exec(`${below}/`) ?? []
        if (found === undefined) continue
        const sent = label.replaceAll(/\$(\d+)/g, (_, n: string) => stars[Number(n) - 1] ?? '')
        const { data: owner, error } = ownerLabel().safeParse(sent)
        if (error === undefined) return owner
        const errors = new ErrorList()
        const why = `The owner of ${document} would be ${JSON.stringify(sent)}: ${error.issues[0]?.message}`
        errors.add(['owners', glob], 'invalid_value', why)
        throw await wrongAt(source, errors)
      }
      return undefined
    },
  }
}

/**
 * The environment with a name, and the path of its context file.
 *
 * @param found null where no project is; undefined: that of the current folder
 * @throws {UsageError} when there is none
 */
export async function environmentOf(name: string, found?: Project | null) {
  const project = found === undefined ? await findProject([]) : found
  if (project === null)
    throw new UsageError(`--env ${name}: there is no ${projectName} in the folder of the files, or above it.`)
  const { file, folder, environments } = project
  const { url, context } = own(environments, name) ?? {}
  if (context !== undefined && !isBelow([folder], resolve(folder, context)))
    throw new UsageError(`${file}: the context of ${name}, ${JSON.stringify(context)}, is not below its folder.`)
  if (url !== undefined) return { url, file, context: context && shownPath(resolve(folder, context)) }
  const known = Object.keys(environments).join(', ') || 'none'
  throw new UsageError(`${file} has no environment ${JSON.stringify(name)}. It has ${known}.`)
}
