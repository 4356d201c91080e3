import { describe, expect } from 'vitest'
import {
  installationWith,
  nameOfScim,
  noFlow,
  noKeyPair,
  none,
  notBoolean,
  oneOf,
  required,
  testRefusals,
  whenDomain,
} from './refusals.ts'

/** Rules that span fields, and missing rows, are reported with every other error in one answer. */

const there = await installationWith('scim', 'proxy', 'saml')

const whenTrue = ['May not be empty when basic_auth_enabled is true.']
const unsigned = ['With a signing_kp, sign_assertion or sign_response must be true.']

describe('rules that span fields are reported with every other error', () => {
  const basicAuth = { basic_auth_password_attribute: whenTrue, basic_auth_user_attribute: whenTrue }
  const wrongProxy = {
    mode: 'forward_domain',
    basic_auth_enabled: true,
    basic_auth_password_attribute: '',
    basic_auth_user_attribute: ' ',
  }

  testRefusals(() => there, {
    'beside a reference to nothing': {
      kind: 'proxy',
      provider: { ...wrongProxy, authorization_flow: none },
      says: { provider: { authorization_flow: noFlow, cookie_domain: whenDomain, ...basicAuth } },
    },
    'beside missing and unknown members, and errors of the application': {
      kind: 'proxy',
      app: { name: undefined, policy_engine_mode: 'some', backchannel_providers: [99] },
      provider: { ...wrongProxy, external_host: undefined, authorization_flow: undefined, intern_host: '' },
      says: {
        app: {
          name: required,
          policy_engine_mode: [oneOf],
          backchannel_providers: { 0: ['There is no backchannel provider with the key 99.'] },
        },
        provider: {
          external_host: required,
          authorization_flow: required,
          intern_host: ['Unknown field. Did you mean internal_host?'],
          cookie_domain: whenDomain,
          ...basicAuth,
        },
      },
    },
    'beside the name of another kind': {
      kind: 'proxy',
      provider: { ...wrongProxy, name: 'scim-there', external_host: undefined },
      says: {
        provider: {
          name: nameOfScim,
          external_host: required,
          cookie_domain: whenDomain,
          ...basicAuth,
        },
      },
    },
    'of a provider that is there, beside a reference to nothing': {
      kind: 'proxy',
      name: 'proxy-there',
      provider: { ...wrongProxy, certificate: none },
      says: { provider: { certificate: noKeyPair, cookie_domain: whenDomain, ...basicAuth } },
    },
    'of a provider that is there, beside a wrong type and an application that is not its own': {
      kind: 'saml',
      name: 'saml-there',
      app: { slug: 'another' },
      provider: { acs_url: 5, sign_assertion: false, sign_response: false },
      says: {
        app: { provider: [expect.stringContaining('belongs to application "saml-there"')] },
        provider: { acs_url: ['Must be text.'], sign_assertion: unsigned, sign_response: unsigned },
      },
    },
    'beside a key pair that is not there': {
      kind: 'saml',
      provider: { signing_kp: none, sign_assertion: false, sign_response: false, digest_algorithm: 'md5' },
      says: {
        provider: {
          signing_kp: noKeyPair,
          sign_assertion: unsigned,
          sign_response: unsigned,
          digest_algorithm: [oneOf],
        },
      },
    },
    'beside an expression that does not compile': {
      kind: 'oauth2',
      provider: {
        client_type: 'confidential',
        client_secret: '',
        redirect_uris: [{ matching_mode: 'regex', url: '(' }],
        access_code_validity: 'soon',
      },
      says: {
        provider: {
          client_secret: ['May not be empty when client_type is confidential.'],
          redirect_uris: { 0: { url: ['Must be a regular expression of RE2: missing closing ).'] } },
          access_code_validity: ['Must be a duration such as hours=1;minutes=30.'],
        },
      },
    },
  })
})

describe('a rule does not report what it cannot know', () => {
  testRefusals(() => there, {
    'a mode that is none': {
      kind: 'proxy',
      provider: { mode: 'forward', internal_host: '', cookie_domain: '' },
      says: { provider: { mode: [oneOf] } },
    },
    'a faulty mode of a provider that is there': {
      kind: 'proxy',
      name: 'proxy-there',
      provider: { mode: 5, internal_host: '' },
      says: { provider: { mode: [oneOf] } },
    },
    'members of wrong types that it asks for': {
      kind: 'proxy',
      provider: {
        mode: 'forward_domain',
        cookie_domain: 5,
        basic_auth_enabled: true,
        basic_auth_password_attribute: 5,
        basic_auth_user_attribute: '',
      },
      says: {
        provider: {
          cookie_domain: ['Must be text.'],
          basic_auth_password_attribute: ['Must be text.'],
          basic_auth_user_attribute: whenTrue,
        },
      },
    },
    'a signature of another type': {
      kind: 'saml',
      provider: { sign_assertion: 'no', sign_response: false },
      says: { provider: { sign_assertion: [notBoolean] } },
    },
    'a key pair that is no key': {
      kind: 'saml',
      provider: { signing_kp: 'mine', sign_assertion: false, sign_response: false },
      says: { provider: { signing_kp: ['No certificate key pair is called "mine".'] } },
    },
    'a client type that is none': {
      kind: 'oauth2',
      provider: { client_type: 'secret', client_secret: '' },
      says: { provider: { client_type: [oneOf] } },
    },
  })
})

describe('a list with one malformed key has its other keys checked', () => {
  const other = '6f7e0000-0000-4000-8000-00000000fffe'
  const mapping = '6f7e0000-0000-4000-8000-000000000201'
  testRefusals(() => there, {
    'of a provider that is new': {
      kind: 'oauth2',
      app: { backchannel_providers: [0, 98, 'x', 99] },
      provider: { property_mappings: ['x', mapping, none, `${other}\0`] },
      says: {
        app: {
          backchannel_providers: {
            0: ['Must be at least 1.'],
            1: ['There is no backchannel provider with the key 98.'],
            2: [expect.stringMatching(/^No provider is called "x"\. /)],
            3: ['There is no backchannel provider with the key 99.'],
          },
        },
        provider: {
          property_mappings: {
            0: [expect.stringMatching(/^No property mapping is called "x"\. /)],
            2: [`There is no propertymapping with the key ${none}.`],
            3: ['May not hold the NUL character.', `There is no propertymapping with the key ${other}.`],
          },
        },
      },
    },
  })
})
