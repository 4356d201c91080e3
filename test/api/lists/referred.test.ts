import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { uuid7 } from '../../../src/ids.ts'
import { loadRegistry } from '../../../src/models/registry.ts'
import { storedView } from '../../../src/views/stored.ts'
import { answered, type Entry, installation } from '../../support/kit.ts'
import { column, type Listed, read, testPages, testRefusals, testStatements } from './listing.ts'

/** What providers and groups refer to: flows, property mappings, key pairs and roles; and one token. */

const registry = await loadRegistry()
const by = () => on.admin
const flows: Listed = {
  path: '/api/v3/flows/instances/',
  by,
  view: storedView(registry, 'Flow', 'service_flows.flow', (tx, where) => tx.flow.findMany({ where })).schema,
}
const mappings: Listed = {
  path: '/api/v3/propertymappings/all/',
  by,
  view: storedView(registry, 'PropertyMapping', 'service_mappings.propertymapping', (tx, where) =>
    tx.propertyMapping.findMany({ where }),
  ).schema,
}
const keyPairs: Listed = {
  path: '/api/v3/crypto/certificatekeypairs/',
  by,
  view: storedView(registry, 'CertificateKeyPair', 'service_crypto.certificatekeypair', (tx, where) =>
    tx.certificateKeyPair.findMany({ where }),
  ).schema,
}
const roles: Listed = {
  path: '/api/v3/rbac/roles/',
  by,
  view: storedView(registry, 'Role', 'service_rbac.role', (tx, where) => tx.role.findMany({ where })).schema,
}

/** A document with one entry of each model, which is applied and then read. */
const flow = { name: 'Log in, twice', slug: 'twice', title: 'Welcome', designation: 'authentication' }
const mapping = {
  name: 'twice/it',
  kind: 'oauth2',
  expression: 'return {}\n',
  managed: 'test/twice',
  scope_name: 'twice',
}
const role = { name: 'Auditor 100%', permissions: ['view_user', 'view_application'] }
const entries = [
  { model: 'service_flows.flow', identifiers: { slug: flow.slug }, attrs: { ...flow } },
  {
    model: 'service_mappings.propertymapping',
    identifiers: { name: mapping.name, kind: mapping.kind },
    attrs: { ...mapping },
  },
  { model: 'service_crypto.certificatekeypair', identifiers: { name: 'pair/ü' }, attrs: {} },
  { model: 'service_rbac.role', identifiers: { name: role.name }, attrs: { permissions: role.permissions } },
]

const on = await installation()
const apply = async (all: readonly object[]) => Object((await on.admin.apply(all as Entry[])).json)
expect(await apply(entries)).toMatchObject({ applied: true })

const one = async ({ path }: Listed, name: string, query = '') => {
  const { json, headers } = await answered(200, on.admin.get(`${path}${encodeURIComponent(name)}/${query}`))
  expect(headers.etag).toMatch(/^"[\w-]{43}"$/)
  return Object(json)
}

test('each is read as it was sent, and as its list has it', async () => {
  expect(await one(flows, 'twice')).toEqual({ pk: expect.any(String), asks_for_consent: false, ...flow })
  expect(await one(mappings, mapping.name)).toEqual({ pk: expect.any(String), ...mapping })
  expect(await one(roles, role.name)).toEqual({ pk: expect.any(String), owners: [], ...role })
  expect((await read(flows, { slug: 'twice' })).results).toEqual([await one(flows, 'twice')])
  expect((await read(mappings, { managed: 'test/twice' })).results).toEqual([await one(mappings, mapping.name)])
  expect((await read(mappings, { scope_name: 'twice' })).results).toEqual([await one(mappings, mapping.name)])
  expect((await read(mappings, { scope_name: 'openid' })).results).toMatchObject([{ name: 'OpenID scope openid' }])
  expect((await read(roles, { name: role.name })).results).toEqual([await one(roles, role.name)])
})

test('a scope belongs to mappings of the kinds that have one', async () => {
  const attempt = { name: 'scoped', kind: 'saml', scope_name: 'roles' }
  const entry = { model: 'service_mappings.propertymapping', identifiers: { name: 'scoped', kind: 'saml' } }
  const { status, text } = await on.admin.put('/api/v3/blueprints/', {
    ...{ version: 1, entries: [{ ...entry, attrs: attempt }] },
  })
  expect([status, text]).toEqual([400, expect.stringContaining('Only mappings of the kind oauth2 have a scope')])
  expect(await apply([{ ...entry, attrs: { ...attempt, scope_name: '' } }])).toMatchObject({ applied: true })
})

test('of a key pair, the certificate is shown and the key is masked', async () => {
  const found = await one(keyPairs, 'pair/ü')
  const { sealedKey } = await on.db.certificateKeyPair.findUniqueOrThrow({ where: { name: 'pair/ü' } })
  expect(found).toEqual({
    ...{ pk: expect.any(String), name: 'pair/ü', key_data: { set: true } },
    certificate_data: expect.stringContaining('-----BEGIN CERTIFICATE-----'),
  })
  const { text } = await on.admin.get(keyPairs.path)
  expect(text).not.toContain('PRIVATE')
  expect(text).not.toContain(String(sealedKey))
  await on.db.certificateKeyPair.update({ where: { name: 'pair/ü' }, data: { sealedKey: null } })
  expect(await one(keyPairs, 'pair/ü')).toMatchObject({ key_data: null })
  await on.db.certificateKeyPair.update({ where: { name: 'pair/ü' }, data: { sealedKey } })
})

test('a document of what was read changes nothing', async () => {
  const found = await Promise.all([one(flows, 'twice'), one(mappings, mapping.name), one(roles, role.name)])
  const pair = await one(keyPairs, 'pair/ü')
  const models = [entries[0], entries[1], entries[3], entries[2]]
  const again = [...found, pair].map((attrs, index) => ({ ...models[index], attrs }))
  const { logs } = await apply(again)
  expect(logs.map((line: string) => line.split(' ').at(-1))).toEqual(again.map(() => 'unchanged'))
})

describe('a property mapping', () => {
  const name = `shared ${randomUUID()}`
  const add = (kind: string, data: object = {}) =>
    on.db.propertyMapping.create({ data: { pk: uuid7(), name, kind, ...data } })

  test('whose name several kinds have takes the kind', async () => {
    await add('saml')
    await add('scim')
    const { status, json } = await on.admin.get(`${mappings.path}${encodeURIComponent(name)}/`)
    expect({ status, json }).toEqual({
      status: 400,
      json: { kind: ['Several are called so: say which property mapping is meant.'], code: 'invalid' },
    })
    expect(await one(mappings, name, '?kind=saml')).toMatchObject({ name, kind: 'saml' })
    expect(await one(mappings, name, '?kind=scim')).toMatchObject({ name, kind: 'scim' })
    const other = await on.admin.get(`${mappings.path}${encodeURIComponent(name)}/?kind=ldap`)
    expect(other).toMatchObject({ status: 404, json: { detail: 'There is no such property mapping.' } })
  })
})

test.each<[string, () => Listed, Parameters<typeof read>[1], string[]]>([
  ['flows by designation', () => flows, { designation: ['recovery', 'enrollment'] }, ['Enroll', 'Recover']],
  ['flows by name', () => flows, { name: 'Enroll' }, ['Enroll']],
  ['flows by text', () => flows, { search: 'TWICE welcome' }, ['Log in, twice']],
  ['mappings by kind', () => mappings, { kind: 'scim', search: 'user' }, ['SCIM user']],
  ['mappings by text', () => mappings, { search: 'test/tw' }, ['twice/it']],
  ['key pairs by name', () => keyPairs, { name: 'pair/ü' }, ['pair/ü']],
  ['key pairs by text', () => keyPairs, { search: 'PAIR' }, ['pair/ü']],
  ['roles by name', () => roles, { name: role.name }, [role.name]],
  ['roles by text', () => roles, { search: 'auditor 100%' }, [role.name]],
])('are narrowed and searched: %s', async (_, list, parameters, expected) => {
  expect((await column(list(), 'name', parameters)).toSorted()).toEqual(expected)
})

describe('one that is not there is a 404', () => {
  test.each([flows, mappings, keyPairs, roles].map((list) => [list.path, list] as const))('%s', async (path) => {
    for (const name of ['nothing', '%00', 'x'.repeat(256)])
      expect(await on.admin.get(`${path}${name}/`)).toMatchObject({ status: 404, json: { code: 'not_found' } })
  })
})

test.each<[string, string]>([
  [flows.path, 'flow'],
  [mappings.path, 'propertymapping'],
  [keyPairs.path, 'certificatekeypair'],
  [roles.path, 'role'],
])('callers who may write, but not view: %s is a 403', async (path, resource) => {
  const permissions = ['add', 'change', 'delete'].map((action) => `${action}_${resource}`)
  const caller = await on.make.user({ permissions })
  expect((await caller.get(path)).status).toBe(403)
  expect((await caller.get(`${path}nothing/`)).status).toBe(403)
})

test('a token is read by its identifier, without its key, with an ETag that follows its changes', async () => {
  const identifier = `read-${randomUUID()}`
  const owner = await on.make.user()
  const secret = await on.make.token(owner.pk, { identifier })
  const url = `/api/v3/core/tokens/${identifier}/`
  const first = await answered(200, owner.get(url), { identifier, user: owner.pk, user_obj: { pk: owner.pk } })
  expect(first.text).not.toContain(secret)
  const conditional = () => owner.get(url, { headers: { 'if-none-match': first.headers.etag ?? '' } })
  expect((await conditional()).status).toBe(304)
  const changed = await answered(200, owner.patch(url, { description: 'later' }))
  const second = await conditional()
  expect(second).toMatchObject({ status: 200, json: changed.json })
  const stranger = await on.make.user({ permissions: ['change_token'] })
  expect(await stranger.get(url)).toMatchObject({ status: 404, json: { detail: 'There is no such token.' } })
})

testRefusals(flows, { 'an unknown designation': ['?designation=x', { designation: { 0: [expect.any(String)] } }] })
testPages(flows, ['slug', 'name', 'pk'], [{ search: 'log' }])
testPages(mappings, ['name', 'kind', 'pk'], [{ kind: 'oauth2' }])
testPages(keyPairs, ['name', 'pk'], [])
testPages(roles, ['name', 'pk'], [])
for (const list of [flows, mappings, keyPairs, roles]) testStatements(list, 4, [])
