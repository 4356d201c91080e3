import { describe, expect, test } from 'vitest'
import { notKept } from '../../src/numbers.ts'
import { answered, applyPath, type Body, installation, named } from '../support/kit.ts'

/** Bad input: the answer names every wrong field, and nothing is written, not even a run. */

const pkOf = async (name: string) => (await there.db.provider.findUniqueOrThrow({ where: { name } })).pk
const noMapping = expect.stringMatching(/^No property mapping is called "x"\. /)
const otherProvider = 'Must be the key or the name of the provider in this submission.'
const none = '6f7e0000-0000-4000-8000-00000000ffff'
const proto = (value: unknown) => JSON.stringify(value).replaceAll('"PROTO"', '"__proto__"')
const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`

type Case = [sent: (body: Body) => unknown, fields: object | (() => object)]
const provider = (members: Record<string, unknown>, fields: object): Case => [
  (to) => ({ ...to, provider: { ...to.provider, ...members } }),
  { provider: fields },
]
const app = (members: Record<string, unknown>, fields: object): Case => [
  (to) => ({ ...to, app: { ...to.app, ...members } }),
  { app: fields },
]
const required = ['This field is required.']
const otherModel = 'Must be service_providers_oauth2.oauth2provider, as provider_model beside it, or left out.'
const halfPair = ['Is not well-formed Unicode: half of a surrogate pair is missing.']

const members: Record<string, Case> = {
  'no members': [() => ({}), { app: required, provider_model: required, provider: required }],
  'no provider_model': [({ app, provider }) => ({ app, provider }), { provider_model: required }],
  'no app': [({ provider_model, provider }) => ({ provider_model, provider }), { app: required }],
  'another provider_model inside the provider': provider(
    { provider_model: 'service_providers_saml.samlprovider', providerModel: null },
    { provider_model: [otherModel], providerModel: [otherModel] },
  ),
  'an icon, which is not stored': app(
    { meta_icon: '/icon.png' },
    { meta_icon: ['This is not stored: leave it out, or send null.'] },
  ),
  'an empty app': [(to) => ({ ...to, app: {} }), { app: { name: required, slug: required } }],
  'an empty provider': [
    (to) => ({ ...to, provider: {} }),
    { provider: { name: required, authorization_flow: required } },
  ],
  'no slug': app({ slug: undefined }, { slug: required }),
  'no provider name': provider({ name: undefined }, { name: required }),
  'an app that is a text': [(to) => ({ ...to, app: 'x' }), { app: ['Must be an object.'] }],
  'a provider that is a list': [(to) => ({ ...to, provider: [] }), { provider: ['Must be an object.'] }],
  'an unknown member': [(to) => ({ ...to, dry_run: true }), { dry_run: ['Unknown field.'] }],
  'an unknown member called code': [(to) => ({ ...to, code: 1 }), { non_field_errors: ['code: Unknown field.'] }],
  'an unknown member, with the nearest': [
    ({ app, ...to }) => ({ ...to, app, ap: app }),
    { ap: ['Unknown field. Did you mean app?'] },
  ],
  'an unknown member of app': app(
    { meta_lunch_url: '' },
    { meta_lunch_url: ['Unknown field. Did you mean meta_launch_url?'] },
  ),
  'an unknown member of provider': provider(
    { redirect_uri: [] },
    { redirect_uri: ['Unknown field. Did you mean redirect_uris?'] },
  ),
  'an unknown member of a list': provider(
    { redirect_uris: [{ matching_mode: 'strict', url: 'https://a.example', x: 1 }] },
    { redirect_uris: { 0: { x: ['Unknown field.'] } } },
  ),
  'wrong types': app(
    {
      name: 5,
      slug: [],
      open_in_new_tab: 'true',
      meta_launch_url: 5,
      policy_engine_mode: 1,
      group: {},
      backchannel_providers: 'x',
    },
    {
      name: ['Must be text.'],
      slug: ['Must be text.'],
      open_in_new_tab: ['Must be true or false.'],
      meta_launch_url: ['Must be text.'],
      policy_engine_mode: ['Must be one of: all, any.'],
      group: ['Must be text.'],
      backchannel_providers: ['Must be a list.'],
    },
  ),
  'a list of wrong types': provider(
    { property_mappings: ['x', 5, null] },
    { property_mappings: { 0: [noMapping], 1: ['Must be a UUID.'], 2: ['Must be a UUID.'] } },
  ),
  'a model that there is none of': [
    (to) => ({ ...to, provider_model: 'service_providers_x.xprovider' }),
    { provider_model: [expect.stringMatching(/^Must be one of: service_providers_directory_sync_b/)] },
  ],
  'a model that is no provider': [
    (to) => ({ ...to, provider_model: 'service_core.user' }),
    { provider_model: [expect.stringMatching(/^Must be one of: /)] },
  ],
  'a model that is no text': [
    (to) => ({ ...to, provider_model: { toString: 'x' } }),
    { provider_model: [expect.stringMatching(/^Must be one of: /)] },
  ],
  'references to nothing': provider(
    { authorization_flow: none, signing_key: none, property_mappings: ['6f7e0000-0000-4000-8000-000000000201', none] },
    {
      authorization_flow: [`There is no flow with the key ${none}.`],
      signing_key: [`There is no certificatekeypair with the key ${none}.`],
      property_mappings: { 1: [`There is no propertymapping with the key ${none}.`] },
    },
  ),
  'a backchannel provider that is none': [
    (to) => ({ ...to, app: { ...to.app, backchannel_providers: [takenPk, 999] } }),
    () => ({
      app: {
        backchannel_providers: {
          0: [
            `The provider ${takenPk} has the kind oauth2: this field takes directory_sync_b, ldap, scim, workspace_sync_a.`,
          ],
          1: ['There is no backchannel provider with the key 999.'],
        },
      },
    }),
  ],
  'a backchannel provider that another application has': [
    (to) => ({ ...to, app: { ...to.app, backchannel_providers: [takenPk + 1] } }),
    () => ({
      app: { backchannel_providers: ['The backchannel provider "behind" belongs to application "owner".'] },
    }),
  ],
  'a provider name that another kind has': provider(
    { name: 'behind' },
    { name: ['"behind" is the name of a provider scim: choose another.'] },
  ),
  'a provider that another application has': [
    (to) => ({ ...to, provider: { ...to.provider, name: 'taken', client_id: 'client-taken' } }),
    () => ({ app: { provider: ['The provider "taken" belongs to application "taken".'] } }),
  ],
  'another key than the provider has': [
    (to) => ({ ...to, app: { ...to.app, slug: 'taken', provider: 999 }, provider: { name: 'taken' } }),
    () => ({ app: { provider: [expect.stringContaining(`"taken" has the key ${takenPk}`)] } }),
  ],
  'a key of a provider that is not there yet': app(
    { provider: 1 },
    { provider: [expect.stringContaining('"new" is not there yet')] },
  ),
  'the name of another provider': app({ provider: 'taken' }, { provider: [otherProvider] }),
  'a key that is no number': app({ provider: '1' }, { provider: [otherProvider] }),
  'a key with a fraction': app({ provider: 1.5 }, { provider: [otherProvider] }),
  'a client id that is taken': provider(
    { client_id: 'client-taken' },
    { client_id: ['"client-taken" is taken by provider oauth2 "taken".'] },
  ),
  'a regular expression that does not compile': provider(
    {
      redirect_uris: [
        { matching_mode: 'strict', url: 'https://a.example' },
        { matching_mode: 'regex', url: '(' },
      ],
    },
    { redirect_uris: { 1: { url: ['Must be a regular expression of RE2: missing closing ).'] } } },
  ),
  NUL: app(
    { name: 'a\0b', group: '\0' },
    { name: ['May not hold the NUL character.'], group: ['May not hold the NUL character.'] },
  ),
  'NUL deep inside': provider(
    { redirect_uris: [{ matching_mode: 'regex', url: '\0' }] },
    { redirect_uris: { 0: { url: ['May not hold the NUL character.', 'May not be empty.'] } } },
  ),
  'NUL in a name': app({ 'a\0': 1 }, { 'a\ufffd': ['May not hold the NUL character.'] }),
  'halves of surrogate pairs': app({ name: '\ud800', group: 'a\udc00b' }, { name: halfPair, group: halfPair }),
  'half of a pair in a name': provider({ '\ud800': 1 }, { '\ufffd': halfPair }),
  'a member called __proto__': [
    (to) => proto({ ...to, PROTO: { admin: true } }),
    { ['__proto__']: ['No field may have this name.'] },
  ],
  '__proto__ members inside': [
    (to) =>
      proto({
        ...to,
        app: { ...to.app, PROTO: { slug: 'x' } },
        provider: { ...to.provider, redirect_uris: [{ PROTO: 1 }] },
      }),
    {
      app: { ['__proto__']: ['No field may have this name.'] },
      provider: {
        redirect_uris: {
          0: { ['__proto__']: ['No field may have this name.'], matching_mode: required, url: required },
        },
      },
    },
  ],
  'members that every object has': app(
    { constructor: {}, toString: 1 },
    { constructor: ['Unknown field.'], toString: ['Unknown field.'] },
  ),
  'an infinite number': [
    (to) => JSON.stringify({ ...to, app: { ...to.app, provider: 'HUGE' } }).replace('"HUGE"', '1e400'),
    { app: { provider: [notKept, expect.stringContaining('"new" is not there yet')] } },
  ],
  '50 000 levels': [
    (to) => JSON.stringify({ ...to, app: 'DEEP' }).replace('"DEEP"', nested(50_000)),
    { app: { 0: ['Is nested deeper than 32 levels.'] } },
  ],
  '33 levels': [
    (to) => JSON.stringify({ ...to, provider: { settings: 'DEEP' } }).replace('"DEEP"', nested(33)),
    { provider: { settings: ['Is nested deeper than 32 levels.'] } },
  ],
  '10 001 values': [
    (to) => ({ ...to, provider: { ...to.provider, property_mappings: Array.from({ length: 10_001 }, () => 0) } }),
    { non_field_errors: ['Holds more than 10000 values.'] },
  ],
  'a body that is a list': [
    () => [],
    { non_field_errors: ['Must be an object with app, provider_model and provider.'] },
  ],
  'a body that is null': [
    () => 'null',
    { non_field_errors: ['Must be an object with app, provider_model and provider.'] },
  ],
  'errors of app and provider at once': [
    ({ app, provider, ...to }) => ({
      ...to,
      app: { ...app, name: '', nam: 1 },
      provider: { ...provider, name: '', client_type: 'x', signing_key: none },
    }),
    {
      app: { name: ['May not be empty.'], nam: ['Unknown field. Did you mean name?'] },
      provider: {
        name: ['May not be empty.'],
        client_type: ['Must be one of: confidential, public.'],
        signing_key: [expect.stringContaining('There is no')],
      },
    },
  ],
}

const there = await installation()
for (const name of ['taken', 'behind']) {
  await answered(200, there.admin.submit(name === 'taken' ? 'oauth2' : 'scim', name))
}
await there.admin.submit('radius', 'owner', { app: { backchannel_providers: [await pkOf('behind')] } })
/** The key of the provider of another application. */
const takenPk = await pkOf('taken')
const body = await named('oauth2', 'new')

const refused = (sent: unknown) => there.refused(400, () => there.admin.put(applyPath, sent))

describe('a 400 names each wrong field', () => {
  test.each(Object.entries(members))('%s', async (_, [sent, fields]) => {
    const { json } = await refused(sent(body))
    expect(json).toEqual({ ...(typeof fields === 'function' ? fields() : fields), code: 'invalid' })
  })

  test.each([
    ['uid_start_number', 2_147_483_648, 'Must be at most 2147483647.'],
    ['gid_start_number', -2_147_483_649, 'Must be at least -2147483648.'],
    ['uid_start_number', 1e300, 'Must be a whole number.'],
    ['gid_start_number', 2 ** 53 - 1, 'Must be at most 2147483647.'],
    ['uid_start_number', 1.5, 'Must be a whole number.'],
  ])('an integer out of its range: %s %d', async (member, value, why) => {
    const { json } = await refused(await named('ldap', 'new-ldap', { provider: { [member]: value } }))
    expect(json).toEqual({ provider: { [member]: expect.arrayContaining([why]) }, code: 'invalid' })
  })

  test('at most 100 errors, and the rest are counted', async () => {
    const wrong = Object.fromEntries(Array.from({ length: 150 }, (_, index) => [`x${index}`, 1]))
    const { json } = await refused({ ...body, app: { ...body.app, ...wrong } })
    expect(Object.keys((json as { app: object }).app)).toHaveLength(100)
    expect(json).toMatchObject({ non_field_errors: ['50 more errors are not listed.'] })
  })
})

test('after all of it, the body itself applies', async () => {
  expect(await there.admin.put(applyPath, body)).toMatchObject({ status: 200, json: { applied: true } })
})
