import { describe, expect, test } from 'vitest'
import { userConsent } from '../../../src/views/user-consent.ts'
import { answered, installation, type Kind, type Made, rows, sql } from '../../support/kit.ts'
import { column, type Listed, read, testPages, testRefusals, testStatements } from './listing.ts'

/** GET /api/v3/core/user_consent/ */

const consents: Listed = { path: '/api/v3/core/user_consent/', by: () => on.admin, view: userConsent }
const apps: Record<string, string> = {}

async function application(kind: Kind, slug: string, app = {}, provider = {}): Promise<void> {
  await answered(200, on.admin.submit(kind, slug, { app, provider }))
  apps[slug] = (await on.db.application.findUniqueOrThrow({ where: { slug } })).pk
}

const providerOf = (name: string) => on.db.provider.findUniqueOrThrow({ where: { name } })

const on = await installation()
const ada = await on.make.user()
const alan = await on.make.user({ groups: [ada.group] })
await rows(on.db, sql`UPDATE users SET username = 'ada', email = 'ada+x@example.com' WHERE pk = ${ada.pk}`)
await rows(on.db, sql`UPDATE users SET username = 'alan_1' WHERE pk = ${alan.pk}`)
await application('scim', 'sync')
const { pk: sync } = await providerOf('sync')
await application('oauth2', 'wiki', {
  ...{ name: 'Wiki', backchannel_providers: [sync], meta_launch_url: '', meta_description: 'All we know' },
  ...{ meta_publisher: 'us', open_in_new_tab: true, policy_engine_mode: 'all', group: 'Tools' },
})
await application('proxy', 'mail', { meta_launch_url: 'https://mail.example.com/%(username)s?to=%(email)s' })
await application('radius', 'vpn', { meta_launch_url: '' })
const [bare] = await rows<{ pk: string }>(
  on.db,
  sql`INSERT INTO applications (pk, name, slug) VALUES (gen_random_uuid(), 'Bare', 'bare') RETURNING pk`,
)
apps.bare = String(bare?.pk)
const consent = (userPk: number, slug: string, expires: string | null, permissions = '') =>
  on.db.userConsent.create({
    data: { userPk, applicationPk: String(apps[slug]), expires, expiring: expires !== null, permissions },
  })
await consent(ada.pk, 'wiki', '2030-01-01T00:00:00.000Z', 'openid email')
await consent(ada.pk, 'mail', null)
await consent(alan.pk, 'wiki', '2029-01-01T00:00:00.000Z')
await consent(alan.pk, 'mail', '2031-01-01T00:00:00.000Z')
await consent(alan.pk, 'vpn', '2031-01-01T00:00:00.000Z')
await consent(alan.pk, 'sync', '2031-01-01T00:00:00.000Z')
await consent(alan.pk, 'bare', null)

const applicationOf = async (slug: string, parameters = {}) =>
  (await read(consents, { application: String(apps[slug]), ...parameters })).results[0]?.application

test('a consent is shown with its user and application in full', async () => {
  const [consent] = (await read(consents, { application: String(apps.wiki), user: ada.pk })).results
  const [user] = (
    await read({ ...consents, view: userConsent.shape.user, path: '/api/v3/core/users/' }, { username: 'ada' })
  ).results
  const [wiki, sync] = [await providerOf('wiki'), await providerOf('sync')]
  const mappings = (provider: typeof wiki) => Object(provider.settings).property_mappings
  expect(mappings(wiki)).not.toEqual([])
  expect(user).toMatchObject({ username: 'ada', groups: [ada.group], groups_obj: [{ pk: ada.group }] })
  expect(consent).toEqual({
    ...{ pk: 1, expires: '2030-01-01T00:00:00.000Z', expiring: true, permissions: 'openid email', user },
    application: {
      ...{ pk: apps.wiki, name: 'Wiki', slug: 'wiki', provider: wiki.pk },
      provider_obj: {
        ...{ pk: wiki.pk, name: 'wiki', property_mappings: mappings(wiki) },
        ...{ authentication_flow: wiki.authenticationFlowPk, authorization_flow: wiki.authorizationFlowPk },
        ...{ component: 'service-provider-oauth2-form', meta_model_name: 'service_providers_oauth2.oauth2provider' },
        ...{ verbose_name: 'OAuth2/OpenID Provider', verbose_name_plural: 'OAuth2/OpenID Providers' },
        ...{ assigned_application_slug: 'wiki', assigned_application_name: 'Wiki' },
        ...{ assigned_backchannel_application_slug: '', assigned_backchannel_application_name: '' },
      },
      backchannel_providers: [sync.pk],
      backchannel_providers_obj: [
        {
          ...{ pk: sync.pk, name: 'sync', property_mappings: mappings(sync) },
          ...{ authentication_flow: null, authorization_flow: null },
          ...{ component: 'service-provider-scim-form', meta_model_name: 'service_providers_scim.scimprovider' },
          ...{ verbose_name: 'SCIM Provider', verbose_name_plural: 'SCIM Providers' },
          ...{ assigned_application_slug: 'sync', assigned_backchannel_application_slug: 'wiki' },
          assigned_application_name: expect.any(String),
          assigned_backchannel_application_name: 'Wiki',
        },
      ],
      launch_url: expect.stringMatching(/^https?:\/\/[^/]+$/),
      ...{ open_in_new_tab: true, meta_launch_url: '', meta_icon: null, meta_description: 'All we know' },
      ...{ meta_publisher: 'us', policy_engine_mode: 'all', group: 'Tools' },
    },
  })
})

describe('an application', () => {
  test('without a provider has null for it', async () => {
    expect(await applicationOf('bare')).toEqual({
      ...{ pk: apps.bare, name: 'Bare', slug: 'bare', provider: null, provider_obj: null, launch_url: null },
      ...{ backchannel_providers: [], backchannel_providers_obj: [], open_in_new_tab: false, meta_launch_url: '' },
      ...{ meta_icon: null, meta_description: '', meta_publisher: '', policy_engine_mode: 'any', group: '' },
    })
  })

  test('of a kind without an address has no launch URL', async () => {
    expect(await applicationOf('vpn')).toMatchObject({ launch_url: null, meta_launch_url: '' })
  })

  test('has its own launch URL, with the user’s names filled in', async () => {
    const template = 'https://mail.example.com/%(username)s?to=%(email)s'
    expect(await applicationOf('mail', { user: ada.pk })).toMatchObject({
      ...{ meta_launch_url: template, launch_url: 'https://mail.example.com/ada?to=ada%2Bx%40example.com' },
    })
    expect(await applicationOf('mail', { user: alan.pk })).toMatchObject({
      launch_url: 'https://mail.example.com/alan_1?to=',
    })
  })
})

describe('whose consents are there', () => {
  const by = (asker: () => Made): Listed => ({ ...consents, by: asker })

  test('the caller’s own, without a permission', async () => {
    expect(
      (
        await column(
          by(() => ada),
          'pk',
        )
      ).toSorted(),
    ).toEqual([1, 2])
    expect(
      await column(
        by(() => alan),
        'pk',
        { user: ada.pk },
      ),
    ).toEqual([])
    expect((await read(by(() => alan))).pagination.count).toBe(5)
    expect(
      await column(
        by(() => ada),
        'pk',
        { search: 'alan' },
      ),
    ).toEqual([])
  })

  test('all, with view_userconsent', async () => {
    const auditor = await on.make.user({ permissions: ['view_userconsent'] })
    expect((await read(by(() => auditor))).pagination.count).toBe(7)
    expect(
      await column(
        by(() => auditor),
        'pk',
        { user: auditor.pk },
      ),
    ).toEqual([])
  })
})

describe('are narrowed by', () => {
  const users = async (parameters: Parameters<typeof read>[1]) =>
    (await read(consents, { ordering: 'pk', ...parameters })).results.map(({ user }) => Object(user).username)

  test('application and user', async () => {
    expect(await users({ application: String(apps.wiki).toUpperCase() })).toEqual(['ada', 'alan_1'])
    expect(await users({ application: String(apps.wiki), user: alan.pk })).toEqual(['alan_1'])
    expect(await users({ user: ada.pk })).toEqual(['ada', 'ada'])
    expect(await users({ user: 2_147_483_647 })).toEqual([])
    expect(await users({ application: '6f7e0000-0000-4000-8000-00000000ffff' })).toEqual([])
  })

  test('search, of the user’s name', async () => {
    expect(await users({ search: 'ADA' })).toEqual(['ada', 'ada'])
    expect(await users({ search: '_' })).toHaveLength(5)
    expect(await users({ search: '%' })).toEqual([])
    expect(await users({ search: 'an al', application: String(apps.mail) })).toEqual(['alan_1'])
    expect(await users({ search: 'wiki' })).toEqual([])
  })
})

test('are ordered by application, then expiry, unless asked otherwise', async () => {
  const order = async (ordering?: string) =>
    (await read(consents, ordering === undefined ? {} : { ordering })).results.map(({ application, expires }) => [
      Object(application).pk,
      expires,
    ])
  const found = await order()
  const sorted = found.toSorted(([a, x], [b, y]) => (a < b ? -1 : a > b ? 1 : (x ?? '~') < (y ?? '~') ? -1 : 1))
  expect(found).toEqual(sorted)
  expect(await order('application,expires')).toEqual(found)
  expect((await order('expires'))[0]).toEqual([apps.wiki, '2029-01-01T00:00:00.000Z'])
  expect((await order('-expires')).slice(0, 2).map(([, expires]) => expires)).toEqual([null, null])
  expect(await column(consents, 'pk', { ordering: '-user,pk' })).toEqual([3, 4, 5, 6, 7, 1, 2])
})

testRefusals(consents, {
  'an application that is no uuid': ['?application=wiki', { application: ['Must be a UUID.'] }],
  'two applications': [
    '?application=6f7e0000-0000-4000-8000-00000000ffff&application=6f7e0000-0000-4000-8000-00000000fffe',
    { application: ['Send this parameter once.'] },
  ],
  'a user that is no key': ['?user=ada', { user: ['Must be a whole number.'] }],
  'user 0': ['?user=0', { user: ['Must be from 1 to 2147483647.'] }],
  'a user beyond all': ['?user=2147483648', { user: ['Must be from 1 to 2147483647.'] }],
})

testPages(consents, ['application', 'expires', 'user', 'pk'], [{ search: 'al' }])
testStatements(consents, 8, [{ search: 'alan', page_size: 100 }])
