import { expect, test } from 'vitest'
import radius from '../../../src/models/providers/radius.ts'
import { booleanRow, testFields, testKind, textRow } from '../check.ts'

testKind(radius, {
  verboseName: 'Radius Provider',
  component: 'service-provider-radius-form',
  required: [],
  secrets: ['shared_secret'],
  generated: { shared_secret: 128 },
  defaults: { client_networks: '0.0.0.0/0, ::/0', mfa_support: true },
})

testFields(radius, [
  [
    'client_networks',
    ['0.0.0.0/0, ::/0', '10.0.0.0/8,2001:db8::/32'],
    [
      ['', 'Must be networks such as 10.0.0.0/8'],
      ['10.0.0.0/8, office', '"office" is none'],
      ['10.0.0.0/40', 'Must be networks'],
      [null, 'Must be text.'],
    ],
  ],
  textRow('shared_secret', 255, { filled: true }),
  booleanRow('mfa_support'),
])

test('it has no launch URL', () => {
  expect(radius.provider.launchUrl({})).toBeNull()
})
