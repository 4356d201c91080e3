import { z } from 'zod'
import { documentLimits } from '../../document/document.ts'
import type { Model } from '../../models/define.ts'
import type { Registry } from '../../models/registry.ts'
import { type Client, read } from '../client.ts'
import { UsageError } from '../exit.ts'
import { shown } from '../output.ts'
import { readMe } from '../runs.ts'
import { Changed, lists, type Reference, type Result, Rows, type Target, targetOf, targets } from './rows.ts'

/** Reads the rows of an export through the HTTP API, page by page. */

/** `keys`: those of one request, for the filter `pk`. */
const limits = { pageSize: 500, keys: 100, readings: 3 } as const

export type Reading = {
  readonly client: Client
  readonly registry: Registry
  readonly onRead: (rows: number, of: number) => void
}

export type Selection = {
  readonly models: readonly Model[]
  /** The label: only rows that are managed under it, with those to which they refer. */
  readonly owner?: string | undefined
  /** Whether secret fields are left out, and so are their variables. */
  readonly isWithoutSecrets?: boolean
  /** The slugs: only these applications with their providers, and the rows to which they refer. */
  readonly applications?: readonly string[] | undefined
  /** Whether the export is one document: a document has a limit of entries. */
  readonly isOneDocument: boolean
}

export const isNarrow = ({ owner, applications }: Selection): boolean => (owner ?? applications) !== undefined

export const smaller = 'export it in parts, with --only or --owner, or as files, with --out DIR/.'

/** @throws {UsageError} for more rows than a document may have */
export function checkEntries(count: number): void {
  if (count > documentLimits.entries)
    throw new UsageError(`These are ${count} entries, and a document may have ${documentLimits.entries}: ${smaller}`)
}

const key = z.union([z.string(), z.int()])
const page = z.object({
  pagination: z.object({ next: z.int(), count: z.int() }),
  results: z.array(z.looseObject({ pk: key })),
})

type ListPage = z.output<typeof page>
type Query = readonly (readonly [name: string, value: string])[]

/**
 * Calls `use` with the selected rows, and those to which they refer. Rows that do not fit, because they changed meanwhile, are
 * read again.
 *
 * @throws {UsageError} for rows that the caller may not read, that this program does not know, or that do not stop changing, and
 * for more than fit into one document
 */
export async function withRows<Answer>(reading: Reading, selection: Selection, use: (rows: Rows) => Answer) {
  const wanted = targetsOf(reading.registry, selection)
  await refuseMissing(reading, wanted)
  for (let tries = 1; ; tries += 1)
    try {
      return use(await readAll(reading, selection, wanted))
    } catch (error) {
      if (!(error instanceof Changed)) throw error
      if (tries === limits.readings) throw new UsageError(`${error.message}. Try again when less is changed.`)
      reading.client.waiting(error.message)
    }
}

/** The lists of the selected models, and of all models to which they may refer. */
function targetsOf(registry: Registry, selection: Selection): readonly Target[] {
  const { models, applications } = selection
  const modelsOf = (target: string | undefined) => registry.targets.get(target ?? '')?.models ?? []
  const first = isNarrow(selection) ? models.filter(({ target }) => /^(application|provider)$/.test(target)) : models
  const needed = new Set([...first, ...(applications === undefined ? [] : modelsOf('application'))])
  for (const { fields } of needed)
    for (const field of fields.values()) for (const other of modelsOf(targetOf(registry, field))) needed.add(other)
  return targets.filter((target) => [...needed].some((model) => model.target === target))
}

/** Reads all lists. The first page of each comes first: too many rows are found before the long work. */
async function readAll(reading: Reading, selection: Selection, wanted: readonly Target[]): Promise<Rows> {
  const { registry } = reading
  const parts: ListPart[] = []
  for (const target of wanted)
    for (const query of startsOf(registry, selection, target))
      parts.push({ target, query, first: await readPage(reading, target, query, 1) })
  const countOf = (some: readonly ListPart[]) => some.reduce((sum, { first }) => sum + first.pagination.count, 0)
  const isWhole = ({ target }: ListPart) =>
    registry.targets.get(target)?.models.every((model) => selection.models.includes(model))
  if (selection.isOneDocument && !isNarrow(selection)) checkEntries(countOf(parts.filter(isWhole)))
  const total = countOf(parts)
  const rows = new Rows(registry)
  const add = ({ results }: ListPage, target: Target) => {
    const models = registry.targets.get(target)?.models ?? []
    for (const result of results) rows.add(modelOf(result, models), result)
    reading.onRead(Math.min(rows.all.length, total), total)
  }
  for (const part of parts) for await (const each of pagesOf(reading, part)) add(each, part.target)
  if (isNarrow(selection))
    for (const target of wanted.toReversed())
      for await (const each of missingOf(reading, rows, target)) add(each, target)
  return rows
}

/** A list, or a part of it, with its first page. */
type ListPart = { readonly target: Target; readonly query: Query; readonly first: ListPage }

/** The parts of a target that are read before the references of other rows are known. */
function startsOf(registry: Registry, selection: Selection, target: Target): readonly Query[] {
  const { owner, applications } = selection
  if (!isNarrow(selection) || !isFoundByKey(registry, target)) return [[]]
  if (applications !== undefined) return target === 'application' ? applications.map((slug) => [['slug', slug]]) : []
  return target === 'application' || target === 'provider' ? [[['owner', String(owner)]]] : []
}

/** Whether rows of a target can be named without reading all: no two have the same name. */
const isFoundByKey = (registry: Registry, target: Target): boolean =>
  (registry.targets.get(target)?.models ?? []).every(({ names, identifiers }) =>
    names.every((name) => identifiers.some((set) => set.length === 1 && set[0] === name)),
  )

async function* pagesOf(reading: Reading, { target, query, first }: ListPart): AsyncGenerator<ListPage> {
  const expected = first.pagination.count
  const seen = new Set<string | number>()
  for (let [number, page] = [1, first]; ; page = await readPage(reading, target, query, number)) {
    for (const { pk } of page.results) seen.add(pk)
    if (page.pagination.count !== expected || seen.size < Math.min(number * limits.pageSize, expected))
      throw new Changed(`${lists[target]} changed while it was read`)
    yield page
    if (page.pagination.next <= number) return
    number += 1
  }
}

/** The rows of a target that others refer to and that were not read; then those that these refer to. */
async function* missingOf(reading: Reading, rows: Rows, target: Target): AsyncGenerator<ListPage> {
  const asked = new Set<unknown>()
  const isMissing = (each: Reference) => each.target === target && rows.get(each) === undefined
  for (;;) {
    const keys = rows.all.flatMap((row) => rows.references(row)).filter(isMissing)
    const missing = [...new Set(keys.map(({ pk }) => pk)).difference(asked)].slice(0, limits.keys)
    if (missing.length === 0) return
    for (const pk of missing) asked.add(pk)
    const query = missing.map((pk) => ['pk', String(pk)] as const)
    yield await readPage(reading, target, query, 1)
  }
}

/** Names all permissions that are missing, so that the caller can make a token with all of them at once. @throws {UsageError} */
async function refuseMissing({ client, registry }: Reading, wanted: readonly Target[]) {
  const user = await readMe(client)
  // One that is bound to owners, such as `view_application@team-a`, shows their rows.
  const held = new Set(user.system_permissions.map((each) => each.split('@', 1).join()))
  const models = wanted.flatMap((target) => registry.targets.get(target)?.models ?? [])
  const missing = [...new Set(models.map(({ resource }) => `view_${resource}`))].filter((each) => !held.has(each))
  if (missing.length === 0) return
  const what = missing.length === 1 ? 'the permission' : `${missing.length} permissions`
  throw new UsageError(`This export needs ${what} that you lack: ${missing.join(', ')}. --only leaves out models.`)
}

/** The order is by key: a row that is added or renamed moves few others. */
function readPage({ client }: Reading, target: Target, query: Query, number: number): Promise<ListPage> {
  const asked = new URLSearchParams({ ordering: 'pk', page: `${number}`, page_size: `${limits.pageSize}` })
  if (target === 'group') asked.set('include_users', 'false')
  for (const [name, value] of query) asked.append(name, value)
  return read(client, `${lists[target]}?${asked}`, page)
}

const update = 'Use the program of the version that the service has.'

function modelOf(result: Result, models: readonly Model[]): Model {
  const [only, another] = models
  const found = another === undefined ? only : models.find(({ name }) => name === result.meta_model_name)
  if (found === undefined)
    throw new UsageError(`This program does not know what ${shown(JSON.stringify(result.name))} is. ${update}`)
  checkFields(result, found)
  return found
}

/** @throws {UsageError} for a field of another version: it would be lost without a word */
function checkFields({ pk: _, ...result }: Result, model: Model): void {
  const known = new Set([...model.fields.keys(), ...model.readOnly, ...(model.alwaysNull ?? [])])
  const unknown = Object.keys(result).filter((name) => !known.has(name))
  const missing = [...model.fields.keys()].filter((name) => !Object.hasOwn(result, name))
  const [first] = [...unknown, ...missing]
  if (first === undefined) return
  throw new UsageError(
    `The service and this program have different fields: ${shown(first)} of ${model.displayName}. ${update}`,
  )
}
