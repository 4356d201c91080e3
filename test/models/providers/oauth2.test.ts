import { expect, test } from 'vitest'
import oauth2 from '../../../src/models/providers/oauth2.ts'
import {
  booleanRow,
  choiceRow,
  durationRow,
  fieldOf,
  key,
  keysRow,
  type Row,
  referenceRow,
  ruleErrors,
  testFields,
  testKind,
  textRow,
} from '../check.ts'

testKind(oauth2, {
  verboseName: 'OAuth2/OpenID Provider',
  component: 'service-provider-oauth2-form',
  required: [],
  secrets: ['client_secret'],
  generated: { client_id: 40, client_secret: 128 },
  references: { signing_key: 'certificatekeypair', encryption_key: 'certificatekeypair' },
  defaults: {
    client_type: 'confidential',
    access_code_validity: 'minutes=1',
    access_token_validity: 'hours=1',
    refresh_token_validity: 'days=30',
    include_claims_in_id_token: true,
    signing_key: null,
    encryption_key: null,
    redirect_uris: [],
    sub_mode: 'hashed_user_id',
    issuer_mode: 'per_provider',
    jwks_sources: [],
  },
})

const strict = (url: unknown) => ({ matching_mode: 'strict', url })
const regex = (url: unknown) => ({ matching_mode: 'regex', url })

const redirectUris: Row = [
  'redirect_uris',
  [
    [],
    [strict('https://app.example.com/cb'), regex('^https://app\\.example\\.com/pr-\\d+/cb$')],
    [strict('com.example.app:/cb')],
    'https://a.example/cb\nhttps://b.example/cb',
    '',
  ],
  [
    [[strict('/cb')], '0.url: Must be an absolute URL'],
    [[strict('https://a.example/cb'), strict('javascript:alert(1)')], '1.url: May not be a javascript: URL.'],
    [[strict('https://a.example/#x')], '0.url: May not hold a fragment (#).'],
    [[strict('https://[')], '0.url: Must be a URL'],
    [[regex('https://(')], '0.url: Must be a regular expression of RE2: missing closing ).'],
    [[strict('')], '0.url: May not be empty.'],
    [[strict(7)], '0.url: Must be text.'],
    [[strict('x'.repeat(2_001))], '0.url: Must be at most 2000 characters.'],
    [[{ url: 'https://a.example/cb' }], '0.matching_mode: This field is required.'],
    [[{ matching_mode: 'strict' }], '0.url: This field is required.'],
    [[{ matching_mode: 'exact', url: 'https://a.example/cb' }], '0.matching_mode: Must be one of: strict, regex.'],
    [[{ ...strict('https://a.example/cb'), mode: 1 }], '0: Unknown field: mode.'],
    [['https://a.example/cb'], '0: Must be an object.'],
    ['https://a.example/cb\njavascript:alert(1)', '1.url: May not be a javascript: URL.'],
    [null, 'Must be a list.'],
    [Array.from({ length: 101 }, () => strict('https://a.example/cb')), 'Must be at most 100 entries.'],
  ],
]

testFields(oauth2, [
  choiceRow('client_type', 'confidential', 'public'),
  textRow('client_id', 255, { filled: true }),
  textRow('client_secret', 255),
  durationRow('access_code_validity'),
  durationRow('access_token_validity'),
  durationRow('refresh_token_validity'),
  booleanRow('include_claims_in_id_token'),
  referenceRow('signing_key'),
  referenceRow('encryption_key'),
  redirectUris,
  choiceRow('sub_mode', 'hashed_user_id', 'user_id', 'user_uuid', 'user_username', 'user_email', 'user_upn'),
  choiceRow('issuer_mode', 'global', 'per_provider'),
  keysRow('jwks_sources'),
])

test('redirect URIs that are sent one per line are stored as strict ones', () => {
  const { schema } = fieldOf(oauth2, 'redirect_uris')
  expect(schema.parse('https://a.example/cb\r\n\n  com.example.app:/cb \n')).toEqual([
    strict('https://a.example/cb'),
    strict('com.example.app:/cb'),
  ])
  expect(schema.parse('')).toEqual([])
})

test('the client id has a unique column; token sources have no reference target', () => {
  expect(fieldOf(oauth2, 'client_id').storage).toEqual({ in: 'column', column: 'oauth2_client_id', json: false })
  expect(oauth2.unique).toEqual(['client_id'])
  expect(fieldOf(oauth2, 'jwks_sources').reference).toBeUndefined()
  expect(fieldOf(oauth2, 'jwks_sources').schema.parse([key])).toEqual([key])
})

test('only a public client may have an empty secret', () => {
  expect(ruleErrors(oauth2, { client_type: 'public', client_secret: '' })).toEqual([])
  expect(ruleErrors(oauth2, { client_type: 'confidential', client_secret: 'x' })).toEqual([])
  expect(ruleErrors(oauth2, { client_type: 'confidential', client_secret: '' })).toEqual([
    'client_secret: May not be empty when client_type is confidential.',
  ])
})

test.each([
  [[strict('https://app.example.com:8443/cb?x=y')], 'https://app.example.com:8443'],
  [[strict('https://app.example.com/cb'), strict('https://other.example.com/cb')], 'https://app.example.com'],
  [[strict('com.example.app:/cb')], null],
  [[], null],
  // The first URI counts, also a pattern with a literal scheme and host.
  [[regex('https://app.example.com/.*'), strict('https://other.example.com/cb')], 'https://app.example.com'],
  [[regex('^https:\\/\\/app\\.example\\.com:8443\\/cb$')], 'https://app.example.com:8443'],
  [[regex('https://my\\-app\\.example\\.com')], 'https://my-app.example.com'],
  [[regex('https://.*'), strict('https://app.example.com/cb')], null],
  [[regex('https://pr-\\d+\\.example\\.com/cb'), strict('https://app.example.com/cb')], null],
  [[regex('https?://app.example.com/cb')], null],
  [[regex('https://app.example.com.*')], null],
  [[regex('https://(a|b).example.com/cb')], null],
  [[regex('https://a.example.com|https://b.example.com')], null],
  [[regex('.*')], null],
])('the launch URL of %j is %s', (uris, url) => {
  expect(oauth2.provider.launchUrl({ redirect_uris: uris })).toBe(url)
})
