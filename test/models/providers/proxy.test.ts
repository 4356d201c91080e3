import { expect, test } from 'vitest'
import proxy from '../../../src/models/providers/proxy.ts'
import {
  booleanRow,
  choiceRow,
  durationRow,
  httpUrlRow,
  keysRow,
  referenceRow,
  ruleErrors,
  testFields,
  testKind,
  textRow,
} from '../check.ts'

testKind(proxy, {
  verboseName: 'Proxy Provider',
  component: 'service-provider-proxy-form',
  required: ['external_host'],
  secrets: [],
  references: { certificate: 'certificatekeypair' },
  defaults: {
    internal_host: '',
    internal_host_ssl_validation: true,
    certificate: null,
    skip_path_regex: '',
    basic_auth_enabled: false,
    basic_auth_password_attribute: '',
    basic_auth_user_attribute: '',
    mode: 'proxy',
    intercept_header_auth: true,
    cookie_domain: '',
    access_token_validity: 'hours=1',
    refresh_token_validity: 'days=30',
    jwks_sources: [],
  },
})

testFields(proxy, [
  httpUrlRow('external_host'),
  ['external_host', [], [['', 'Must be a URL that starts with']]],
  httpUrlRow('internal_host'),
  ['internal_host', [''], [[`https://example.com/${'x'.repeat(2_000)}`, 'Must be at most 2000 characters.']]],
  booleanRow('internal_host_ssl_validation'),
  referenceRow('certificate'),
  [
    'skip_path_regex',
    ['', '^/healthy$', '^/a$\n^/b$'],
    [
      ['^/a$\n(', 'Line 2: Must be a regular expression of RE2: missing closing ).'],
      ['a'.repeat(10_001), 'Must be at most 10000 characters.'],
      [null, 'Must be text.'],
    ],
  ],
  booleanRow('basic_auth_enabled'),
  textRow('basic_auth_password_attribute', 255),
  textRow('basic_auth_user_attribute', 255),
  choiceRow('mode', 'proxy', 'forward_single', 'forward_domain'),
  booleanRow('intercept_header_auth'),
  [
    'cookie_domain',
    ['', 'example.com', '.example.com', 'localhost'],
    [
      ['..example.com', 'Must be a domain name such as example.com'],
      ['https://example.com', 'Must be a domain name'],
    ],
  ],
  durationRow('access_token_validity'),
  durationRow('refresh_token_validity'),
  keysRow('jwks_sources'),
])

const whole = {
  mode: 'proxy',
  internal_host: 'http://app.internal',
  external_host: 'https://app.example.com',
  cookie_domain: '',
  basic_auth_enabled: false,
  basic_auth_password_attribute: '',
  basic_auth_user_attribute: '',
}

test.each([
  [{}, []],
  [{ internal_host: '' }, ['internal_host: May not be empty when mode is proxy.']],
  [{ mode: 'forward_single', internal_host: '' }, []],
  [{ mode: 'forward_domain', internal_host: '' }, ['cookie_domain: May not be empty when mode is forward_domain.']],
  [{ mode: 'forward_domain', cookie_domain: 'example.com' }, []],
  [
    { basic_auth_enabled: true },
    [
      'basic_auth_password_attribute: May not be empty when basic_auth_enabled is true.',
      'basic_auth_user_attribute: May not be empty when basic_auth_enabled is true.',
    ],
  ],
  [
    { basic_auth_enabled: true, basic_auth_user_attribute: 'user', basic_auth_password_attribute: ' ' },
    ['basic_auth_password_attribute: May not be empty when basic_auth_enabled is true.'],
  ],
  [{ basic_auth_enabled: true, basic_auth_user_attribute: 'user', basic_auth_password_attribute: 'password' }, []],
])('with %j the rules report %j', (changes, errors) => {
  expect(ruleErrors(proxy, { ...whole, ...changes })).toEqual(errors)
})

test('the launch URL is the external host', () => {
  expect(proxy.provider.launchUrl(whole)).toBe('https://app.example.com')
})
