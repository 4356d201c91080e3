import { expect, test } from 'vitest'
import scim from '../../../src/models/providers/scim.ts'
import { booleanRow, httpUrlRow, keysRow, referenceRow, testFields, testKind, textRow } from '../check.ts'

testKind(scim, {
  verboseName: 'SCIM Provider',
  component: 'service-provider-scim-form',
  backchannel: 'only',
  flows: false,
  required: ['url', 'token'],
  secrets: ['token'],
  references: { property_mappings_group: 'propertymapping', filter_group: 'group' },
  defaults: {
    property_mappings_group: [],
    verify_certificates: true,
    exclude_users_service_account: false,
    filter_group: null,
  },
})

testFields(scim, [
  keysRow('property_mappings_group'),
  httpUrlRow('url'),
  textRow('token', 8_192, { filled: true }),
  booleanRow('verify_certificates'),
  booleanRow('exclude_users_service_account'),
  referenceRow('filter_group'),
])

test('it has no launch URL', () => {
  expect(scim.provider.launchUrl({})).toBeNull()
})
