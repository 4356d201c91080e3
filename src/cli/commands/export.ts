import type { Model } from '../../models/define.ts'
import { ownerLabel } from '../../models/fields.ts'
import { loadRegistry, type Registry } from '../../models/registry.ts'
import { readArguments, readTimeoutMs } from '../arguments.ts'
import { openClient } from '../client.ts'
import { exitCodes, UsageError } from '../exit.ts'
import { type Export, isGenerated, listed, toExport } from '../export/entries.ts'
import { printExport } from '../export/print.ts'
import { type Target, targetOf, targets, withRows } from '../export/read.ts'
import { labelOf, naturalKey, type Row } from '../export/rows.ts'
import { openOutput, writeOut } from '../output.ts'

/** `gatewright export`: what is configured, as one blueprint. */

export const usage = `gatewright export [OPTIONS]

Prints what is configured as one blueprint, without keys of rows: applied to an empty installation, and exported there,
it is the same text. Secrets are !Env NAME; the names stand at its head. Users and their tokens are not part of it.

  --owner LABEL        only applications and providers under this label, and what they refer to
  --only MODEL,...     only these: flow, propertymapping, certificatekeypair, role, group, provider, application, or one
                       kind of provider, such as oauth2provider
  --out FILE           writes FILE, once all is read
  --timeout SECONDS    how long it may read (default 120)
  --json               one JSON document on standard output
`

const options = {
  owner: { type: 'string' },
  only: { type: 'string', multiple: true },
  out: { type: 'string' },
  timeout: { type: 'string' },
  json: { type: 'boolean' },
} as const

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, options)
  if (positionals.length > 0) throw new UsageError('export takes no names: --only and --owner choose what is exported.')
  const { owner, out } = values
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
  const selection = { models: new Set(models.map(({ name }) => name)), owner }
  const made = await withRows(reading, targetsFor(registry, models), (rows) => toExport(rows, selection))
  const text = printExport(made.entries, made.variables, owner)
  if (out !== undefined) writeOut(out, text)
  if (values.json === true) output.json(jsonOf(made, out, text))
  else if (out === undefined) process.stdout.write(text)
  for (const note of notesOf(made, owner)) output.note(note)
  return exitCodes.done
}

function checkOwner(owner: string | undefined): void {
  const error = owner === undefined ? undefined : ownerLabel().safeParse(owner).error
  if (error !== undefined) throw new UsageError(`--owner: ${error.issues[0]?.message}`)
}

const exported = (registry: Registry): readonly Model[] =>
  targets.flatMap((target) => registry.targets.get(target)?.models ?? [])

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

const maxOwners = 10

/** What the text does not say by itself. */
function notesOf({ rows, variables, outside }: Export, owner: string | undefined): string[] {
  const notes = [`${rows.length} entries, ${variables.length} variables`]
  const owners = [...new Set(rows.map((row) => row.owner).filter((label) => label !== null))].sort()
  if (owner === undefined && owners.length > 0)
    notes.push(
      `The document names no owner, and there are ${owners.length}: ${owners.slice(0, maxOwners).join(', ')}. Export each with --owner to keep it.`,
    )
  const list = (title: string, some: readonly Row[]) => {
    if (some.length > 0) notes.push(`${title}:\n${listed(some.map((row) => `  ${labelOf(row)}`))}`)
  }
  list('Each installation generates its own', rows.filter(isGenerated))
  list('It refers to what it does not hold', outside)
  return notes
}

function jsonOf({ entries, variables }: Export, out: string | undefined, text: string): string {
  const named = variables.map(({ name, row, field, isJson, mayBeEmpty }) => ({
    ...{ name, model: row.model.name, identifiers: naturalKey(row), field: field.name },
    ...{ json: isJson, may_be_empty: mayBeEmpty },
  }))
  const document = out === undefined ? { document: text } : { file: out }
  return JSON.stringify({ exit: exitCodes.done, entries: entries.length, variables: named, ...document }, null, 2)
}
