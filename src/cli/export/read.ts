import { z } from 'zod'
import type { Model, Reference } from '../../models/define.ts'
import type { Registry } from '../../models/registry.ts'
import { type Client, Denied, read } from '../client.ts'
import { UsageError } from '../exit.ts'
import { shown } from '../output.ts'
import { type Row, Rows } from './rows.ts'

/** Reads what is exported through the HTTP API, page by page. */

/** The lists, by reference target, in the order in which their rows are printed. */
const lists = {
  flow: '/flows/instances/',
  propertymapping: '/propertymappings/all/',
  certificatekeypair: '/crypto/certificatekeypairs/',
  role: '/rbac/roles/',
  group: '/core/groups/?include_users=false',
  provider: '/providers/all/',
  application: '/core/applications/',
} as const

export type Target = keyof typeof lists

export const targets = Object.keys(lists) as readonly Target[]

/** The list that has the rows of a reference; undefined when none is exported. */
export const targetOf = (registry: Registry, { target }: Pick<Reference, 'target'>): Target | undefined => {
  // A target may be a part of the rows of another: then all of its models are models of the other too.
  const [model] = registry.targets.get(target)?.models ?? []
  return targets.find((each) => each === model?.target)
}

const limits = { pageSize: 200, rows: 100_000, readings: 3 } as const

export type Reading = {
  readonly client: Client
  readonly registry: Registry
  /** Until everything is read. */
  readonly leftMs: () => number
  readonly onWait: (why: string) => void
}

/** What is there changed while it was read, so that the parts do not fit. */
export class Changed extends Error {
  override readonly name = 'Changed'
}

const key = z.union([z.string(), z.int()])
const page = z.object({
  pagination: z.object({ next: z.int(), count: z.int() }),
  results: z.array(z.looseObject({ pk: key })),
})

type Result = z.output<typeof page>['results'][number]

/**
 * Calls `use` with all rows of these targets. What does not fit, because it changed meanwhile, is read again.
 *
 * @throws {UsageError} for what the caller may not read, what this program does not know, and what does not stop changing
 */
export async function withRows<Answer>(
  reading: Reading,
  wanted: readonly Target[],
  use: (rows: Rows) => Answer,
): Promise<Answer> {
  for (let tries = 1; ; tries += 1)
    try {
      const rows: Row[] = []
      for (const target of wanted) rows.push(...(await readTarget(reading, target)))
      return use(new Rows(reading.registry, rows))
    } catch (error) {
      if (error instanceof Denied) throw await withAllMissing(reading, wanted, error)
      if (!(error instanceof Changed)) throw error
      if (tries === limits.readings) throw new UsageError(`${error.message}. Try again when less is changed.`)
      reading.onWait(error.message)
    }
}

async function readTarget(reading: Reading, target: Target): Promise<Row[]> {
  const { registry } = reading
  const models = registry.targets.get(target)?.models ?? []
  const results = await readList(reading, lists[target])
  // The list of all kinds leaves out those that the caller may not see.
  for (const { path } of target === 'provider' ? readsOf(registry, target) : [])
    await readPage(reading, path, { number: 1, size: 1 })
  return results.map((result) => toRow(result, modelOf(result, models)))
}

/** The lists that show all rows of a target, with the permission of each. */
const readsOf = (registry: Registry, target: Target): { path: string; permission: string }[] =>
  target === 'provider'
    ? [...registry.kinds.values()].map(({ provider, resource }) => ({
        path: `/providers/${provider.kind}/`,
        permission: `view_${resource}`,
      }))
    : (registry.targets.get(target)?.models ?? []).map(({ resource }) => ({
        path: lists[target],
        permission: `view_${resource}`,
      }))

/** Asks all lists after one denied: the caller's token is made once. */
async function withAllMissing(reading: Reading, wanted: readonly Target[], first: Denied): Promise<UsageError> {
  const missing: string[] = []
  for (const { path, permission } of wanted.flatMap((target) => readsOf(reading.registry, target)))
    try {
      await readPage(reading, path, { number: 1, size: 1 })
    } catch (error) {
      if (!(error instanceof Denied)) throw error
      missing.push(permission)
    }
  if (missing.length === 0) return first
  const what = missing.length === 1 ? 'the permission' : `${missing.length} permissions`
  return new UsageError(`This export needs ${what} that you lack: ${missing.join(', ')}. --only leaves out models.`)
}

async function readList(reading: Reading, path: string): Promise<Result[]> {
  const found = new Map<string | number, Result>()
  let expected: number | undefined
  for (let number = 1; number > 0; ) {
    const { pagination, results } = await readPage(reading, path, { number, size: limits.pageSize })
    expected ??= pagination.count
    if (expected > limits.rows)
      throw new UsageError(`${path} has ${expected} rows: an export reads ${limits.rows} at most.`)
    if (pagination.count !== expected) throw new Changed(`${path} changed while it was read`)
    for (const result of results) found.set(result.pk, result)
    number = pagination.next > number ? pagination.next : 0
  }
  if (found.size !== expected) throw new Changed(`${path} changed while it was read`)
  return [...found.values()]
}

/** By key: a row that is added or renamed moves few others. */
const readPage = (
  { client, leftMs, onWait }: Reading,
  path: string,
  { number, size }: { number: number; size: number },
) =>
  read(client, `${path}${path.includes('?') ? '&' : '?'}ordering=pk&page=${number}&page_size=${size}`, page, {
    withinMs: leftMs(),
    onWait,
  })

const update = 'Use the program of the version that the service has.'

function modelOf(result: Result, models: readonly Model[]): Model {
  const [only, another] = models
  const found = another === undefined ? only : models.find(({ name }) => name === result.meta_model_name)
  if (found !== undefined) return found
  throw new UsageError(`This program does not know what ${shown(JSON.stringify(result.name))} is. ${update}`)
}

/** @throws {UsageError} for a field of another version: it would be lost without a word */
function toRow({ pk, ...result }: Result, model: Model): Row {
  const known = new Set([...model.fields.keys(), ...model.readOnly, ...(model.alwaysNull ?? [])])
  const unknown = Object.keys(result).filter((name) => !known.has(name))
  const missing = [...model.fields.keys()].filter((name) => !Object.hasOwn(result, name))
  const [first] = [...unknown, ...missing]
  if (first !== undefined)
    throw new UsageError(
      `The service and this program have different fields: ${shown(first)} of ${model.displayName}. ${update}`,
    )
  const { owner } = result
  return { pk, model, values: result, owner: typeof owner === 'string' ? owner : null }
}
