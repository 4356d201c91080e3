import { z } from 'zod'
import { readWritten } from '../document/yaml.ts'
import type { Field } from '../models/define.ts'
import { loadRegistry } from '../models/registry.ts'
import { type Client, read } from './client.ts'
import { UsageError } from './exit.ts'
import { entriesOf } from './places.ts'
import { type Run, readRun } from './runs.ts'

/** What an application needs of its provider: ids, addresses and, as long as they may be read, generated secrets. */

/** @property value null for a secret that cannot be read; `why` says so, or where it was read */
export type Needed = {
  readonly name: string
  readonly value: string | null
  readonly secret: boolean
  readonly readable: boolean
  readonly why: string | null
}

const application = z.looseObject({
  name: z.string(),
  slug: z.string(),
  provider: z.int().nullable(),
  launch_url: z.string().nullable(),
  owner: z.string().nullable(),
  created_by_name: z.string().nullable(),
})
const provider = z.looseObject({
  pk: z.int(),
  name: z.string(),
  verbose_name: z.string(),
  meta_model_name: z.string(),
})

type Provider = z.output<typeof provider>

/** @returns also what it needs; nothing without a provider @throws {UsageError} when there is no such application */
export async function readApplication(client: Client, slug: string, withinMs: number) {
  const found = await read(client, `/core/applications/${encodeURIComponent(slug)}/`, application, withinMs)
  if (found.provider === null) return { application: found, provider: null, needed: [] }
  const of = await read(client, `/providers/all/${found.provider}/`, provider, withinMs)
  return { application: found, provider: of, needed: await neededBy(client, slug, of, withinMs) }
}

const change = z.object({
  model: z.string(),
  key: z.string(),
  fields: z.record(z.string(), z.unknown()).nullable(),
  run: z.string().nullable(),
})
const history = z.object({ results: z.array(change) })

/** What the application needs, by names of variables: `GRAFANA_CLIENT_ID`. */
async function neededBy(client: Client, slug: string, of: Provider, withinMs: number): Promise<Needed[]> {
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
    return isNeeded ? [{ name: variable(field.name), value, secret: false, readable: true, why: null }] : []
  })
  const secret = fields.filter((field) => field.secret && (of[field.name] ?? null) !== null)
  if (secret.length === 0) return plain
  const path = `/core/applications/${encodeURIComponent(slug)}/history/?page_size=100`
  const changes = (await read(client, path, history, withinMs)).results.filter(
    (each) => each.model === model.name && each.key === String(of.pk),
  )
  const runs = new Map<string, Promise<Run>>()
  const runOf = (id: string) =>
    runs.getOrInsertComputed(id, () => readRun(client, `/blueprints/runs/${id}/`, withinMs, true))
  const secrets = secret.map(async ({ name }): Promise<Needed> => {
    // The newest change decides: what an older one generated is another secret. Of some it is not known any more what they set.
    const id = changes.find(({ fields }) => fields === null || fields[name] === 'changed')?.run ?? null
    const run = id === null ? null : await runOf(id)
    const value = (run && generatedFor(run, of)[name]) ?? null
    return { name: variable(name), value, secret: true, readable: value !== null, why: whyOf(run, value !== null) }
  })
  return [...plain, ...(await Promise.all(secrets))]
}

/** Key pairs are named by their keys; flows and mappings are of the service. */
const isOfApplication = ({ secret, reference }: Field): boolean =>
  !secret && (reference === undefined || reference.target === 'certificatekeypair')

function whyOf(run: Run | null, isReadable: boolean): string {
  if (run === null) return 'no run that you may see set it last'
  if (isReadable) return `run ${run.id} generated it; it can be read until ${run.generated_until ?? 'that run is gone'}`
  return `run ${run.id} set it: it was sent, or the time to read it is over, or the run is of another user`
}

/** The generated values of one provider. The run has them by the id of the entry, or by the name of its row. */
function generatedFor({ generated, blueprint = '' }: Run, of: Provider): Readonly<Record<string, string>> {
  const ids = Object.keys(generated)
  if (ids.length === 0) return {}
  const value = blueprint === '' ? null : readWritten(blueprint)
  const { id } =
    entriesOf({ document: { value } })
      .map(({ entry }) => Object(entry))
      .find(({ model, identifiers }) => model === of.meta_model_name && identifiers?.name === of.name) ?? {}
  return generated[id ?? ids.find((each) => each.endsWith(` ${JSON.stringify(of.name)}`))] ?? {}
}
