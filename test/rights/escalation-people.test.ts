import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { Actor } from '../../src/permissions.ts'
import { bench } from '../apply/engine.ts'
import { aUser, rows, sql } from '../support/kit.ts'
import { absent, groupEntry, people, roleEntry, userEntry } from './people.ts'

/** Users, roles and devices. */

const there = await bench()
const crowd = people(there)

const writer = ['add_user', 'change_user', 'delete_user'] as const
const superuserToo = 'that user has superuser rights, and the caller has not'

describe("a user's groups", () => {
  test('need add_user_to_group to join', async () => {
    const group = await crowd.group()
    const ada = await crowd.user({ permissions: writer })
    await crowd.refused(ada, userEntry(ada.pk, { groups: [ada.own, group] }), 'the permission add_user_to_group')
    await crowd.refused(ada, userEntry(null, { groups: [group] }), 'the permission add_user_to_group')
    const bea = await crowd.user({ permissions: [...writer, 'add_user_to_group'] })
    await crowd.allowed(bea, userEntry(bea.pk, { groups: [bea.own, group] }))
    await crowd.allowed(bea, userEntry(null, { groups: [group] }))
  })

  test('are joined only by a caller who holds their rights', async () => {
    const ada = await crowd.user({ permissions: [...writer, 'add_user_to_group'] })
    const root = await crowd.group({ superuser: true })
    const cases = [
      [root, 'the group has superuser rights'],
      [await crowd.group({ parent: root }), 'the group has superuser rights'],
      [await crowd.group({ permissions: ['view_group'] }), 'the group has the permission view_group'],
      [await crowd.group({ parent: await crowd.group({ permissions: ['view_group'] }) }), 'the permission view_group'],
    ] as const
    for (const [group, why] of cases) {
      await crowd.refused(ada, userEntry(ada.pk, { groups: [ada.own, group] }), why)
      await crowd.refused(ada, userEntry(null, { groups: [group] }), why)
    }
  })
})

describe('a user with more rights than the caller', () => {
  test('cannot be changed in any field, or deleted', async () => {
    const ada = await crowd.user({ permissions: writer })
    const root = await crowd.user({ superuser: true })
    const bob = await crowd.user({ permissions: ['view_group'] })
    for (const change of [
      { username: randomUUID() },
      { email: 'ada@example.com' },
      { is_active: false },
      { attributes: { settings: {} } },
      { name: 'Bob' },
      { path: 'users/external' },
      { type: 'external' },
    ]) {
      await crowd.refused(ada, userEntry(root.pk, change), superuserToo)
      await crowd.refused(ada, userEntry(bob.pk, change), 'that user has the permission view_group')
    }
    await crowd.refused(ada, absent(userEntry(root.pk)), superuserToo)
  })

  test('cannot be reactivated (CVE-2025-53942: deactivated users)', async () => {
    const ada = await crowd.user({ permissions: writer })
    const root = await crowd.user({ superuser: true, active: false })
    await crowd.refused(ada, userEntry(root.pk, { is_active: true }), superuserToo)
    const [{ username } = { username: '' }] = await rows<{ username: string }>(
      there.db,
      sql`SELECT username FROM users WHERE pk = ${root.pk}`,
    )
    const byName = aUser(username, { is_active: true })
    await crowd.refused(ada, byName, superuserToo)
    await crowd.allowed(await crowd.user({ superuser: true }), byName)
  })

  test('users with the same or fewer rights, and the caller, can be changed', async () => {
    const ada = await crowd.user({ permissions: [...writer, 'view_group', 'add_user_to_group'] })
    const bob = await crowd.user({ permissions: ['view_group'] })
    await crowd.allowed(ada, userEntry(bob.pk, { email: 'bob@example.com', is_active: false }))
    await crowd.allowed(ada, userEntry(bob.pk, { name: 'Bob', path: 'users/external', type: 'external' }))
    await crowd.allowed(ada, absent(userEntry(bob.pk)))
    await crowd.allowed(ada, userEntry(ada.pk, { email: 'ada@example.com' }))
  })
})

test('a user is renamed only by a caller with rename_user, and so is the caller itself', async () => {
  const ada = await crowd.user({ permissions: [...writer, 'add_user_to_group'] })
  const bob = await crowd.user()
  const rename = (pk: number, username: string = randomUUID()) => userEntry(pk, { username })
  const why = 'the permission rename_user is missing'
  await crowd.refused(ada, rename(bob.pk), why)
  await crowd.refused(ada, rename(ada.pk, 'amira.haddad'), why)
  const byName = { ...aUser('amira.haddad', { name: 'Amira' }), was: ada.username }
  await crowd.refused(ada, byName, why)
  await crowd.refused(ada, rename(ada.pk, ada.username.toUpperCase()), why)
  await crowd.allowed(ada, userEntry(ada.pk, { username: ada.username, name: 'Ada' }))
  await crowd.allowed(ada, userEntry(null, { name: 'New' }))
  const eve = await crowd.user({ permissions: [...writer, 'rename_user'] })
  await crowd.allowed(eve, rename(bob.pk))
  await crowd.allowed(eve, { ...byName, was: eve.username })
  // Those who could not change the user do not rename it.
  await crowd.refused(eve, rename((await crowd.user({ superuser: true })).pk), superuserToo)
  await crowd.allowed(await crowd.user({ superuser: true }), rename(bob.pk))
})

test('only superusers set the name by which a property mapping is managed', async () => {
  const permissions = ['add_propertymapping', 'change_propertymapping', 'delete_propertymapping']
  const ada = await crowd.user({ permissions })
  const root = await crowd.user({ superuser: true })
  const model = 'service_mappings.propertymapping'
  const named = (name: string, attrs: Record<string, unknown> = {}) => ({
    model,
    identifiers: { name, kind: 'oauth2' },
    attrs,
  })
  const why = 'Only a superuser may set this field.'
  await crowd.invalid(ada, named('evil', { managed: 'OpenID scope email' }), 'managed', why)
  await crowd.invalid(
    ada,
    { model, identifiers: { managed: 'evil' }, attrs: { name: 'evil', kind: 'oauth2' } },
    'managed',
    why,
  )
  await crowd.allowed(ada, named('mine', { expression: 'return {}', managed: null }))
  await crowd.invalid(ada, named('mine', { managed: 'mine' }), 'managed', why)
  await crowd.allowed(root, named('mine', { managed: 'theirs' }))
  for (const managed of [null, 'mine']) await crowd.invalid(ada, named('mine', { managed }), 'managed', why)
  await crowd.allowed(ada, named('mine', { managed: 'theirs', expression: 'return 1' }))
  // Nor does who may add one make the name of another ambiguous, by its name or by a kind that is taken with its own.
  const shipped = 'gatewright/oauth2/scope-email'
  for (const kind of ['oauth2', 'proxy'])
    await crowd.invalid(
      ada,
      { model, identifiers: { name: shipped, kind }, attrs: {} },
      'name',
      `"${shipped}" is taken by another property mapping.`,
    )
  await crowd.allowed(ada, absent(named('mine')))
})

test('an admin that a blueprint creates again has no rights (GHSA-rjvp-29xq-f62w)', async () => {
  const ada = await crowd.user({ permissions: writer })
  const admin = aUser('admin')
  await crowd.refused(ada, { ...admin, state: 'absent' }, superuserToo)
  const [{ pk } = { pk: 0 }] = await rows<{ pk: number }>(there.db, sql`SELECT pk FROM users WHERE username = 'admin'`)
  const root = await crowd.user({ superuser: true })
  await there.apply([{ ...admin, state: 'absent' }], root)
  await crowd.allowed(ada, { ...admin, attrs: { email: 'admin@example.com' } })
  const again = await there.db.user.findUniqueOrThrow({
    where: { username: 'admin' },
    include: { memberships: true, tokens: true },
  })
  expect(again).toMatchObject({ memberships: [], tokens: [] })
  expect(again.pk).not.toBe(pk)
})

describe("a role's permissions", () => {
  const maker = ['add_role', 'change_role'] as const

  test('are added only by a caller who holds them', async () => {
    const role = await crowd.role([])
    const ada = await crowd.user({ permissions: [...maker, 'assign_role', 'view_user'] })
    const why = 'the role has the permission view_group, and the caller has not'
    await crowd.refused(ada, roleEntry(role, { permissions: ['view_user', 'view_group'] }), why)
    await crowd.refused(ada, roleEntry(null, { permissions: ['view_group'] }), why)
    await crowd.allowed(ada, roleEntry(role, { permissions: ['view_user'] }))
    await crowd.allowed(ada, roleEntry(null, { permissions: ['view_user'] }))
  })

  test('that are added later are granted to all users with the role: that needs assign_role', async () => {
    const ada = await crowd.user({ permissions: [...maker, 'view_user'] })
    const role = await crowd.role(['view_group'])
    await crowd.refused(ada, roleEntry(role, { permissions: ['view_user'] }), 'the permission assign_role')
  })
})

describe('a TOTP device', () => {
  const keeper = ['add_totpdevice', 'change_totpdevice', 'delete_totpdevice'] as const
  const device = (user: number, attrs: Record<string, unknown> = {}) => ({
    model: 'service_stages_totp.totpdevice',
    identifiers: { name: 'phone', user },
    attrs,
  })

  test('of a user with more rights cannot be created, changed or deleted', async () => {
    const ada = await crowd.user({ permissions: keeper })
    const root = await crowd.user({ superuser: true })
    const why = 'its user has superuser rights, and the caller has not'
    await crowd.refused(ada, device(root.pk), why)
    await there.apply([device(root.pk)])
    await crowd.refused(ada, device(root.pk, { key: 'ABCDEFGHIJKLMNOP' }), why)
    await crowd.refused(ada, absent(device(root.pk)), why)
    await crowd.allowed(ada, device(ada.pk))
    await crowd.refused(ada, device(ada.pk, { user: root.pk }), why)
  })
})

test('while impersonating, a caller delegates only what both users hold, because it outlasts the impersonation', async () => {
  const permissions = ['change_group', 'add_user_to_group', 'view_user']
  const bob = await crowd.user({ permissions })
  const ada = await crowd.user({ permissions: ['impersonate'] })
  const asBob: Actor = { ...bob, impersonator: ada }
  const group = await crowd.group({ permissions: ['view_user'] })
  const join = groupEntry(group, { users: [(await crowd.user()).pk] })
  await crowd.refused(asBob, join, 'the group has the permission view_user, and the caller has not')
  await crowd.refused(asBob, groupEntry(bob.own, { name: 'taken' }), 'and the caller has not')
  const root = await crowd.user({ superuser: true })
  await crowd.allowed({ ...bob, impersonator: root }, join)
})

test('rights that were revoked since the caller was authenticated do not count', async () => {
  const ada = await crowd.user({ permissions: ['change_group', 'add_user_to_group', 'view_user'] })
  const group = await crowd.group({ permissions: ['view_user'] })
  await rows(
    there.db,
    sql`
    UPDATE roles SET permissions = array_remove(permissions, 'view_user')
    WHERE pk IN (SELECT role_pk FROM group_roles WHERE group_pk = ${ada.own})`,
  )
  const why = 'the group has the permission view_user, and the caller has not'
  await crowd.refused(ada, groupEntry(group, { users: [ada.pk] }), why)
})
