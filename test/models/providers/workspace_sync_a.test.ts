import { expect, test } from 'vitest'
import workspaceSyncA from '../../../src/models/providers/workspace_sync_a.ts'
import { booleanRow, choiceRow, keysRow, referenceRow, testFields, testKind, textRow } from '../check.ts'

testKind(workspaceSyncA, {
  verboseName: 'Workspace Sync A Provider',
  component: 'service-provider-workspace-sync-a-form',
  backchannel: 'only',
  flows: false,
  required: ['delegated_subject', 'credentials', 'default_group_email_domain'],
  secrets: ['credentials'],
  references: { property_mappings_group: 'propertymapping', filter_group: 'group' },
  defaults: {
    property_mappings_group: [],
    scopes: [
      'https://www.googleapis.com/auth/admin.directory.user',
      'https://www.googleapis.com/auth/admin.directory.group',
      'https://www.googleapis.com/auth/admin.directory.group.member',
      'https://www.googleapis.com/auth/admin.directory.domain.readonly',
    ].join(','),
    exclude_users_service_account: false,
    filter_group: null,
    user_delete_action: 'delete',
    group_delete_action: 'delete',
  },
})

const longest = `${'a'.repeat(64)}@${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(57)}.com`

testFields(workspaceSyncA, [
  keysRow('property_mappings_group'),
  [
    'delegated_subject',
    ['admin@example.com', longest],
    [
      ['admin', 'Must be an e-mail address such as ada@example.com.'],
      ['', 'Must be an e-mail address'],
      [longest.replace('com', 'comm'), 'Must be at most 254 characters.'],
      [null, 'Must be text.'],
    ],
  ],
  [
    'credentials',
    [{}, { type: 'service_account', private_key: 'x' }, '{"type": "service_account"}'],
    [
      ['{', 'Must be an object.'],
      [[], 'Must be an object.'],
      [null, 'Must be an object.'],
    ],
  ],
  textRow('scopes', 2_000, { filled: true }),
  booleanRow('exclude_users_service_account'),
  referenceRow('filter_group'),
  choiceRow('user_delete_action', 'do_nothing', 'delete', 'suspend'),
  choiceRow('group_delete_action', 'do_nothing', 'delete', 'suspend'),
  [
    'default_group_email_domain',
    ['example.com', 'groups.example.com'],
    [
      ['', 'Must be a domain name such as example.com'],
      ['@example.com', 'Must be a domain name'],
      [null, 'Must be text.'],
    ],
  ],
])

test('it has no launch URL', () => {
  expect(workspaceSyncA.provider.launchUrl({})).toBeNull()
})
