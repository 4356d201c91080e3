import { expect, test } from 'vitest'
import { z } from 'zod'
import application from '../../src/models/application.ts'
import type { Model } from '../../src/models/define.ts'
import flow from '../../src/models/flow.ts'
import group from '../../src/models/group.ts'
import { definePropertyMapping } from '../../src/models/property-mapping.ts'
import { loadRegistry } from '../../src/models/registry.ts'
import user from '../../src/models/user.ts'
import {
  booleanRow,
  choiceRow,
  designations,
  fieldOf,
  keysRow,
  type Row,
  referenceRow,
  testFields,
  textRow,
} from './check.ts'

const registry = await loadRegistry()
const role = registry.byName('service_rbac.role') ?? expect.fail('there is no role')

const required = (model: Model) => [...model.fields.values()].filter((field) => field.required).map(({ name }) => name)

const defaults = (model: Model) =>
  Object.fromEntries(
    [...model.fields.values()].filter((field) => !field.required).map(({ name, initial }) => [name, initial]),
  )

const slugRow: Row = [
  'slug',
  ['grafana', 'A-b_9', 'x'.repeat(255)],
  [
    ['', 'May not be empty.'],
    ['a b', 'May hold only letters, digits, hyphens and underscores.'],
    ['grafäna', 'May hold only letters'],
    ['grafana\n', 'May hold only letters'],
    ['x'.repeat(256), 'Must be at most 255 characters.'],
    [null, 'Must be text.'],
  ],
]

const objectRow = (field: string): Row => [
  field,
  [{}, { a: { b: [1] } }],
  [
    [[], 'Must be an object.'],
    [null, 'Must be an object.'],
    [{ a: '\0' }, 'NUL'],
  ],
]

testFields(application, [
  textRow('name', 255, { filled: true }),
  slugRow,
  [
    'provider',
    [null, 1, 2_147_483_647],
    [
      [0, 'Must be at least 1.'],
      [2_147_483_648, 'Must be at most 2147483647.'],
      ['1', 'Must be a whole number.'],
      [1.5, 'Must be a whole number.'],
    ],
  ],
  [
    'backchannel_providers',
    [[], [1, 2]],
    [
      [[1, 1], 'Must not hold a key twice.'],
      [['x'], '0: Must be a whole number.'],
      [null, 'Must be a list.'],
      [Array.from({ length: 501 }, (_, index) => index + 1), 'Must be at most 500 entries.'],
    ],
  ],
  booleanRow('open_in_new_tab'),
  [
    'meta_launch_url',
    ['', 'https://app.example.com/%(username)s', 'slack://open'],
    [
      ['app.example.com', 'Must be an absolute URL'],
      ['javascript:alert(1)', 'May not be a javascript: URL.'],
      ['data:text/html,x', 'May not be a data: URL.'],
      ['https://app.example.com/%(password)s', 'is no placeholder'],
      [null, 'Must be text.'],
    ],
  ],
  textRow('meta_description', 10_000),
  textRow('meta_publisher', 2_000),
  textRow('group', 255),
  choiceRow('policy_engine_mode', 'all', 'any'),
])

test('an application has the fields, defaults and links of the table', () => {
  expect(required(application)).toEqual(['name', 'slug'])
  expect(defaults(application)).toEqual({
    provider: null,
    backchannel_providers: [],
    open_in_new_tab: false,
    meta_launch_url: '',
    meta_description: '',
    meta_publisher: '',
    policy_engine_mode: 'any',
    group: '',
  })
  expect(fieldOf(application, 'backchannel_providers')).toMatchObject({
    storage: { in: 'link', table: 'backchannel_providers', exclusive: true },
    reference: { many: true },
  })
  expect(application.readOnly).toEqual([
    ...['pk', 'provider_obj', 'backchannel_providers_obj', 'launch_url'],
    ...['owner', 'created_by', 'created_by_name'],
  ])
})

testFields(flow, [
  textRow('name', 255, { filled: true }),
  slugRow,
  textRow('title', 2_000),
  choiceRow('designation', ...designations),
])

testFields(definePropertyMapping(['oauth2']), [
  textRow('name', 255, { filled: true }),
  [
    'kind',
    ['oauth2', 'workspace_sync_a'],
    [
      ['', 'May not be empty.'],
      ['OAuth 2', 'Must be a provider kind such as oauth2.'],
    ],
  ],
  textRow('expression', 100_000),
  [
    'managed',
    [null, 'gatewright/oauth2/scope-email'],
    [
      ['', 'May not be empty.'],
      ['x'.repeat(256), 'Must be at most 255 characters.'],
    ],
  ],
  [
    'scope_name',
    ['', 'openid', 'https://example.com/roles:read'],
    [
      ['openid email', 'Must be a scope'],
      ['"', 'Must be a scope'],
      ['x'.repeat(256), 'Must be at most 255 characters.'],
    ],
  ],
])

testFields(group, [
  textRow('name', 255, { filled: true }),
  booleanRow('is_superuser'),
  referenceRow('parent'),
  [
    'users',
    [[], [1, 2]],
    [
      [[0], '0: Must be at least 1.'],
      [[1, 1], 'twice'],
    ],
  ],
  keysRow('roles'),
  objectRow('attributes'),
])

testFields(user, [
  [
    'username',
    ['ada', 'ada.l+ops@example-1.com', 'x'.repeat(150)],
    [
      ['', 'May hold only letters, digits and @ . + - _ characters.'],
      ['a b', 'May hold only letters'],
      ['x'.repeat(151), 'Must be at most 150 characters.'],
    ],
  ],
  textRow('name', 255),
  [
    'email',
    ['', 'ada@example.com'],
    [
      ['ada', 'Must be an e-mail address'],
      [null, 'Must be text.'],
    ],
  ],
  booleanRow('is_active'),
  objectRow('attributes'),
  [
    'path',
    ['users', 'users/staff'],
    [
      ['/users', 'no slash first'],
      ['', 'Must be a path'],
    ],
  ],
  choiceRow('type', 'external', 'internal', 'internal_service_account', 'service_account'),
  keysRow('groups'),
])

test('groups and users have the defaults of the decisions', () => {
  expect(required(group)).toEqual(['name'])
  expect(defaults(group)).toEqual({ is_superuser: false, parent: null, users: [], roles: [], attributes: {} })
  expect(required(user)).toEqual(['username'])
  expect(defaults(user)).toEqual({
    name: '',
    email: '',
    is_active: true,
    attributes: {},
    path: 'users',
    type: 'internal',
    groups: [],
  })
})

test('free-form objects are stored as JSON', () => {
  expect(fieldOf(group, 'attributes').storage).toEqual({ in: 'column', column: 'attributes', json: true })
  expect(fieldOf(user, 'attributes').storage).toEqual({ in: 'column', column: 'attributes', json: true })
})

testFields(role, [
  textRow('name', 255, { filled: true }),
  [
    'permissions',
    [[], ['view_group', 'add_oauth2provider', 'impersonate', 'view_totpdevice']],
    [
      [['view_grop'], '0: Unknown permission. Did you mean view_group?'],
      [['fly'], '0: Unknown permission.'],
      [['view_group', 'view_group'], 'Must not hold a permission twice.'],
      ['view_group', 'Must be a list.'],
    ],
  ],
])

test('a role stores its permissions as a list of texts', () => {
  expect(fieldOf(role, 'permissions').storage).toEqual({ in: 'column', column: 'permissions', json: false })
})

test.each([group, user])('attributes of a $displayName are limited, because lists repeat them', ({ attrs }) => {
  const attributes = z.record(z.string(), z.unknown()).pipe(attrs.shape.attributes)
  const sized = (length: number) => attributes.safeParse({ a: 'x'.repeat(length - '{"a":""}'.length) })
  expect(sized(16_384).success).toBe(true)
  expect(sized(16_385).error?.issues).toMatchObject([
    { message: 'Must be at most 16384 characters as JSON, with numbers written out.' },
  ])
  expect(attributes.safeParse({ a: Array.from({ length: 60 }, () => 1e308) }).success).toBe(false)
})
