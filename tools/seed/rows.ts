import { applicationTables, type Portfolio } from './applications.ts'
import { consents, devices, memberships, tokens } from './belongings.ts'
import type { Organisation } from './organisation.ts'
import { people, userRow } from './people.ts'
import type { Engine, Keys, Row, Table } from './table.ts'

/**
 * All tables, each after those that it refers to. Groups come last, because a new group below another locks the tree of
 * groups until the commit.
 */
export const tables = (organisation: Organisation, engine: Engine, portfolio: Portfolio, keys: Keys): Table[] => [
  ...userTables(organisation, engine, keys),
  ...applicationTables(organisation, engine, portfolio, keys),
  ofUsers(organisation, keys, {
    name: 'user_consents',
    columns: ['application_pk', 'permissions', 'expires', 'expiring'],
    rows: consents(
      organisation,
      portfolio.applications.map(({ pk }) => pk),
    ),
  }),
  ...groupTables(organisation, keys),
]

/** A table whose rows each belong to a user. */
const ofUsers = ({ size }: Organisation, keys: Keys, { name, columns, rows }: Omit<Table, 'items'>): Table => ({
  name,
  columns: ['user_pk', ...columns],
  items: size.users,
  rows: (number) => rows(number).map((row) => ({ user_pk: keys.users[number], ...row })),
})

function userTables(organisation: Organisation, { keyring }: Engine, keys: Keys): Table[] {
  const persons = people(organisation)
  const described = ['username', 'name', 'email', 'is_active', 'last_login', 'attributes', 'path', 'type']
  return [
    {
      name: 'users',
      columns: ['pk', 'uuid', ...described, 'created_at'],
      items: organisation.size.users,
      rows: (number) => [{ pk: keys.users[number], ...userRow(organisation, number, persons(number)) }],
    },
    ofUsers(organisation, keys, {
      name: 'totp_devices',
      columns: ['uuid', 'name', 'confirmed', 'sealed_key', 'created_at'],
      rows: devices(organisation, persons, keyring.seal),
    }),
    ofUsers(organisation, keys, {
      name: 'tokens',
      columns: [
        'pk',
        'identifier',
        'intent',
        'description',
        'expires',
        'expiring',
        'key_hash',
        'checksum_key',
        'created_at',
      ],
      rows: tokens(organisation, persons, keyring),
    }),
  ]
}

function groupTables(organisation: Organisation, keys: Keys): Table[] {
  const { groups, roles } = organisation
  const groupPk = (index: number | null) => (index === null ? null : (groups[index]?.pk ?? null))
  const groupsOf = memberships(organisation, people(organisation))
  const each =
    <Item>(items: readonly Item[], rowsOf: (item: Item) => Row[]) =>
    (index: number): Row[] =>
      items.slice(index, index + 1).flatMap(rowsOf)
  return [
    {
      name: 'roles',
      columns: ['pk', 'name', 'permissions'],
      items: roles.length,
      rows: each(roles, ({ pk, name, permissions }) => [{ pk, name, permissions }]),
    },
    {
      // Parents come first: a trigger reads the ancestors of a new group.
      name: 'groups',
      columns: ['pk', 'name', 'is_superuser', 'parent', 'attributes', 'settings_by_superuser'],
      items: groups.length,
      rows: each(groups, ({ pk, name, isSuperuser, parent, attributes }) => [
        {
          ...{ pk, name, is_superuser: isSuperuser, parent: groupPk(parent) },
          ...{ attributes, settings_by_superuser: true },
        },
      ]),
    },
    {
      name: 'group_roles',
      columns: ['group_pk', 'role_pk'],
      items: groups.length,
      rows: each(groups, (group) => group.roles.map((role) => ({ group_pk: group.pk, role_pk: roles[role]?.pk }))),
    },
    ofUsers(organisation, keys, {
      name: 'memberships',
      columns: ['group_pk'],
      rows: (number) => groupsOf(number).map((group) => ({ group_pk: groupPk(group) })),
    }),
  ]
}
