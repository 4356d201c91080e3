import { z } from 'zod'
import { readWritten } from '../document/yaml.ts'
import type { Field } from '../models/define.ts'
import { loadRegistry } from '../models/registry.ts'
import { type Permission, toReadSecrets } from '../permissions.ts'
import { type Client, read, readAnswer, sendUntilAnswered } from './client.ts'
import { UsageError } from './exit.ts'
import { entriesOf } from './places.ts'
import { type Run, run as runSchema } from './runs.ts'

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

/**
 * @param opens whether secrets are read that the caller may read: each day on which a user does is on record
 * @returns also what it needs; nothing without a provider @throws {UsageError} when there is no such application
 */
export async function readApplication(client: Client, slug: string, opens = false) {
  const found = await read(client, `/core/applications/${encodeURIComponent(slug)}/`, application)
  if (found.provider === null) return { application: found, provider: null, needed: [] }
  const of = await read(client, `/providers/all/${found.provider}/`, provider)
  return { application: found, provider: of, needed: await neededBy(client, slug, of, opens) }
}

const change = z.object({
  model: z.string(),
  key: z.string(),
  fields: z.record(z.string(), z.unknown()).nullable(),
  run: z.string().nullable(),
})
/** A service before 0.3.0 names no consumers. */
const consumers = z.array(z.object({ issuer: z.string().nullable() })).default([])
const history = z.object({ results: z.array(change), consumers })

/** What the application needs, by names of variables: `GRAFANA_CLIENT_ID`. */
async function neededBy(client: Client, slug: string, of: Provider, opens: boolean): Promise<Needed[]> {
  const model = [...(await loadRegistry()).kinds.values()].find(({ name }) => name === of.meta_model_name)
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
  const path = `/core/applications/${encodeURIComponent(slug)}/history/?page_size=100`
  const recorded = await read(client, path, history)
  if (!model.fields.has('issuer')) plain.unshift(...issuerOf(recorded, variable('issuer')))
  const secret = fields.filter((field) => field.secret && (of[field.name] ?? null) !== null)
  if (secret.length === 0) return plain
  const opened = opens ? await readOpened(client, model.provider.kind, of.pk) : {}
  const changes = recorded.results.filter((each) => each.model === model.name && each.key === String(of.pk))
  const runs = new Map<string, Promise<Run>>()
  const runOf = (id: string) => runs.getOrInsertComputed(id, () => read(client, `/blueprints/runs/${id}/`, runSchema))
  const secrets = secret.map(async ({ name }): Promise<Needed> => {
    const [newest] = secretValues.safeParse(opened[name]).data ?? []
    if (newest !== undefined)
      return { name: variable(name), value: newest.value, secret: true, readable: true, why: null }
    // The newest change decides: what an older one generated is another secret. Of some it is not known any more what they set.
    const id = changes.find(({ fields }) => fields === null || fields[name] === 'changed')?.run ?? null
    const run = id === null ? null : await runOf(id)
    const value = (run && generatedFor(run, of)[name]) ?? null
    const why = whyOf(run, value !== null, toReadSecrets(model.resource))
    return { name: variable(name), value, secret: true, readable: value !== null, why }
  })
  return [...plain, ...(await Promise.all(secrets))]
}

/** Where users sign in: nothing where no server has said so. */
function issuerOf({ consumers }: z.output<typeof history>, name: string): Needed[] {
  const [issuer, ...others] = new Set(consumers.flatMap(({ issuer }) => issuer ?? []))
  if (issuer === undefined) return []
  const of = { name, secret: false }
  if (others.length === 0) return [{ ...of, value: issuer, readable: true, why: null }]
  const why = `several servers sign users in: ${[issuer, ...others].sort().join(', ')}`
  return [{ ...of, value: null, readable: false, why }]
}

const secretValues = z.array(z.object({ value: z.string() }))
const configurations = z.object({ results: z.array(z.record(z.string(), z.unknown())) })

/** The configuration with opened secrets. @returns nothing from a service that has none for the caller, or that is older */
async function readOpened(client: Client, kind: string, pk: number): Promise<Record<string, unknown>> {
  const answer = await sendUntilAnswered(client, 'GET', `/consumers/${kind}/?pk=${pk}`)
  return [403, 404].includes(answer.status) ? {} : (readAnswer(client, answer, configurations).results[0] ?? {})
}

/** Key pairs are named by their keys; flows and mappings are of the service. */
const isOfApplication = ({ secret, reference }: Field): boolean =>
  !secret && (reference === undefined || reference.target === 'certificatekeypair')

/** @param opens the permission to read the secret, which `show` does not use */
function whyOf(run: Run | null, isReadable: boolean, opens: Permission): string {
  const remedy = `with ${opens}, gatewright env prints it`
  if (run === null) return `no run that you may see set it last; ${remedy}`
  if (isReadable) return `run ${run.id} generated it; it can be read until ${run.generated_until ?? 'that run is gone'}`
  return `run ${run.id} set it: it was sent, or the time to read it is over, or the run is of another user; ${remedy}`
}

/** The generated values of one provider. The run has them by the id of the entry, or by the name of its row. */
function generatedFor({ generated, blueprint = '' }: Run, of: Provider): Readonly<Record<string, string>> {
  const ids = Object.keys(generated)
  if (ids.length === 0) return {}
  const value = blueprint === '' ? null : readWritten(blueprint)
  const { id } =
    entriesOf(value)
      .map(({ entry }) => Object(entry))
      .find(({ model, identifiers }) => model === of.meta_model_name && identifiers?.name === of.name) ?? {}
  return generated[id ?? ids.find((each) => each.endsWith(` ${JSON.stringify(of.name)}`))] ?? {}
}
