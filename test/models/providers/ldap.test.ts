import { expect, test } from 'vitest'
import ldap from '../../../src/models/providers/ldap.ts'
import { booleanRow, choiceRow, type Row, referenceRow, testFields, testKind, textRow } from '../check.ts'

testKind(ldap, {
  verboseName: 'LDAP Provider',
  component: 'service-provider-ldap-form',
  backchannel: true,
  required: [],
  secrets: [],
  references: { certificate: 'certificatekeypair' },
  defaults: {
    base_dn: 'DC=ldap,DC=example,DC=com',
    certificate: null,
    tls_server_name: '',
    uid_start_number: 2_000,
    gid_start_number: 4_000,
    search_mode: 'direct',
    bind_mode: 'direct',
    mfa_support: true,
  },
})

const numberRow = (field: string): Row => [
  field,
  [0, 2_000, 2_147_483_647, -2_147_483_648],
  [
    [2_147_483_648, 'Must be at most 2147483647.'],
    [-2_147_483_649, 'Must be at least -2147483648.'],
    [1.5, 'Must be a whole number.'],
    [1e300, 'Must be'],
    ['2000', 'Must be a whole number.'],
    [null, 'Must be a whole number.'],
  ],
]

testFields(ldap, [
  [
    'base_dn',
    ['DC=ldap,DC=example,DC=com', 'ou=people,dc=example'],
    [
      ['', 'Must be a distinguished name such as DC=ldap,DC=example,DC=com.'],
      ['ldap.example.com', 'Must be a distinguished name'],
      [null, 'Must be text.'],
    ],
  ],
  referenceRow('certificate'),
  textRow('tls_server_name', 255),
  numberRow('uid_start_number'),
  numberRow('gid_start_number'),
  choiceRow('search_mode', 'direct', 'cached'),
  choiceRow('bind_mode', 'direct', 'cached'),
  booleanRow('mfa_support'),
])

test('it has no launch URL', () => {
  expect(ldap.provider.launchUrl({})).toBeNull()
})
