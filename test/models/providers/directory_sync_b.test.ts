import { expect, test } from 'vitest'
import directorySyncB from '../../../src/models/providers/directory_sync_b.ts'
import { booleanRow, choiceRow, keysRow, referenceRow, testFields, testKind, textRow } from '../check.ts'

testKind(directorySyncB, {
  verboseName: 'Directory Sync B Provider',
  component: 'service-provider-directory-sync-b-form',
  backchannel: 'only',
  flows: false,
  required: ['client_id', 'client_secret', 'tenant_id'],
  secrets: ['client_secret'],
  references: { property_mappings_group: 'propertymapping', filter_group: 'group' },
  defaults: {
    property_mappings_group: [],
    exclude_users_service_account: false,
    filter_group: null,
    user_delete_action: 'delete',
    group_delete_action: 'delete',
  },
})

testFields(directorySyncB, [
  keysRow('property_mappings_group'),
  textRow('client_id', 255, { filled: true }),
  textRow('client_secret', 2_000, { filled: true }),
  textRow('tenant_id', 255, { filled: true }),
  booleanRow('exclude_users_service_account'),
  referenceRow('filter_group'),
  choiceRow('user_delete_action', 'do_nothing', 'delete', 'suspend'),
  choiceRow('group_delete_action', 'do_nothing', 'delete', 'suspend'),
])

test('it has no launch URL', () => {
  expect(directorySyncB.provider.launchUrl({})).toBeNull()
})
