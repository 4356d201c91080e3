import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Model } from '../../models/define.ts'
import { loadRegistry, type Registry } from '../../models/registry.ts'
import { flag, readArguments, text, texts } from '../arguments.ts'
import { open } from '../client.ts'
import { exitCodes, UsageError } from '../exit.ts'
import { type Chosen, choose, listed } from '../export/entries.ts'
import { layOut, withOtherOwner } from '../export/layout.ts'
import { printExport } from '../export/print.ts'
import { withRows } from '../export/read.ts'
import { labelOf, naturalKey, targets } from '../export/rows.ts'
import { filesOf } from '../inputs.ts'
import { workOnFile, writeOut } from '../output.ts'
import { readOwner } from '../owners.ts'
import { projectName } from '../project.ts'
import { isFolder } from '../text-file.ts'

export const usage = `gatewright export [OPTIONS]

Prints what is configured as one blueprint, without keys of rows: applied to an empty installation, and exported there,
it is the same text. Secrets are !Env NAME; the names stand at its head. Users and their tokens are not part of it.

  --owner LABEL        only applications and providers under this label, and what they refer to
  --application SLUG   only this application with its providers, and what they refer to; repeat it for more
  --only MODEL,...     only these: flow, propertymapping, certificatekeypair, role, group, trustedissuer, provider,
                       application, or one kind of provider, such as oauth2provider
  --without-secrets    leaves secret fields out: what stands keeps them, and what is new needs them
  --out FILE           writes FILE, once all is read
  --out DIR/           writes files below DIR: one for each application with its provider, in a folder for its owner, and
                       one for each kind of what they share. Each names its owner; "plan DIR" is unchanged. One document
                       has at most 10000 entries
  --timeout SECONDS    how long it waits for one page of a list (default 120)
  --json               one JSON document on standard output
`

const options = {
  ...{ owner: text, application: texts, only: texts, out: text, timeout: text, json: flag },
  'without-secrets': flag,
}

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, options)
  if (positionals.length > 0) throw new UsageError('export takes no names: --only and --owner choose what is exported.')
  const { out, application: applications } = values
  const directory =
    out !== undefined && (out.endsWith('/') || isFolder(out)) ? out.replace(/(?<=.)\/+$/, '') : undefined
  const owner = readOwner('--owner', values.owner)
  const registry = await loadRegistry()
  const models = readModels(registry, values.only)
  const { client, output } = await open(values, 120)
  const onRead = (count: number, of: number) => output.progress(count, of, 'rows')
  const reading = { client, registry, onRead }
  const isWithoutSecrets = values['without-secrets'] === true
  const selection = { models, owner, applications, isWithoutSecrets, isOneDocument: directory === undefined }
  const chosen = await withRows(reading, selection, (rows) => choose(rows, selection))
  const { where, notes } = await (directory === undefined
    ? toDocument(chosen, owner, out)
    : toFolder(chosen, directory))
  output.json(jsonOf(chosen, where))
  if (values.json !== true && where.document !== undefined) process.stdout.write(where.document)
  for (const note of notes) output.note(note)
  return exitCodes.done
}

/** @property where the members of `--json` with what was written */
type Written = {
  readonly where: Readonly<Record<string, unknown>> & { readonly document?: string }
  readonly notes: readonly string[]
}

function toDocument(chosen: Chosen, owner: string | undefined, out: string | undefined): Written {
  const document = printExport(chosen, { path: out ?? '', title: 'export', owner, rows: chosen.rows })
  if (out !== undefined) writeOut(out, document)
  return { where: out === undefined ? { document } : { file: out }, notes: notesOf(chosen) }
}

/** Writes the files once all are printed. The others that are there have no object of this export. */
async function toFolder(chosen: Chosen, directory: string): Promise<Written> {
  const files = layOut(chosen).map((part) => ({ ...part, text: printExport(chosen, part) }))
  const written = new Set(files.map(({ path }) => join(directory, path)))
  for (const { path, text } of files) {
    const file = join(directory, path)
    workOnFile(`${dirname(file)} cannot be made`, () => mkdirSync(dirname(file), { recursive: true }))
    writeOut(file, text)
  }
  const isProject = (path: string) => path === join(directory, projectName)
  const others = (await filesOf(directory, isProject)).filter((path) => !written.has(path)).sort()
  const named = files.map(({ path, owner, rows }) => ({ file: path, owner: owner ?? null, entries: rows.length }))
  const stale = 'These stand there too, and are not of this export. Remove those whose objects are gone'
  return {
    where: { directory, files: named, other_files: others },
    notes: [
      `${files.length} files below ${directory}`,
      ...notesOf(chosen),
      ...titled('Has another owner than its application', withOtherOwner(chosen).map(labelOf)),
      ...titled(stale, others),
    ],
  }
}

/** @throws {UsageError} for a name that is no exported model */
function readModels(registry: Registry, only: readonly string[] | undefined): readonly Model[] {
  const all = targets.flatMap((target) => registry.targets.get(target)?.models ?? [])
  if (only === undefined) return all
  const words = only.flatMap((part) => part.split(',')).map((word) => word.trim())
  return words.flatMap((word) => {
    const found = all.filter((model) => [model.name, model.resource, model.target].includes(word))
    if (found.length > 0) return found
    const known = new Set([...targets, ...all.map(({ resource }) => resource)])
    throw new UsageError(`--only: ${JSON.stringify(word.slice(0, 100))} is none of ${[...known].join(', ')}.`)
  })
}

/** The notes about facts that are not in the text. */
function notesOf({ rows, variables, outside }: Chosen): string[] {
  const generated = rows.filter((row) => row.isGenerated)
  return [
    `${rows.length} entries, ${listOf(variables).length} variables`,
    ...titled('Each installation generates its own', generated.map(labelOf)),
    ...titled('It refers to what it does not hold', outside.map(labelOf)),
  ]
}

const listOf = (variables: Chosen['variables']) => [...variables.values()].flat()

/** A note of several lines; none for an empty list. */
const titled = (title: string, lines: readonly string[]): string[] =>
  lines.length === 0 ? [] : [`${title}:\n${listed(lines.map((line) => `  ${line}`))}`]

function jsonOf({ rows, variables }: Chosen, where: Readonly<Record<string, unknown>>) {
  const named = listOf(variables).map(({ name, row, field, isJson, mayBeEmpty }) => ({
    name,
    model: row.model.name,
    identifiers: naturalKey(row),
    field: field.name,
    json: isJson,
    may_be_empty: mayBeEmpty,
  }))
  return { exit: exitCodes.done, entries: rows.length, variables: named, ...where }
}
