import { randomUUID } from 'node:crypto'
import { type Answer, applyPath, example, type Installation, type Kind, kinds } from '../../support/kit.ts'
import { outcomeOf } from './answers.ts'
import type { Describe, Prepare } from './trial.ts'

/** Submissions: the smallest valid one, with one field more. */

type Values = Readonly<Record<string, unknown>>

const keyPair = '6f7e0000-0000-4000-8000-000000000301'

/** Fields that the shipped examples do not have. */
const others: Partial<Record<Kind, Values>> = {
  directory_sync_b: { filter_group: '6f7e0000-0000-4000-8000-000000000502' },
  oauth2: { encryption_key: keyPair, jwks_sources: [] },
  proxy: { certificate: keyPair, cookie_domain: 'example.com', jwks_sources: [] },
  saml: { verification_kp: keyPair, encryption_kp: keyPair },
  workspace_sync_a: { scopes: 'https://example.com/scope' },
}

/** Other fields that a field requires. */
const companions: Readonly<Record<string, readonly string[]>> = {
  basic_auth_enabled: ['basic_auth_password_attribute', 'basic_auth_user_attribute'],
}

const appValues: Values = {
  open_in_new_tab: true,
  meta_launch_url: 'https://example.com/',
  meta_description: 'Described',
  meta_publisher: 'Published',
  policy_engine_mode: 'all',
  group: 'Grouped',
}

let count = 0
const fresh = () => {
  count += 1
  return `matrix-${count}`
}

/** One application with its provider, of each kind, that is there. */
export type Present = ReadonlyMap<string, { readonly name: string; readonly pk: number; readonly values: Values }>

export async function present(there: Installation): Promise<Present> {
  const made = kinds.map(async (kind) => {
    const { provider } = await example(kind)
    const values = { property_mappings: [], ...provider, ...others[kind] }
    const name = `there-${kind}`
    const body = bodyOf(there, kind, { name, values, app: { name, slug: name }, members: [] })
    const answer = await there.admin.put(applyPath, body)
    if (answer.status !== 200) throw new Error(answer.text)
    const { pk } = await there.db.provider.findUniqueOrThrow({ where: { name } })
    return [kind, { name, pk, values }] as const
  })
  return new Map(await Promise.all(made))
}

function bodyOf(
  { engine }: Installation,
  kind: string,
  sent: { name: string; values: Values; app: Values; members: readonly string[]; isThere?: boolean },
) {
  const { name, values, app, members, isThere = false } = sent
  const model = engine.registry.kinds.get(kind)
  if (model === undefined) throw new Error(`there is no kind ${kind}`)
  const required = [...model.fields.values()]
    .filter((member) => member.required && !isThere)
    .map((member) => member.name)
  const unique: Values = { name, client_id: `client-${name}` }
  const listed = [...required, ...(kind === 'proxy' && !isThere ? ['internal_host'] : []), ...members]
  const provider = Object.fromEntries(['name', ...listed].map((member) => [member, memberOf(member, unique, values)]))
  return { app, provider_model: model.name, provider }
}

function memberOf(member: string, unique: Values, values: Values): unknown {
  const value = member === 'name' || values[member] === undefined ? unique[member] : values[member]
  if (value === undefined) throw new Error(`it is not said what ${member} is`)
  return member === 'client_id' ? unique.client_id : value
}

/** @returns how to ask for a row, whose value is a kind */
export const submitted =
  (there: Installation, known: Present): Prepare =>
  async ({ whose: written, member, value: kind }) => {
    const whose = written.replace(/ beside$/, '')
    const old = known.get(kind)
    if (old === undefined) throw new Error(`nothing of ${kind} is there`)
    if (whose === 'renamed') return renaming(there, kind, old.values, member)
    const [part, name = ''] = member.split('.')
    const [newApp, newProvider] = [/^new( application)?$/.test(whose), /^new( provider)?$/.test(whose)]
    const provider = newProvider ? fresh() : old.name
    const slug = newApp ? fresh() : old.name
    // A provider belongs to one application: it is made free for a new one.
    if (whose !== 'new') {
      await there.db.application.updateMany({
        where: { OR: [{ providerPk: old.pk }, { slug: old.name }] },
        data: { providerPk: null },
      })
      if (!newApp) await there.db.application.updateMany({ where: { slug: old.name }, data: { providerPk: old.pk } })
    }
    const beside = written === whose ? [] : [await freeBackchannelProvider(there)]
    const values: Values = {
      ...{ ...appValues, name: 'Named', slug, provider: newProvider ? null : old.pk },
      backchannel_providers: beside,
    }
    const app = { slug, ...(newApp && { name: slug }), ...(part === 'app' && { [name]: values[name] }) }
    const members = part === 'provider' ? [name, ...(companions[name] ?? [])] : []
    const body = bodyOf(there, kind, { name: provider, values: old.values, app, members, isThere: !newProvider })
    return { method: 'PUT', url: applyPath, body }
  }

/** An application and its provider that no other row of the table has, so that one of them may be renamed. */
async function renaming(there: Installation, kind: string, values: Values, member: string) {
  const [name, isApp] = [fresh(), member === 'app.was']
  const { pk: providerPk } = await there.db.provider.create({ data: { uuid: randomUUID(), kind, name } })
  await there.db.application.create({ data: { pk: randomUUID(), name, slug: name, providerPk } })
  const app = { slug: isApp ? fresh() : name }
  const body = bodyOf(there, kind, { name: isApp ? name : fresh(), values, app, members: [], isThere: true })
  Object.assign(isApp ? body.app : body.provider, { was: name })
  return { method: 'PUT', url: applyPath, body }
}

/** It belongs to no application. */
async function freeBackchannelProvider({ db }: Installation): Promise<number> {
  const { pk } = await db.provider.create({ data: { uuid: randomUUID(), kind: 'scim', name: fresh() } })
  return pk
}

/** 200 is not enough. */
export const toldApplied: Describe = (answer, row, ask) =>
  answer.status === 200 && !isApplied(answer) ? `200, but not applied: ${answer.text}` : outcomeOf(answer, row, ask)

const isApplied = ({ json }: Answer): boolean =>
  typeof json === 'object' && json !== null && 'applied' in json && json.applied === true
