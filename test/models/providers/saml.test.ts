import { expect, test } from 'vitest'
import saml from '../../../src/models/providers/saml.ts'
import {
  booleanRow,
  choiceRow,
  durationRow,
  httpUrlRow,
  key,
  referenceRow,
  ruleErrors,
  testFields,
  testKind,
  textRow,
} from '../check.ts'

testKind(saml, {
  verboseName: 'SAML Provider',
  component: 'service-provider-saml-form',
  required: ['acs_url'],
  secrets: [],
  references: {
    name_id_mapping: 'propertymapping',
    signing_kp: 'certificatekeypair',
    verification_kp: 'certificatekeypair',
    encryption_kp: 'certificatekeypair',
  },
  defaults: {
    audience: '',
    issuer: 'service',
    assertion_valid_not_before: 'minutes=-5',
    assertion_valid_not_on_or_after: 'minutes=5',
    session_valid_not_on_or_after: 'minutes=86400',
    name_id_mapping: null,
    digest_algorithm: 'http://www.w3.org/2001/04/xmlenc#sha256',
    signature_algorithm: 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256',
    signing_kp: null,
    verification_kp: null,
    encryption_kp: null,
    sign_assertion: true,
    sign_response: false,
    sp_binding: 'redirect',
    default_relay_state: '',
  },
})

testFields(saml, [
  httpUrlRow('acs_url'),
  [
    'acs_url',
    [`https://a.example/${'x'.repeat(182)}`],
    [[`https://a.example/${'x'.repeat(183)}`, 'Must be at most 200 characters.']],
  ],
  textRow('audience', 2_000),
  textRow('issuer', 2_000, { filled: true }),
  durationRow('assertion_valid_not_before'),
  durationRow('assertion_valid_not_on_or_after'),
  durationRow('session_valid_not_on_or_after'),
  referenceRow('name_id_mapping'),
  choiceRow(
    'digest_algorithm',
    'http://www.w3.org/2000/09/xmldsig#sha1',
    'http://www.w3.org/2001/04/xmlenc#sha256',
    'http://www.w3.org/2001/04/xmldsig-more#sha384',
    'http://www.w3.org/2001/04/xmlenc#sha512',
  ),
  choiceRow(
    'signature_algorithm',
    'http://www.w3.org/2000/09/xmldsig#rsa-sha1',
    'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256',
    'http://www.w3.org/2001/04/xmldsig-more#rsa-sha384',
    'http://www.w3.org/2001/04/xmldsig-more#rsa-sha512',
    'http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha1',
    'http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256',
    'http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha384',
    'http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha512',
    'http://www.w3.org/2000/09/xmldsig#dsa-sha1',
  ),
  referenceRow('signing_kp'),
  referenceRow('verification_kp'),
  referenceRow('encryption_kp'),
  booleanRow('sign_assertion'),
  booleanRow('sign_response'),
  choiceRow('sp_binding', 'redirect', 'post'),
  textRow('default_relay_state', 2_000),
])

test.each([
  [null, false, false, 0],
  [key, true, false, 0],
  [key, false, true, 0],
  [key, true, true, 0],
  [key, false, false, 2],
])(
  'with signing_kp %s, sign_assertion %s and sign_response %s there are %i errors',
  (signing_kp, sign_assertion, sign_response, count) => {
    const errors = ruleErrors(saml, { signing_kp, sign_assertion, sign_response })
    expect(errors).toHaveLength(count)
    for (const error of errors)
      expect(error).toContain('With a signing_kp, sign_assertion or sign_response must be true.')
  },
)

test('it has no launch URL', () => {
  expect(saml.provider.launchUrl({})).toBeNull()
})
