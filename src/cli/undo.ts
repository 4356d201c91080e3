import { z } from 'zod'
import { printValue } from '../document/yaml.ts'
import { type Client, read } from './client.ts'
import { UsageError } from './exit.ts'
import { type Document, type FormerRun, formerRun } from './inputs.ts'
import { type Change, run as runSchema } from './runs.ts'

/**
 * What puts back what a job did: the documents of the runs before its own, newest first, and a document that deletes what it
 * created. A job is the runs that were submitted under one request ID.
 */

export type Undo = {
  readonly documents: readonly (FormerRun | Document)[]
  /** What the documents do not put back: one line for each object. */
  readonly left: readonly string[]
  /** How many of them the job created. */
  readonly created: number
}

const page = z.object({
  pagination: z.object({ next: z.int() }),
  results: z.array(z.object({ id: z.string(), applied: z.boolean().nullable() })),
})
const ofJob = runSchema.extend({ earlier_run: z.string().nullish(), owner: z.string().nullish() })
type JobRun = z.output<typeof ofJob>

const limits = { runs: 10_000, page: 100 } as const

type Patience = { readonly withinMs: number; readonly onWait: (why: string) => void }

/**
 * @param deletes how many objects that the job created are to be deleted; undefined: none, and they are reported
 * @throws {UsageError} when there is nothing of the job, and for another number than it created
 */
export async function undoOf(
  client: Client,
  requestId: string,
  deletes: number | undefined,
  patience: Patience,
): Promise<Undo> {
  const readRun = (id: string, more = '') =>
    read(client, `/blueprints/runs/${id}/?include_blueprint=false${more}`, ofJob, patience)
  const runs: JobRun[] = []
  for (const id of await appliedRuns(client, requestId, patience)) {
    const found = await readRun(id, '&include_earlier_run=true')
    if (found.changes.some(({ action }) => action !== 'unchanged')) runs.push(found)
  }
  const own = new Set(runs.map(({ id }) => id))
  const earlier = new Set(runs.flatMap(({ earlier_run: id }) => (id == null || own.has(id) ? [] : [id])))
  const named = new Set<string>()
  for (const id of earlier) for (const change of (await readRun(id)).changes) named.add(objectOf(change))

  const others = changedBy(runs).filter(({ change }) => !named.has(objectOf(change)))
  const created = others.filter(({ first }) => first === 'create')
  const kept = others.filter(({ first }) => first !== 'create')
  if (deletes !== undefined && deletes !== created.length)
    throw new UsageError(
      `--allow-deletes ${deletes}: the job created ${created.length} objects that no run before it names.\n${linesOf(created).join('\n')}`,
    )
  const isDeleted = deletes !== undefined
  return {
    documents: [...[...earlier].map(formerRun), ...(isDeleted ? absent(created, requestId) : [])],
    left: linesOf(isDeleted ? kept : [...created, ...kept]),
    created: isDeleted ? 0 : created.length,
  }
}

/** The ids of the job's runs that were applied, the newest first. */
async function appliedRuns(client: Client, requestId: string, patience: Patience): Promise<string[]> {
  const query = new URLSearchParams({ request_id: requestId, mode: 'apply', page_size: String(limits.page) })
  const ids: string[] = []
  for (let number = 1; number > 0; ) {
    const { pagination, results } = await read(client, `/blueprints/runs/?${query}&page=${number}`, page, patience)
    ids.push(...results.filter(({ applied }) => applied === true).map(({ id }) => id))
    if (ids.length > limits.runs) throw new UsageError(`The job has more than ${limits.runs} runs.`)
    number = pagination.next > number ? pagination.next : 0
  }
  if (ids.length > 0) return ids
  const see = 'gatewright runs --request-id lists the runs of a job that you may see'
  throw new UsageError(`No run of the request ID ${JSON.stringify(requestId)} was applied: ${see}.`)
}

type Changed = { readonly change: Change; readonly first: string; readonly last: string; readonly run: JobRun }

/** Each object that the job changed, with what it did first and last; the last one of the job comes first. */
function changedBy(runs: readonly JobRun[]): Changed[] {
  const objects = new Map<string, Changed>()
  for (const run of runs.toReversed())
    for (const change of run.changes) {
      const { action } = change
      if (action === 'unchanged') continue
      const object = objectOf(change)
      const first = objects.get(object)?.first ?? action
      objects.delete(object)
      objects.set(object, { change, first, last: action, run })
    }
  // What it created and deleted again is as it was.
  return [...objects.values()].filter(({ first, last }) => !(first === 'create' && last === 'delete')).toReversed()
}

const objectOf = ({ model, key }: Change): string => JSON.stringify([model, key])

const words: Readonly<Record<string, string>> = { create: 'created', update: 'changed', delete: 'deleted' }

const linesOf = (objects: readonly Changed[]): string[] =>
  objects.map(({ change: { model, key }, first, run }) => {
    const names = Object.values(key).map((value) => JSON.stringify(value))
    return `${model} ${names.join(' ')} was ${words[first] ?? first} by run ${run.id}, and no run before the job names it`
  })

/** One document for each owner: the last that was created is deleted first. */
function absent(created: readonly Changed[], requestId: string): Document[] {
  const byOwner = Map.groupBy(created, ({ run: { owner } }) => owner ?? null)
  return [...byOwner].map(([owner, objects]) => {
    const value = {
      version: 1,
      metadata: { name: `roll back ${requestId}` },
      ...(owner !== null && { owner }),
      entries: objects.map(({ change: { model, key } }) => ({ model, state: 'absent', identifiers: key })),
    }
    const text = printValue(value)
    const file = `what the job created${owner === null ? '' : ` (owner ${owner})`}`
    return { file, form: 'blueprint', value, text, body: text }
  })
}

/** What to do about what is left. */
export const adviceOf = ({ created, left }: Undo): string =>
  created > 0
    ? `--allow-deletes ${created} deletes what the job created. ${left.length > created ? 'Put the others back by hand.' : ''}`.trim()
    : 'Put it back by hand: gatewright logs prints what a run changed.'
