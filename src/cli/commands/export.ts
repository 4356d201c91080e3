import type { Model } from '../../models/define.ts'
import { ownerLabel } from '../../models/fields.ts'
import { loadRegistry, type Registry } from '../../models/registry.ts'
import { readArguments, readTimeoutMs } from '../arguments.ts'
import { openClient } from '../client.ts'
import { type ExitCode, exitCodes, UsageError } from '../exit.ts'
import { type Chosen, choose, isGenerated, listed, toExport } from '../export/entries.ts'
import { type FileOfExport, toFiles, writeFiles } from '../export/folder.ts'
import { withOtherOwner } from '../export/layout.ts'
import { printExport } from '../export/print.ts'
import { type Target, targetOf, targets, withRows } from '../export/read.ts'
import { labelOf, naturalKey, type Row, type Rows } from '../export/rows.ts'
import { type Output, openOutput, writeOut } from '../output.ts'

/** `gatewright export`: what is configured, as one blueprint or as a folder of them. */

export const usage = `gatewright export [OPTIONS]

Prints what is configured as one blueprint, without keys of rows: applied to an empty installation, and exported there,
it is the same text. Secrets are !Env NAME; the names stand at its head. Users and their tokens are not part of it.

  --directory DIR      writes files below DIR instead: one for each application with its provider, in a folder for its
                       owner, and one for each kind of what they share. Each names its owner; "plan DIR" is unchanged
  --owner LABEL        only applications and providers under this label, and what they refer to
  --application SLUG   only this application with its providers, and what they refer to; repeat it for more
  --only MODEL,...     only these: flow, propertymapping, certificatekeypair, role, group, provider, application, or one
                       kind of provider, such as oauth2provider
  --out FILE           writes FILE, once all is read
  --timeout SECONDS    how long it may read (default 120)
  --json               one JSON document on standard output
`

const options = {
  directory: { type: 'string' },
  owner: { type: 'string' },
  application: { type: 'string', multiple: true },
  only: { type: 'string', multiple: true },
  out: { type: 'string' },
  timeout: { type: 'string' },
  json: { type: 'boolean' },
} as const

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, options)
  if (positionals.length > 0) throw new UsageError('export takes no names: --only and --owner choose what is exported.')
  const { owner, out, directory, application: applications } = values
  if (directory !== undefined && out !== undefined) throw new UsageError('Use either --directory or --out.')
  checkOwner(owner)
  const registry = await loadRegistry()
  const models = readModels(registry, values.only)
  const endsAt = performance.now() + readTimeoutMs(values.timeout)
  const output = openOutput()
  const reading = {
    client: await openClient(),
    registry,
    leftMs: () => Math.max(1, endsAt - performance.now()),
    onWait: output.waiting,
  }
  const selection = { models: new Set(models.map(({ name }) => name)), owner, applications }
  const read = targetsFor(registry, applications === undefined ? models : [...models, ...applicationsOf(registry)])
  const readInto = <Made>(use: (rows: Rows) => Made) => withRows(reading, read, use)
  const isJson = values.json === true
  if (directory !== undefined) {
    const made = await readInto((rows) => {
      const chosen = choose(rows, selection)
      return { chosen, files: toFiles(rows, chosen), others: withOtherOwner(rows, chosen.rows) }
    })
    return intoFolder(output, directory, made, isJson)
  }
  const made = await readInto((rows) => toExport(rows, selection))
  const text = printExport(made.entries, made.variables, { owner })
  if (out !== undefined) writeOut(out, text)
  if (isJson) output.json(jsonOf(made, out === undefined ? { document: text } : { file: out }))
  else if (out === undefined) process.stdout.write(text)
  for (const note of notesOf(made)) output.note(note)
  return exitCodes.done
}

type Folder = { readonly chosen: Chosen; readonly files: readonly FileOfExport[]; readonly others: readonly Row[] }

function intoFolder(output: Output, folder: string, { chosen, files, others }: Folder, isJson: boolean): ExitCode {
  if (files.length === 0) throw new UsageError('There is nothing to export.')
  const left = writeFiles(folder, files)
  const written = files.map(({ path, owner, rows }) => ({ file: path, owner: owner ?? null, entries: rows.length }))
  if (isJson) output.json(jsonOf(chosen, { directory: folder, files: written, other_files: left }))
  output.note(`${files.length} files below ${folder}`)
  for (const note of notesOf(chosen)) output.note(note)
  for (const note of titled('Has another owner than its application', others.map(labelOf))) output.note(note)
  const stale = 'These stand there too, and are not of this export. Remove those whose objects are gone'
  for (const note of titled(stale, left)) output.note(note)
  return exitCodes.done
}

function checkOwner(owner: string | undefined): void {
  const error = owner === undefined ? undefined : ownerLabel().safeParse(owner).error
  if (error !== undefined) throw new UsageError(`--owner: ${error.issues[0]?.message}`)
}

const exported = (registry: Registry): readonly Model[] =>
  targets.flatMap((target) => registry.targets.get(target)?.models ?? [])

const applicationsOf = (registry: Registry): readonly Model[] => registry.targets.get('application')?.models ?? []

/** @throws {UsageError} for what is no model that is exported */
function readModels(registry: Registry, only: readonly string[] | undefined): readonly Model[] {
  const all = exported(registry)
  if (only === undefined) return all
  const words = only.flatMap((part) => part.split(',')).map((word) => word.trim())
  return words.flatMap((word) => {
    const found = all.filter((model) => [model.name, model.resource, model.target].includes(word))
    if (found.length > 0) return found
    const known = new Set([...targets, ...all.map(({ resource }) => resource)])
    throw new UsageError(`--only: ${JSON.stringify(word.slice(0, 100))} is none of ${[...known].join(', ')}.`)
  })
}

/** The lists of these models, and of all that they may refer to. */
function targetsFor(registry: Registry, models: readonly Model[]): readonly Target[] {
  const needed = new Set(models)
  for (const model of needed)
    for (const { reference } of model.fields.values()) {
      const target = reference === undefined ? undefined : targetOf(registry, reference)
      for (const other of target === undefined ? [] : (registry.targets.get(target)?.models ?? [])) needed.add(other)
    }
  return targets.filter((target) => [...needed].some((model) => model.target === target))
}

/** What the text does not say by itself. */
function notesOf({ rows, variables, outside }: Chosen): string[] {
  const list = (title: string, some: readonly Row[]) => titled(title, some.map(labelOf))
  return [
    `${rows.length} entries, ${variables.length} variables`,
    ...list('Each installation generates its own', rows.filter(isGenerated)),
    ...list('It refers to what it does not hold', outside),
  ]
}

/** A note of several lines; none for an empty list. */
const titled = (title: string, lines: readonly string[]): string[] =>
  lines.length === 0 ? [] : [`${title}:\n${listed(lines.map((line) => `  ${line}`))}`]

function jsonOf({ rows, variables }: Chosen, where: Readonly<Record<string, unknown>>): string {
  const named = variables.map(({ name, row, field, isJson, mayBeEmpty }) => ({
    ...{ name, model: row.model.name, identifiers: naturalKey(row), field: field.name },
    ...{ json: isJson, may_be_empty: mayBeEmpty },
  }))
  return JSON.stringify({ exit: exitCodes.done, entries: rows.length, variables: named, ...where }, null, 2)
}
