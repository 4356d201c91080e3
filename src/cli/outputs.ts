import { z } from 'zod'
import { readWritten } from '../document/yaml.ts'
import { hidden } from '../hidden.ts'
import { isObject } from '../json-object.ts'
import type { Field } from '../models/define.ts'
import { loadRegistry } from '../models/registry.ts'
import { type Client, read } from './client.ts'
import { UsageError } from './exit.ts'
import { entriesIn } from './places.ts'
import { type Run, readRun, readRuns, wordOf } from './runs.ts'

/** What an application needs of its provider: ids, addresses and, as long as they may be read, generated secrets. */

/** @property value undefined for a secret that cannot be read; `why` says so, or where it was read */
export type Needed = {
  readonly name: string
  readonly value: string | undefined
  readonly isSecret: boolean
  readonly why?: string
}

const application = z.looseObject({
  name: z.string(),
  slug: z.string(),
  provider: z.int().nullable(),
  launch_url: z.string().nullable(),
  owner: z.string().nullable(),
  created_by_name: z.string().nullable(),
})
const provider = z.looseObject({ name: z.string(), verbose_name: z.string(), meta_model_name: z.string() })

export type Application = z.output<typeof application>
export type Provider = z.output<typeof provider>

/** @throws {UsageError} when there is no such application */
export async function readApplication(client: Client, slug: string, withinMs: number) {
  const found = await read(client, `/core/applications/${encodeURIComponent(slug)}/`, application, withinMs)
  const key = found.provider
  return {
    application: found,
    provider: key === null ? null : await read(client, `/providers/all/${key}/`, provider, withinMs),
  }
}

/** The most runs that are searched for the one that generated a secret: each is a request. */
const mostRuns = 10

/** What the application needs, by names of variables: `GRAFANA_CLIENT_ID`. */
export async function neededBy(
  client: Client,
  { slug, provider: of }: { readonly slug: string; readonly provider: Provider },
  withinMs: number,
): Promise<Needed[]> {
  const model = (await loadRegistry()).byName(of.meta_model_name)
  if (model === undefined) throw new UsageError(`This version does not know ${of.meta_model_name}: use a newer one.`)
  const variable = (field: string) =>
    `${slug}_${field}`
      .toUpperCase()
      .replace(/[^A-Z0-9]+/g, '_')
      .replace(/^(?=\d)/, '_')
  const fields = [...model.fields.values()].filter(({ name }) => name !== 'name')
  const plain = fields.flatMap((field): Needed[] => {
    const value = of[field.name]
    const isNeeded = typeof value === 'string' && value !== '' && value !== field.initial && isOfApplication(field)
    return isNeeded ? [{ name: variable(field.name), value, isSecret: false }] : []
  })
  const secret = fields.filter((field) => field.secret && of[field.name] === hidden)
  if (secret.length === 0) return plain
  const query = { object: `${model.resource}:${of.name}`, mode: 'apply', page_size: String(mostRuns) }
  const runs = (await readRuns(client, query, withinMs)).filter((run) => wordOf(run) === 'applied')
  const found = new Map<string, Needed>()
  for (const { id } of runs) {
    const left = secret.filter(({ name }) => !found.has(name))
    if (left.length === 0) break
    const run = await readRun(client, `/blueprints/runs/${id}/`, withinMs)
    const changed = run.changes.filter(({ model: name, key }) => name === model.name && key.name === of.name)
    // The newest run that set it decides: what an older one generated is another secret.
    const set = left.filter(({ name }) => changed.some(({ fields: each }) => each[name] === 'changed'))
    if (set.length === 0) continue
    const generated = await generatedFor(client, run, of, withinMs)
    for (const { name } of set) found.set(name, secretOf(variable(name), generated[name], run))
  }
  return [
    ...plain,
    ...secret.map(
      ({ name }) => found.get(name) ?? { ...unread(variable(name)), why: 'no run that you may see set it' },
    ),
  ]
}

/** Key pairs are named by their keys; flows and mappings are of the service. */
const isOfApplication = ({ secret, reference }: Field): boolean =>
  !secret && (reference === undefined || reference.target === 'certificatekeypair')

const unread = (name: string) => ({ name, value: undefined, isSecret: true })

const secretOf = (name: string, value: string | undefined, { id, generated_until: until }: Run): Needed =>
  value === undefined
    ? {
        ...unread(name),
        why: `run ${id} set it: it was sent, or the time to read it is over, or the run is of another user`,
      }
    : {
        name,
        value,
        isSecret: true,
        why: `run ${id} generated it; it can be read until ${until ?? 'that run is gone'}`,
      }

/** The generated values of one provider. The run has them by the id of the entry, or by the name of its row. */
async function generatedFor(
  client: Client,
  run: Run,
  of: Provider,
  withinMs: number,
): Promise<Readonly<Record<string, string>>> {
  const ids = Object.keys(run.generated)
  if (ids.length === 0) return {}
  const { blueprint = '' } = await readRun(client, `/blueprints/runs/${run.id}/`, withinMs, true)
  const written = blueprint === '' ? null : readWritten(blueprint)
  const entries = (isObject(written) && entriesIn(written.entries)) || []
  const isOf = (entry: unknown) =>
    isObject(entry) &&
    entry.model === of.meta_model_name &&
    isObject(entry.identifiers) &&
    entry.identifiers.name === of.name
  const own = entries.map(({ entry }) => entry).find(isOf)
  const id =
    isObject(own) && typeof own.id === 'string'
      ? own.id
      : ids.find((each) => each.endsWith(` ${JSON.stringify(of.name)}`))
  return run.generated[id ?? ''] ?? {}
}
