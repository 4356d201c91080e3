import { describe, expect, test } from 'vitest'
import { notKept } from '../../src/numbers.ts'
import { applyPath, named } from '../support/kit.ts'
import {
  installationWith,
  nameOfScim,
  noFlow,
  noKeyPair,
  none,
  notBoolean,
  oneOf,
  refusal,
  required,
  testRefusals,
  whenDomain,
} from './refusals.ts'

/** Texts and numbers that cannot be stored hide no other error: one answer has all of them. */

const there = await installationWith('scim')

const nul = 'May not hold the NUL character.'
const halfPair = 'Is not well-formed Unicode: half of a surrogate pair is missing.'
const tooLarge = notKept
const noProvider = expect.stringMatching(/^No provider is called "x"\. /)
const noName = 'No field may have this name.'

describe('texts and numbers that cannot be stored hide no other error', () => {
  testRefusals(() => there, {
    'NUL beside an unknown model, wrong types and unknown members': {
      kind: 'oauth2',
      app: { name: 'a\0b', slug: 5, open_in_new_tab: 'yes', nam: 1 },
      others: { provider_model: 'service_providers_oauth.oauthprovider', ap: {} },
      says: {
        app: {
          name: [nul],
          slug: ['Must be text.'],
          open_in_new_tab: [notBoolean],
          nam: ['Unknown field. Did you mean name?'],
        },
        provider_model: [oneOf],
        ap: ['Unknown field. Did you mean app?'],
      },
    },
    'half a pair beside references to nothing, a missing member and a taken name': {
      kind: 'saml',
      app: { group: '\ud800', meta_launch_url: 'javascript:1' },
      provider: { name: 'scim-there', audience: 'a\udc00', acs_url: undefined, authorization_flow: none },
      says: {
        app: { group: [halfPair], meta_launch_url: ['May not be a javascript: URL.'] },
        provider: {
          name: nameOfScim,
          audience: [halfPair],
          acs_url: required,
          authorization_flow: noFlow,
        },
      },
    },
    'NUL and another error of the same member': {
      kind: 'proxy',
      app: { open_in_new_tab: '\0', colour: '\0', slug: 'a b\0' },
      provider: { internal_host_ssl_validation: '\0\ud800', mode: 'proxy\0', cookie_domain: 'nowhere\0' },
      others: { provider: undefined, provider_model: '\0' },
      says: {
        app: {
          open_in_new_tab: [nul, notBoolean],
          colour: [nul, 'Unknown field.'],
          slug: [nul, 'May hold only letters, digits, hyphens and underscores.'],
        },
        provider_model: [nul, oneOf],
        provider: required,
      },
    },
    'NUL alone, where what is left is sound': {
      kind: 'proxy',
      app: { slug: 'a\0b', meta_launch_url: 'https://a.example/\0' },
      provider: {
        mode: 'forward_domain\0',
        certificate: `${none}\0`,
        external_host: 'https://\0a.example',
        access_token_validity: 'hours=1\0',
      },
      says: {
        app: { slug: [nul], meta_launch_url: [nul] },
        provider: {
          mode: [nul],
          // Its other error would be reported next.
          cookie_domain: whenDomain,
          certificate: [nul, ...noKeyPair],
          external_host: [nul],
          access_token_validity: [nul],
        },
      },
    },
    'numbers beyond all bounds, in members, lists and free-form objects': {
      kind: 'ldap',
      app: { backchannel_providers: [1, 'HUGE', 'x'], provider: 'HUGE', name: 'HUGE' },
      provider: { uid_start_number: 'HUGE', gid_start_number: '-HUGE', mfa_support: 'HUGE', base_dn: 'x' },
      says: {
        app: {
          backchannel_providers: { 1: [tooLarge, 'Must be at most 2147483647.'], 2: [noProvider] },
          provider: [tooLarge, expect.stringContaining('is not there yet')],
          name: [tooLarge, 'Must be text.'],
        },
        provider: {
          uid_start_number: [tooLarge, 'Must be at most 2147483647.'],
          gid_start_number: [tooLarge, 'Must be at least -2147483648.'],
          mfa_support: [tooLarge, notBoolean],
          base_dn: ['Must be a distinguished name such as DC=ldap,DC=example,DC=com.'],
        },
      },
    },
    'inside free-form objects, at their place': {
      kind: 'workspace_sync_a',
      provider: {
        credentials: { a: ['\0', 1, 'HUGE'], 'b\0': { c: '\ud800' }, PROTO: { d: '\0' } },
        delegated_subject: undefined,
        user_delete_action: 'x\0',
        default_group_email_domain: '\0',
      },
      says: {
        provider: {
          credentials: {
            a: { 0: [nul], 2: [tooLarge] },
            'b\ufffd': { non_field_errors: [nul], c: [halfPair] },
            ['__proto__']: { non_field_errors: [noName], d: [nul] },
          },
          delegated_subject: required,
          user_delete_action: [nul, oneOf],
          default_group_email_domain: [nul, expect.stringMatching(/^Must be a domain name/)],
        },
      },
    },
    'names that no member may have, in entries of a list': {
      kind: 'oauth2',
      app: { PROTO: 1, 'name\0': 'x', name: undefined },
      provider: {
        redirect_uris: [{ PROTO: 1 }, { matching_mode: 'regex', url: '(\0' }, { matching_mode: 'x', url: '\ud800' }],
        sub_mode: 'x',
      },
      others: { PROTO: { x: 1 } },
      says: {
        ['__proto__']: [noName],
        app: { ['__proto__']: [noName], 'name\ufffd': [nul], name: required },
        provider: {
          redirect_uris: {
            0: { ['__proto__']: [noName], matching_mode: required, url: required },
            1: { url: [nul, 'Must be a regular expression of RE2: missing closing ).'] },
            2: { matching_mode: [oneOf], url: [halfPair] },
          },
          sub_mode: [oneOf],
        },
      },
    },
    'NUL in the name of what is there: it stays as it is': {
      kind: 'scim',
      name: 'scim-there',
      app: { name: 'New\0' },
      provider: { name: 'scim-there\0', url: 'x' },
      says: {
        app: { name: [nul] },
        provider: { name: [nul], url: [expect.stringMatching(/^Must be a URL/)] },
      },
    },
  })

  test('a structure beyond the limits ends the check, with the errors so far', async () => {
    const deep = `${'['.repeat(40)}${']'.repeat(40)}`
    const { status, json } = await there.admin.put(applyPath, `{"provider":${deep},"app":{"name":"\\u0000"}}`)
    expect({ status, json }).toEqual({
      status: 400,
      json: { app: { name: [nul] }, provider: { 0: ['Is nested deeper than 32 levels.'] }, code: 'invalid' },
    })
  })

  test('a caller without the permission gets no errors of the text either', async () => {
    const unprivileged = await there.make.user({ permissions: ['add_application', 'add_scimprovider'] })
    const body = await named('oauth2', 'new', { app: { name: '\0' } })
    expect(await unprivileged.put(applyPath, body)).toMatchObject({ status: 403, json: { code: 'permission_denied' } })
  })

  test('a sanitised value is never applied', async () => {
    const { json } = await refusal(there, { kind: 'rac', provider: { settings: { a: 'b\0' } } })
    expect(json).toEqual({ provider: { settings: { a: [nul] } }, code: 'invalid' })
    const createOnly = await there.admin.submit('scim', 'scim-there', { app: { name: 'x\0' }, ifNoneMatch: '*' })
    expect(createOnly).toMatchObject({ status: 400, json: { app: { name: [nul] } } })
  })
})
