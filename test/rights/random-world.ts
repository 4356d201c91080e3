import { randomUUID } from 'node:crypto'
import type { Db } from '../../src/db/client.ts'
import { sha256, uuid7 } from '../../src/ids.ts'
import { newSecret } from '../../src/token-secret.ts'
import { testKeys } from '../support/engine.ts'
import { execute, rows, sql } from '../support/sql.ts'
import { boundTo } from './oracle.ts'

/** The users, groups, roles and tokens that random calls start from, inserted without the engine. */

/** A delegate, with the keys of tokens that it has: its own, and those that it viewed. */
export type Hands = {
  readonly pk: number
  readonly group: string
  readonly role: string
  readonly own: Key
  readonly viewed: Key[]
}
export type Key = { readonly secret: string; readonly token: string }

export type World = {
  readonly delegates: readonly Hands[]
  /** Groups whose members the operator promotes and demotes. */
  readonly promoted: readonly { readonly group: string; readonly role: string }[]
}

const structure = [
  'add_group',
  'change_group',
  'rename_group',
  'delete_group',
  'add_user',
  'change_user',
  'rename_user',
  'delete_user',
  'add_role',
]
const links = ['assign_role', 'add_user_to_group', 'enable_group_superuser', 'disable_group_superuser']
const powers = [...structure, 'change_role', 'delete_role', ...links]
const tokens = ['add_token', 'change_token', 'delete_token', 'view_token_key']
const crud = ['application', 'scimprovider'].flatMap((each) =>
  ['view', 'add', 'change', 'delete'].map((action) => `${action}_${each}`),
)
const objects = [...crud, 'read_scimprovider_secrets']

const all = [...powers, ...tokens, ...objects, 'impersonate']
const but = (...lacked: readonly string[]) => all.filter((power) => !lacked.includes(power))

/** What each delegate holds. Each lacks something that another one has. */
const mandates = [
  [...but(...objects, 'enable_group_superuser', 'view_token_key', 'rename_user'), 'view_user'],
  [...but('impersonate', 'change_token', 'delete_token', 'rename_group'), 'view_group'],
  but('impersonate', 'add_user_to_group', 'disable_group_superuser'),
  but('add_token', 'change_token', 'assign_role', 'add_application', 'change_scimprovider'),
] as const

/** The owners for whose applications and providers each delegate holds its permissions; none: for all. */
const bounds: readonly (readonly string[])[] = [[], ['team-one'], ['team-two', 'team-three'], []]
export const labels = [null, 'team-one', 'team-two', 'team-three'] as const

/** Permissions that some delegates lack, or all. */
export const treasures = [
  ...['view_user', 'view_group', 'view_role', 'view_token', 'impersonate', 'change_application'],
  ...['read_scimprovider_secrets', 'record_sign_in'],
]

type Start = {
  readonly permissions: readonly string[]
  readonly owners?: readonly string[]
  readonly superuser?: true
  readonly inactive?: true
}
const others: readonly Start[] = [
  ...[{ permissions: [] }, { permissions: [] }, { permissions: ['view_user'] }, { permissions: ['view_token'] }],
  ...[{ permissions: [], superuser: true } as const, { permissions: [], superuser: true, inactive: true } as const],
]

export async function world(db: Db): Promise<World> {
  await execute(
    db,
    sql`DO $$ BEGIN
    DELETE FROM applications; DELETE FROM providers; DELETE FROM tokens; DELETE FROM memberships;
    DELETE FROM group_roles; UPDATE groups SET parent = NULL WHERE parent IS NOT NULL;
    DELETE FROM groups; DELETE FROM roles; DELETE FROM users; END $$`,
  )
  const people: readonly Start[] = [
    ...mandates.map((permissions, index) => ({ permissions, owners: bounds[index] ?? [] })),
    ...others,
  ]
  const users = await rows<{ pk: number }>(
    db,
    sql`INSERT INTO users (uuid, username, is_active) SELECT gen_random_uuid(), gen_random_uuid()::text, active
      FROM unnest(${people.map(({ inactive }) => inactive !== true)}::boolean[]) active RETURNING pk`,
  )
  const own = people.map((start, index) => ({ ...start, pk: users[index]?.pk ?? 0, group: uuid7(), role: uuid7() }))
  const [flagged, rich, middle] = [uuid7(), uuid7(), uuid7()]
  const [weak = 0, second = 0, viewer = 0] = own.slice(mandates.length).map(({ pk }) => pk)
  const groups = [
    ...own.map(({ group, superuser = false }) => ({ pk: group, superuser })),
    ...[
      { pk: flagged, superuser: true },
      { pk: rich, permissions: ['view_user'], users: [weak, viewer] },
    ],
    ...[{ pk: uuid7(), parent: flagged }, { pk: uuid7(), parent: rich, users: [second] }, { pk: uuid7() }],
    ...[
      { pk: middle, permissions: ['view_group'] },
      { pk: uuid7(), parent: middle, users: [weak] },
    ],
    ...[
      { pk: uuid7(), users: [weak, second] },
      { pk: uuid7(), superuser: true },
      { pk: uuid7(), parent: rich },
    ],
  ].map((group) => ({ superuser: false, parent: null, permissions: [] as string[], users: [] as number[], ...group }))
  const shared = groups.flatMap(({ pk, permissions }) => (permissions.length > 0 ? [{ pk, permissions }] : []))
  const roles = [
    ...own.map(({ role, group, permissions, owners = [] }) => ({ pk: role, group, permissions, owners })),
    ...shared.map(({ pk, permissions }) => ({ pk: uuid7(), group: pk, permissions, owners: [] })),
    ...[[], ['view_user'], ['assign_role'], ['view_role']].map((permissions) => ({
      pk: uuid7(),
      group: null,
      permissions,
      owners: [],
    })),
  ]
  const members = [
    ...own.map(({ group, pk }) => ({ group, user: pk })),
    ...groups.flatMap(({ pk, users: joined }) => joined.map((user) => ({ group: pk, user }))),
  ]
  const keys = own.map(({ pk }) => ({ secret: newSecret('api', testKeys), token: uuid7(), user: pk }))
  // Each delegate has made and viewed tokens for users who hold nothing yet, or little.
  const limited = mandates.flatMap((permissions, by) =>
    [weak, second, viewer].map((user) => ({
      secret: newSecret('api', testKeys),
      token: uuid7(),
      user,
      by,
      ceiling: boundTo(permissions, bounds[by] ?? []),
    })),
  )
  await insertObjects(db)
  await insert(db, { groups, roles, members, keys: [...keys.map((key) => ({ ...key, ceiling: null })), ...limited] })
  return {
    delegates: keys.slice(0, mandates.length).map(({ secret, token, user: pk }, index) => {
      const { group, role } = own[index] ?? { group: '', role: '' }
      return { pk, group, role, own: { secret, token }, viewed: limited.filter(({ by }) => by === index) }
    }),
    promoted: own.slice(mandates.length, mandates.length + 3).map(({ group, role }) => ({ group, role })),
  }
}

type Inserted = {
  groups: readonly { pk: string; superuser: boolean; parent: string | null }[]
  roles: readonly { pk: string; group: string | null; permissions: readonly string[]; owners: readonly string[] }[]
  members: readonly { group: string; user: number }[]
  keys: readonly { secret: string; token: string; user: number; ceiling: readonly string[] | null }[]
}

async function insert(db: Db, { groups, roles, members, keys }: Inserted): Promise<void> {
  const json = (items: readonly object[]) => JSON.stringify(items)
  // Parents first: a group knows its ancestors from its insert.
  await execute(
    db,
    sql`INSERT INTO groups (pk, name, is_superuser, parent) SELECT pk, pk::text, superuser, parent
      FROM jsonb_to_recordset(${json(groups)}::jsonb) AS g(pk uuid, superuser boolean, parent uuid)`,
  )
  await execute(
    db,
    sql`WITH made AS (INSERT INTO roles (pk, name, permissions, owners) SELECT pk, pk::text, permissions, owners
        FROM jsonb_to_recordset(${json(roles)}::jsonb) AS r(pk uuid, permissions text[], owners text[]))
      INSERT INTO memberships (group_pk, user_pk) SELECT "group", "user"
        FROM jsonb_to_recordset(${json(members)}::jsonb) AS m("group" uuid, "user" integer)`,
  )
  await execute(
    db,
    sql`INSERT INTO group_roles (group_pk, role_pk) SELECT "group", pk
      FROM jsonb_to_recordset(${json(roles.filter(({ group }) => group !== null))}::jsonb) AS r("group" uuid, pk uuid)`,
  )
  const made = keys.map(({ token, user, secret, ceiling }) => ({
    ...{ token, user, ceiling, identifier: randomUUID(), hash: sha256(secret).toString('hex') },
  }))
  await execute(
    db,
    sql`INSERT INTO tokens (pk, identifier, user_pk, expiring, key_hash, checksum_key, ceiling)
      SELECT token, identifier, "user", false, decode(hash, 'hex'), ${testKeys.ids[0]}, ceiling
      FROM jsonb_to_recordset(${json(made)}::jsonb)
        AS t(token uuid, identifier text, "user" integer, hash text, ceiling jsonb)`,
  )
}

/** Each owner, and none, has two applications, one of them with a provider, and another provider. */
async function insertObjects(db: Db): Promise<void> {
  const made = [...labels, ...labels].map((owner, index) => ({ owner, pk: uuid7(), claims: index < labels.length }))
  await execute(
    db,
    sql`WITH made AS (SELECT * FROM jsonb_to_recordset(${JSON.stringify(made)}::jsonb) AS m(owner text, pk uuid, claims boolean)),
      apps AS (INSERT INTO applications (pk, name, slug, owner) SELECT pk, 'app ' || gen_random_uuid(), pk::text, owner FROM made RETURNING pk),
      provided AS (INSERT INTO providers (uuid, kind, name, owner, settings)
        SELECT pk, 'scim', 'scim ' || gen_random_uuid(), owner, '{"url": "https://example.com/scim"}' FROM made RETURNING pk, uuid)
      INSERT INTO backchannel_providers (application_pk, provider_pk)
        SELECT apps.pk, provided.pk FROM made JOIN apps USING (pk) JOIN provided ON provided.uuid = made.pk WHERE claims`,
  )
}

/** The operator promotes or demotes users, or gives the delegates back what they took from each other. */
export async function operate(db: Db, { delegates, promoted }: World, pick: Pick): Promise<void> {
  if (pick([true, false])) {
    const { group, role } = pick(promoted)
    const permissions = pick([[], [pick(treasures)], [...treasures], [...pick(mandates)]])
    const own = delegates.map(({ pk }) => pk)
    await execute(db, sql`DELETE FROM memberships WHERE group_pk = ${group}::uuid AND user_pk = ANY(${own}::integer[])`)
    await execute(db, sql`UPDATE roles SET permissions = ${permissions}, owners = '{}' WHERE pk = ${role}`)
    await execute(db, sql`UPDATE groups SET is_superuser = ${pick([true, false, false])} WHERE pk = ${group}`)
    return
  }
  for (const [index, delegate] of delegates.entries())
    await restore(db, delegate, { permissions: [...(mandates[index] ?? [])], owners: [...(bounds[index] ?? [])] })
}

/** A delegate who was deleted stays so. */
async function restore(
  db: Db,
  { pk, group, role, own }: Hands,
  { permissions, owners }: { permissions: string[]; owners: string[] },
): Promise<void> {
  const hash = sha256(own.secret).toString('hex')
  await execute(
    db,
    sql`WITH alive AS (UPDATE users SET is_active = true WHERE pk = ${pk} RETURNING pk),
      filled AS (INSERT INTO roles (pk, name, permissions, owners)
        SELECT ${role}::uuid, ${randomUUID()}, ${permissions}, ${owners} FROM alive
        ON CONFLICT (pk) DO UPDATE SET permissions = excluded.permissions, owners = excluded.owners),
      made AS (INSERT INTO groups (pk, name, is_superuser) SELECT ${group}::uuid, ${randomUUID()}, false FROM alive
        ON CONFLICT (pk) DO UPDATE SET is_superuser = false, parent = NULL)
      INSERT INTO tokens (pk, identifier, user_pk, expiring, key_hash, checksum_key)
        SELECT ${own.token}::uuid, ${randomUUID()}, pk, false, decode(${hash}, 'hex'), ${testKeys.ids[0]} FROM alive
        ON CONFLICT (pk) DO UPDATE SET expiring = false, expires = NULL`,
  )
  await execute(
    db,
    sql`WITH joined AS (INSERT INTO memberships (group_pk, user_pk) SELECT ${group}::uuid, pk FROM users
        WHERE pk = ${pk} ON CONFLICT DO NOTHING)
      INSERT INTO group_roles (group_pk, role_pk) SELECT ${group}::uuid, ${role}::uuid FROM users
        WHERE pk = ${pk} ON CONFLICT DO NOTHING`,
  )
}

export type Pick = <Item>(from: readonly Item[]) => Item
