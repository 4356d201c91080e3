import { randomUUID } from 'node:crypto'
import { test } from 'vitest'
import { example, type Installation, installation, kinds } from '../../support/kit.ts'
import { toldApplied } from './apply-cases.ts'
import { type Row, rowsOf } from './matrix.ts'
import { stage } from './trial.ts'

const there = await installation()
const on = stage(there, toldApplied)

type Values = Readonly<Record<string, unknown>>

/** An entry of each model that is no provider: what finds it, and what is written. */
const plain: Readonly<Record<string, (user: number) => readonly [identifiers: Values, attrs?: Values]>> = {
  'service_rbac.role': () => [{ name: randomUUID() }, { permissions: [] }],
  'service_rbac.trustedissuer': () => [
    { name: randomUUID() },
    { issuer: `https://ci.example.com/${randomUUID()}`, audience: 'gatewright' },
  ],
  'service_flows.flow': () => [{ slug: slug() }, { name: 'Flow', designation: 'recovery' }],
  'service_mappings.propertymapping': () => [{ name: randomUUID(), kind: 'saml' }, { expression: 'return {}' }],
  'service_crypto.certificatekeypair': () => [{ name: randomUUID() }],
  'service_core.group': () => [{ name: randomUUID() }],
  'service_core.user': () => [{ username: randomUUID() }, { name: 'New' }],
  'service_core.token': (user) => [{ identifier: randomUUID() }, { user }],
  'service_stages_totp.totpdevice': (user) => [{ user, name: randomUUID() }],
  'service_core.application': () => [{ slug: slug() }, { name: 'Application' }],
  'service_core.userconsent': (user) => [{ user, application }, { permissions: randomUUID() }],
}

const slug = () => randomUUID()
const application = '01a1fd66-0000-7000-8000-000000000001'

async function entryOf(model: string, user: number) {
  const made = plain[model]?.(user)
  const kind = kinds.find((each) => model === `service_providers_${each}.${each}provider`)
  if (made !== undefined) return { model, identifiers: made[0], attrs: made[1] ?? {} }
  if (kind === undefined) throw new Error(`it is not said what an entry of ${model} is`)
  const { name: _, ...attrs } = (await example(kind)).provider
  const unique = 'client_id' in attrs ? { client_id: randomUUID() } : {}
  return { model, identifiers: { name: randomUUID() }, attrs: { ...attrs, ...unique } }
}

await there.db.application.create({ data: { pk: application, name: 'Consented', slug: 'consented' } })

/** What is written of a user who is there. */
const changes: Readonly<Record<string, unknown>> = {
  ...{ name: 'Changed', email: 'changed@example.com', is_active: false, attributes: { a: 1 } },
  ...{ path: 'users/changed', type: 'external' },
}

const rightsOf: Readonly<Record<string, Parameters<Installation['make']['user']>[0]>> = {
  'another user': {},
  'a stronger user': { permissions: ['view_userconsent'] },
  'a superuser': { superuser: true },
}

async function entryFor({ whose, member, value }: Row) {
  const rights = rightsOf[whose]
  if (rights === undefined) return entryOf(value, (await there.make.user()).pk)
  const { pk } = await there.make.user(rights)
  return {
    model: value,
    identifiers: { pk },
    attrs: { [member]: member === 'username' ? randomUUID() : changes[member] },
  }
}

test.each(await rowsOf('PUT /api/v3/blueprints/'))('who may apply blueprints: %s', (_, row) =>
  on.try(row, async (row) => {
    const entries = [await entryFor(row)]
    const body = { version: 1, metadata: { name: 'matrix' }, entries }
    return { method: 'PUT', url: '/api/v3/blueprints/', body }
  }),
)
