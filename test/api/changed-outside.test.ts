import { describe, expect, test } from 'vitest'
import { compareAll } from '../../src/runs/outside.ts'
import { deleteOverlaps } from '../../src/runs/retention.ts'
import {
  aKeyPair,
  answered,
  applied,
  applyPath,
  type Entry,
  installation,
  kinds,
  named,
  name as slug,
} from '../support/kit.ts'

/** Applications, with their providers, that were changed past the service, as their histories say. */

const there = await installation()

const put = (body: object, headers: Record<string, string> = {}) =>
  applied(there.admin.put(applyPath, body, { headers }))
const apply = (entries: readonly Entry[]) => applied(there.admin.apply(entries))
async function isOutside(of = slug): Promise<boolean | null> {
  const { json } = await answered(200, there.admin.get(`/api/v3/core/applications/${of}/history/?page_size=1`))
  return (json as { changed_outside: boolean | null }).changed_outside
}

describe('nothing that the service does counts:', () => {
  test('another name of what it refers to, which a new row takes over', async () => {
    const [key, later] = ['service_crypto.certificatekeypair', `${slug}-later`]
    await apply([aKeyPair(slug)])
    await put(await named('oauth2', slug, { provider: { signing_key: slug } }))
    await apply([{ model: key, identifiers: { name: later }, was: slug }])
    await apply([aKeyPair(slug)])
    await put({
      app: { slug: later, was: slug },
      provider_model: 'service_providers_oauth2.oauth2provider',
      provider: { name: later, was: slug },
    })
    await put(await named('ldap', slug))
    expect([await isOutside(later), await isOutside(slug)]).toEqual([false, false])
  })

  test.each(kinds)('applies of %s, whole, again, in part, and taken over', async (kind) => {
    const body = await named(kind, slug)
    await put(body, { 'gatewright-owner': 'team-a' })
    expect(await isOutside()).toBe(false)
    await put(body, { 'gatewright-owner': 'team-a' })
    const part = { app: { slug, group: 'New' }, provider_model: body.provider_model, provider: { name: slug } }
    await put(part, { 'gatewright-owner': 'team-a' })
    await put(part, { 'gatewright-owner': 'team-b', 'gatewright-allow': 'takeover' })
    expect(await isOutside()).toBe(false)
  })

  test('renames, sets, and deletions of a provider that an application has, by documents and requests', async () => {
    const later = `${slug}-later`
    const provider = { model: 'service_providers_ldap.ldapprovider', identifiers: { name: slug } }
    await put(await named('ldap', slug))
    await put({ app: { slug: later, was: slug }, provider_model: provider.model, provider: { name: slug } })
    expect([await isOutside(later), await isOutside(slug)]).toEqual([false, false])
    await apply([{ ...provider, state: 'absent' }])
    expect(await isOutside(later)).toBe(false)
    const { json } = await there.admin.get(`/api/v3/core/applications/${later}/history/`)
    const { results } = json as { results: { action: string; fields: object }[] }
    expect(results.map(({ action, fields }) => [action, fields])).toContainEqual([
      'update',
      { provider: { from: slug, to: null } },
    ])
    await answered(204, there.admin.delete(`/api/v3/core/applications/${later}/`))
    expect(await isOutside(later)).toBe(false)
  })

  test('the end of an overlap, and another name of a flow', async () => {
    const body = await named('oauth2', slug)
    await put(body)
    const secret = { value: 'another-secret-of-many-letters-0123456789', overlap: 'hours=1' }
    await put({ app: { slug }, provider_model: body.provider_model, provider: { name: slug, client_secret: secret } })
    const { settings } = await there.db.provider.findUniqueOrThrow({ where: { name: slug } })
    const expired = { ...Object(settings), previous_client_secret_expires: '2020-01-01T00:00:00Z' }
    await there.db.provider.update({ where: { name: slug }, data: { settings: expired } })
    expect(await deleteOverlaps(there.db, there.engine.registry)).toBe(1)
    expect(await isOutside()).toBe(false)
    const { authorizationFlowPk } = await there.db.provider.findUniqueOrThrow({ where: { name: slug } })
    const flow = await there.db.flow.findUniqueOrThrow({ where: { pk: authorizationFlowPk ?? '' } })
    const rename = (to: string) => there.db.flow.update({ where: { pk: flow.pk }, data: { slug: to } })
    await rename(`${slug}-flow`)
    expect(await isOutside()).toBe(false)
    await rename(flow.slug)
  })
})

const change = (text: string) => there.db.$executeRawUnsafe(text)

describe('what is changed by SQL counts:', () => {
  test.each([
    `UPDATE applications SET meta_launch_url = 'https://evil.example.com' WHERE slug = '$'`,
    `UPDATE applications SET provider_pk = NULL WHERE slug = '$'`,
    `UPDATE providers SET settings = settings || '{"sub_mode": "user_email"}' WHERE name = '$'`,
    `UPDATE providers SET settings = jsonb_set(settings, '{redirect_uris}', '[]') WHERE name = '$'`,
    `UPDATE providers SET authorization_flow = NULL WHERE name = '$'`,
    `UPDATE providers SET settings = settings || '{"signing_key": "no key", "sub_mode": "user_email"}' WHERE name = '$'`,
  ])('%s', async (text) => {
    await put(await named('oauth2', slug))
    expect(await change(text.replaceAll('$', slug))).toBe(1)
    expect(await isOutside()).toBe(true)
  })

  const byKey = {}
  const byName = { authorization_flow: 'default-authorization-implicit', signing_key: 'recorded' }
  test.each([
    ['provider.authorization_flow', byKey],
    ['provider.authorization_flow', byName],
    ['provider.signing_key', byKey],
    ['provider.signing_key', byName],
    ['provider', byKey],
  ])('another row for %s, which a document names as %j', async (field, provider) => {
    await apply([aKeyPair('recorded'), aKeyPair('beside')])
    await put(await named('ldap', 'beside'))
    await change(`UPDATE applications SET provider_pk = NULL WHERE slug = 'beside'`)
    await put(await named('oauth2', slug, { provider }))
    await change(
      {
        provider: `UPDATE applications SET provider_pk = (SELECT pk FROM providers WHERE name = 'beside') WHERE slug = '${slug}'`,
        'provider.authorization_flow': `UPDATE providers SET authorization_flow = (SELECT pk FROM flows WHERE pk <> authorization_flow LIMIT 1) WHERE name = '${slug}'`,
        'provider.signing_key': `UPDATE providers SET settings = settings || jsonb_build_object('signing_key',
          (SELECT pk FROM certificate_key_pairs WHERE name = 'beside')) WHERE name = '${slug}'`,
      }[field] ?? '',
    )
    const { json } = await there.admin.get(`/api/v3/core/applications/${slug}/history/`)
    expect(json).toMatchObject({ changed_outside: true, state: { changed_outside: [field] } })
    await compareAll(there.db, there.engine.registry, (error) => expect.unreachable(String(error)))
    expect(await there.db.applicationState.findUnique({ where: { slug } })).toMatchObject({ outside: [field] })
  })

  test('a field, until a document changes it back', async () => {
    const body = await named('oauth2', slug, { app: { meta_description: 'as it should be' } })
    await put(body)
    await change(`UPDATE applications SET meta_description = 'by SQL' WHERE slug = '${slug}'`)
    expect(await isOutside()).toBe(true)
    await put(body)
    expect(await isOutside()).toBe(false)
  })

  test('a deletion, until it is put back', async () => {
    const body = await named('ldap', slug)
    await put(body)
    await change(`DELETE FROM applications WHERE slug = '${slug}'`)
    expect(await isOutside()).toBe(true)
    await put(body)
    expect(await isOutside()).toBe(false)
  })
})

test('an application does not count for a later one under its former slug', async () => {
  const former = `${slug}-former`
  const entry = (of: string) => ({ model: 'service_core.application', identifiers: { slug: of }, attrs: { name: of } })
  await apply([entry(former)])
  await apply([{ ...entry(`${former}-now`), was: former }])
  await change(`UPDATE applications SET meta_description = 'by SQL' WHERE slug = '${former}-now'`)
  await apply([entry(former)])
  expect([await isOutside(former), await isOutside(`${former}-now`)]).toEqual([false, true])
})

test('what no kept run tells is not known; a later run tells what it changed', async () => {
  const body = await named('ldap', slug)
  await put(body)
  await there.db.run.deleteMany({ where: { slug } })
  expect(await isOutside()).toBe(null)
  await put({ ...body, app: { ...body.app, group: 'New' } })
  expect(await isOutside()).toBe(false)
  await change(`UPDATE applications SET group_name = 'x' WHERE slug = '${slug}'`)
  expect(await isOutside()).toBe(true)
})

test('the history of an application of another owner does not say so', async () => {
  await put(await named('proxy', slug), { 'gatewright-owner': 'team-a' })
  await change(`UPDATE applications SET group_name = 'x' WHERE slug = '${slug}'`)
  const role = await there.make.role(['view_application'], ['team-b'])
  const group = await there.make.group({ roles: [role.pk] })
  const bound = await there.make.user({ groups: [group.pk] })
  expect((await bound.get(`/api/v3/core/applications/${slug}/history/`)).status).toBe(404)
})
