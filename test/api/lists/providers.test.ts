import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Model } from '../../../src/models/define.ts'
import { loadRegistry } from '../../../src/models/registry.ts'
import { providerViews } from '../../../src/views/provider.ts'
import { answered, applyPath, type Body, example, installation, kinds, named } from '../../support/kit.ts'
import { column, type Listed, read, testPages, testRefusals, testStatements } from './listing.ts'

/** GET /api/v3/providers/all/, GET /api/v3/providers/{kind}/, and one of them by name. */

const masked = { set: true }
const registry = await loadRegistry()
const views = providerViews(registry.kinds)
const all: Listed = { path: '/api/v3/providers/all/', by: () => on.admin, view: views.all.schema }
const ofKind = (kind: string): Listed => ({ ...all, path: `/api/v3/providers/${kind}/` })

const applied = z.object({ applied: z.literal(true), logs: z.array(z.string()) })
const put = async (body: unknown) => {
  const answer = await answered(200, on.admin.put(applyPath, body))
  return applied.parse(answer.json).logs
}

const on = await installation()
for (const kind of kinds) await put(await example(kind))

const modelOf = ({ provider_model }: Body): Model => registry.byName(provider_model) ?? expect.fail(provider_model)
const application = registry.byName('service_core.application') ?? expect.fail()
const isSecret = (model: Model, name: string) => model.fields.get(name)?.secret === true

/** What was read, without its read-only fields. */
const sendable = (model: Model, found: object) =>
  Object.fromEntries(Object.entries(found).filter(([name]) => model.fields.has(name)))

const bodyOf = async (path: string) => {
  const { json } = await answered(200, on.admin.get(`/api/v3${path}`))
  return Object(json)
}

describe.each(kinds)('%s', (kind) => {
  test('is read as it was sent, member by member, with its secrets masked', async () => {
    const sent = await example(kind)
    const model = modelOf(sent)
    const found = await bodyOf(`/providers/${kind}/${sent.provider.name}/`)
    const expected = Object.entries(sent.provider).map(([name, value]) => [
      name,
      isSecret(model, name) ? masked : value,
    ])
    expect(found).toMatchObject(Object.fromEntries(expected))
    expect(Object.keys(found)).toEqual(expect.arrayContaining([...model.fields.keys()]))
    expect(found).toMatchObject({ meta_model_name: sent.provider_model, assigned_application_slug: sent.app.slug })
    expect(await bodyOf(`/providers/all/${sent.provider.name}/`)).toEqual(found)
    expect(await bodyOf(`/core/applications/${sent.app.slug}/`)).toMatchObject({ ...sent.app, provider: found.pk })
  })

  test('a PUT of what was read changes nothing, with its read-only fields and without', async () => {
    const { app, provider_model, provider } = await example(kind)
    const model = modelOf({ app, provider_model, provider })
    const foundApp = await bodyOf(`/core/applications/${app.slug}/`)
    const found = await bodyOf(`/providers/${kind}/${provider.name}/`)
    const unchanged = [expect.stringMatching(/ unchanged$/), expect.stringMatching(/ unchanged$/)]
    expect(
      await put({ app: sendable(application, foundApp), provider_model, provider: sendable(model, found) }),
    ).toEqual(unchanged)
    expect(await put({ app: foundApp, provider_model, provider: found })).toEqual(unchanged)
  })

  test('a PUT of its secrets as the mask of 0.2.0 warns of each, and keeps them', async () => {
    const { app, provider_model, provider } = await example(kind)
    const model = modelOf({ app, provider_model, provider })
    const secrets = [...model.fields.values()].filter(({ secret }) => secret).map(({ name }) => name)
    const stored = () => on.db.provider.findUniqueOrThrow({ where: { name: String(provider.name) } })
    const before = await stored()
    const masks = Object.fromEntries(secrets.map((name) => [name, '********']))
    const unchanged = (what: string, name: unknown) => `${what} "${name}" unchanged`
    expect(await put({ app, provider_model, provider: { ...provider, ...masks } })).toEqual([
      unchanged(model.displayName, provider.name),
      ...secrets.map(
        (name) =>
          `warning: the sent ${name} of ${model.displayName} "${provider.name}" is the mask of older versions, and the secret stays: send {"set": true}`,
      ),
      unchanged('application', app.slug),
    ])
    expect(await stored()).toEqual(before)
  })

  test('is listed alone under its kind, as it is read', async () => {
    const { provider } = await example(kind)
    const { results, pagination } = await read(ofKind(kind))
    expect(pagination.count).toBe(1)
    expect(results).toEqual([await bodyOf(`/providers/${kind}/${provider.name}/`)])
    expect((await read(all, { kind })).results).toEqual(results)
  })
})

test('no answer holds a secret, sealed or not', async () => {
  const bodies = await Promise.all(kinds.map((kind) => example(kind)))
  const secrets = bodies.flatMap((body) =>
    Object.entries(body.provider).flatMap(([name, value]) =>
      isSecret(modelOf(body), name) ? (JSON.stringify(value).match(/example-only[\w-]*/g) ?? []) : [],
    ),
  )
  expect(secrets.length).toBeGreaterThan(4)
  const { text } = await on.admin.get(all.path)
  for (const secret of secrets) expect(text).not.toContain(secret)
  expect(text).not.toMatch(/v2\.[\w-]{8}\./)
})

test('a secret that there is none of is null', async () => {
  await on.db.provider.update({ where: { name: 'office-vpn' }, data: { secrets: { shared_secret: null } } })
  expect(await bodyOf('/providers/radius/office-vpn/')).toMatchObject({ shared_secret: null })
})

describe('names in a path', () => {
  const names = [
    'a/b',
    '100%',
    '%2F',
    'Ünïcödé 漢字',
    '🛰',
    'a?b#c&d',
    'a b+c',
    "'; --",
    '漢'.repeat(255),
    '%'.repeat(255),
    '/'.repeat(255),
    '...',
    'all',
  ]
  test.each(names)('%s', async (name) => {
    await put(await named('rac', `n-${randomUUID()}`, { provider: { name } }))
    expect(await bodyOf(`/providers/rac/${encodeURIComponent(name)}/`)).toMatchObject({ name })
    expect(await bodyOf(`/providers/all/${encodeURIComponent(name)}`)).toMatchObject({ name })
  })

  test('that is spelled in decomposed letters is found too', async () => {
    await put(await named('rac', `n-${randomUUID()}`, { provider: { name: 'é' } }))
    expect(await bodyOf(`/providers/rac/${encodeURIComponent('e\u0301')}/`)).toMatchObject({ name: '\u00e9' })
  })

  test.each(['nothing', 'x'.repeat(256), '%00', encodeURIComponent('漢'.repeat(256))])('%s is a 404', async (name) => {
    for (const path of ['all', 'rac'])
      await answered(404, on.admin.get(`/api/v3/providers/${path}/${name}/`), { code: 'not_found' })
  })

  test('of another kind is a 404', async () => {
    expect(await on.admin.get('/api/v3/providers/ldap/grafana/')).toMatchObject({ status: 404 })
  })

  test('an unknown kind is a 404', async () => {
    expect(await on.admin.get('/api/v3/providers/nothing/')).toMatchObject({ status: 404 })
  })
})

describe('a caller sees the kinds of the permissions that the caller holds', () => {
  const reader = (...permissions: string[]) => on.make.user({ permissions })

  test('one', async () => {
    const caller = await reader('view_ldapprovider')
    const { results, pagination } = await read({ ...all, by: () => caller })
    expect(results.map(({ name }) => name)).toEqual(['jenkins-directory'])
    expect(pagination.count).toBe(1)
    expect((await caller.get('/api/v3/providers/all/jenkins-directory/')).status).toBe(200)
    expect((await caller.get('/api/v3/providers/all/grafana/')).status).toBe(404)
    expect((await caller.get('/api/v3/providers/ldap/')).status).toBe(200)
    expect((await caller.get('/api/v3/providers/oauth2/')).status).toBe(403)
    expect(await column({ ...all, by: () => caller }, 'name', { kind: ['oauth2', 'ldap'] })).toEqual([
      'jenkins-directory',
    ])
    expect(await column({ ...all, by: () => caller }, 'name', { search: 'grafana' })).toEqual([])
  })

  test('none of those to add, change or delete', async () => {
    const writes = ['add', 'change', 'delete'].flatMap((action) => [
      `${action}_oauth2provider`,
      `${action}_application`,
    ])
    const caller = await reader(...writes)
    for (const path of [
      'providers/all/',
      'providers/oauth2/',
      'providers/oauth2/grafana/',
      'core/applications/',
      'core/applications/grafana/',
    ])
      expect([path, (await caller.get(`/api/v3/${path}`)).status]).toEqual([path, 403])
  })
})

describe('a provider of a kind that is gone', () => {
  const gone = async () => {
    const name = `gone-${randomUUID()}`
    const settings = { password: 'in the clear' }
    await on.db.provider.create({ data: { uuid: randomUUID(), kind: 'gone', name, settings } })
    return name
  }

  test('shows what all kinds share, and none of its settings', async () => {
    const name = await gone()
    const { text, json } = await on.admin.get(`/api/v3/providers/all/${name}/`)
    expect(json).toMatchObject({ name, component: '', meta_model_name: '', owner: null, created_by: null })
    expect(text).not.toContain('in the clear')
    await on.db.provider.delete({ where: { name } })
  })

  test('is not shown to a caller without all permissions', async () => {
    const name = await gone()
    const caller = await on.make.user({ permissions: ['view_ldapprovider'] })
    expect((await caller.get(`/api/v3/providers/all/${name}/`)).status).toBe(404)
    await on.db.provider.delete({ where: { name } })
  })
})

test('a row of before a field was declared shows null for it', async () => {
  const { settings } = await on.db.provider.findUniqueOrThrow({ where: { name: 'build-desktop' } })
  const { connection_expiry: _expiry, ...others } = Object(settings)
  await on.db.provider.update({ where: { name: 'build-desktop' }, data: { settings: others } })
  expect(await bodyOf('/providers/rac/build-desktop/')).toMatchObject({ connection_expiry: null })
  await on.db.provider.update({ where: { name: 'build-desktop' }, data: { settings: Object(settings) } })
})

testRefusals(all, {
  'an unknown kind': ['?kind=oauth3', { kind: { 0: [expect.stringMatching(/^Must be one of: .*oauth2/)] } }],
})
testPages(all, ['name', 'kind', 'pk'], [{ search: 'a' }, { kind: ['oauth2', 'rac'] }])
testPages(ofKind('rac'), ['name', 'pk'], [{ search: 'a' }])
testStatements(all, 5, [{ kind: 'oauth2' }])
testStatements(ofKind('rac'), 5, [])
