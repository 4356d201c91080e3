import { randomUUID } from 'node:crypto'
import { describe, test } from 'vitest'
import { bench } from '../apply/engine.ts'
import { absent, groupEntry, people, roleEntry, userEntry } from './people.ts'

/** Names by which rights are given, moves in the tree of groups, and influence on users who hold more. */

const there = await bench()
const crowd = people(there)

const writer = ['change_group', 'rename_group', 'change_role', 'delete_role', 'disable_group_superuser']
const superuser = 'has superuser rights, and the caller has not'
const viewUser = 'has the permission view_user, and the caller has not'

describe('a name by which rights are given', () => {
  const name = () => ({ name: randomUUID() })

  test('of a group changes only for a caller who holds everything that the group grants', async () => {
    const ada = await crowd.user({ permissions: writer })
    const deleter = await crowd.user({ permissions: [...writer, 'delete_group', 'assign_role'] })
    const withRole = await crowd.group({ permissions: ['view_user'] })
    const flagged = await crowd.group({ superuser: true })
    for (const group of [withRole, await crowd.group({ parent: withRole })])
      await crowd.refused(ada, groupEntry(group, name()), `the group ${viewUser}`)
    for (const group of [flagged, await crowd.group({ parent: flagged })])
      await crowd.refused(ada, groupEntry(group, name()), `the group ${superuser}`)
    // What it grants before the request counts: not what the request leaves of it.
    await crowd.refused(ada, groupEntry(flagged, { ...name(), is_superuser: false }), superuser)
    const row = await there.db.group.findUniqueOrThrow({ where: { pk: withRole } })
    const byName = { model: 'service_core.group', identifiers: { name: row.name }, attrs: name() }
    await crowd.refused(ada, byName, viewUser)
    for (const group of [withRole, flagged]) await crowd.refused(deleter, absent(groupEntry(group)), 'the group has')
    await crowd.allowed(ada, groupEntry(await crowd.group(), name()))
    const bea = await crowd.user({ permissions: [...writer, 'view_user'] })
    await crowd.allowed(bea, groupEntry(withRole, name()))
    await crowd.allowed(await crowd.user({ superuser: true }), groupEntry(flagged, name()))
  })

  test('of a group changes only for a caller with rename_group, by whatever identifiers, and nothing else needs it', async () => {
    const permissions = ['add_group', 'change_group', 'delete_group', 'view_group']
    const ada = await crowd.user({ permissions })
    const renamer = await crowd.user({ permissions: [...permissions, 'rename_group'] })
    const group = await crowd.group()
    const called = (await there.db.group.findUniqueOrThrow({ where: { pk: group } })).name
    const byName = { model: 'service_core.group', identifiers: { name: called } }
    const why = 'the permission rename_group is missing'
    await crowd.refused(ada, groupEntry(group, name()), why)
    await crowd.refused(ada, groupEntry(group, { name: called.toUpperCase() }), why)
    await crowd.refused(ada, { ...byName, attrs: name() }, why)
    await crowd.refused(ada, { ...byName, identifiers: name(), was: called }, why)
    await crowd.allowed(ada, groupEntry(group, { name: called, attributes: { a: 1 } }))
    await crowd.allowed(ada, { ...byName, attrs: { attributes: { a: 2 } } })
    await crowd.allowed(ada, { model: 'service_core.group', identifiers: name() })
    await crowd.allowed(renamer, groupEntry(group, name()))
    await crowd.allowed(ada, absent(groupEntry(group)))
  })

  test('of a role changes only for a caller who holds all that is in it', async () => {
    const ada = await crowd.user({ permissions: writer })
    const role = await crowd.role(['view_user'])
    await crowd.refused(ada, roleEntry(role, name()), `the role ${viewUser}`)
    await crowd.allowed(ada, roleEntry(await crowd.role([]), name()))
    await crowd.allowed(await crowd.user({ permissions: [...writer, 'view_user'] }), roleEntry(role, name()))
  })
})

test('the attributes of a group change only for a caller who holds everything that the group grants', async () => {
  const ada = await crowd.user({ permissions: writer })
  const withRole = await crowd.group({ permissions: ['view_user'] })
  const flagged = await crowd.group({ superuser: true })
  const change = { attributes: { a: 1 } }
  for (const group of [withRole, await crowd.group({ parent: withRole })])
    await crowd.refused(ada, groupEntry(group, change), `the group ${viewUser}`)
  for (const group of [flagged, await crowd.group({ parent: flagged })])
    await crowd.refused(ada, groupEntry(group, change), `the group ${superuser}`)
  // What it grants before the request counts: not what the request leaves of it.
  await crowd.refused(ada, groupEntry(flagged, { ...change, is_superuser: false }), superuser)
  await crowd.allowed(ada, groupEntry(await crowd.group(), change))
  await crowd.allowed(await crowd.user({ permissions: [...writer, 'view_user'] }), groupEntry(withRole, change))
  await crowd.allowed(await crowd.user({ superuser: true }), groupEntry(flagged, change))
})

describe('a move in the tree', () => {
  const plain = ['change_group', 'view_user']

  test('needs assign_role when roles are on the old or the new side, even without permissions in them', async () => {
    const role = await crowd.role([])
    const withRole = await crowd.group({ permissions: ['view_user'] })
    const withEmpty = await crowd.group()
    await there.db.groupRole.create({ data: { groupPk: withEmpty, rolePk: role } })
    const bare = await crowd.group()
    const ada = await crowd.user({ permissions: plain })
    const bea = await crowd.user({ permissions: [...plain, 'assign_role'] })
    for (const side of [withRole, await crowd.group({ parent: withRole }), withEmpty]) {
      const moves = [
        [await crowd.group(), side],
        [await crowd.group({ parent: bare }), side],
        [await crowd.group({ parent: side }), bare],
        [await crowd.group({ parent: side }), null],
      ] as const
      for (const [group, parent] of moves) {
        await crowd.refused(ada, groupEntry(group, { parent }), 'the permission assign_role is missing')
        await crowd.allowed(bea, groupEntry(group, { parent }))
      }
    }
    await crowd.allowed(ada, groupEntry(await crowd.group({ parent: bare }), { parent: await crowd.group() }))
    await crowd.allowed(ada, groupEntry(await crowd.group({ parent: withRole }), { attributes: { a: 1 } }))
  })

  test('needs the permissions of the flag when the flag is on a side', async () => {
    const flagged = await crowd.group({ superuser: true })
    const other = await crowd.group({ superuser: true })
    const ada = await crowd.user({ permissions: [...plain, 'enable_group_superuser'] })
    const bea = await crowd.user({ permissions: [...plain, 'disable_group_superuser'] })
    const both = await crowd.user({ permissions: [...plain, 'enable_group_superuser', 'disable_group_superuser'] })
    const across = await crowd.group({ parent: flagged })
    await crowd.refused(ada, groupEntry(across, { parent: other }), 'the permission disable_group_superuser')
    await crowd.refused(bea, groupEntry(across, { parent: other }), 'the permission enable_group_superuser')
    await crowd.allowed(both, groupEntry(across, { parent: other }))
  })

  test('needs add_user_to_group when members hang on the branch', async () => {
    const bob = await crowd.user()
    const ada = await crowd.user({ permissions: plain })
    const bea = await crowd.user({ permissions: [...plain, 'add_user_to_group'] })
    const branch = await crowd.group()
    await crowd.group({ parent: await crowd.group({ parent: branch }), users: [bob.pk] })
    const parent = await crowd.group()
    await crowd.refused(ada, groupEntry(branch, { parent }), 'the permission add_user_to_group is missing')
    await crowd.allowed(bea, groupEntry(branch, { parent }))
  })
})

describe('add_user_to_group works only on users all of whose rights the caller holds', () => {
  const adder = ['change_group', 'change_user', 'delete_group', 'add_user_to_group']

  test('to add, to remove and to move them', async () => {
    const ada = await crowd.user({ permissions: adder })
    const bea = await crowd.user({ permissions: [...adder, 'view_user'] })
    const strong = await crowd.user({ permissions: ['view_user'] })
    const root = await crowd.user({ superuser: true })
    for (const [user, why] of [
      [strong, viewUser],
      [root, superuser],
    ] as const) {
      const [empty, full] = [await crowd.group(), await crowd.group({ users: [user.pk] })]
      await crowd.refused(ada, groupEntry(empty, { users: [ada.pk, user.pk] }), `one of the users ${why}`)
      await crowd.refused(ada, groupEntry(full, { users: [] }), `one of the users ${why}`)
      await crowd.refused(ada, absent(groupEntry(full)), `one of the users ${why}`)
      const above = await crowd.group()
      await crowd.group({ parent: above, users: [user.pk] })
      for (const branch of [full, above])
        await crowd.refused(ada, groupEntry(branch, { parent: empty }), `one of the users ${why}`)
      await crowd.refused(ada, userEntry(user.pk, { groups: [user.own, full, empty] }), `that user ${why}`)
      await crowd.refused(ada, userEntry(user.pk, { groups: [user.own] }), `that user ${why}`)
      // Members that stay do not count.
      await crowd.allowed(ada, groupEntry(full, { users: [user.pk, ada.pk] }))
    }
    const [empty, full] = [await crowd.group(), await crowd.group({ users: [strong.pk] })]
    await crowd.allowed(bea, groupEntry(empty, { users: [ada.pk, strong.pk] }))
    await crowd.allowed(bea, groupEntry(full, { parent: empty }))
    await crowd.allowed(bea, groupEntry(full, { users: [] }))
  })

  test('while impersonating, of both users', async () => {
    const effective = await crowd.user({ permissions: [...adder, 'view_user'] })
    const real = await crowd.user({ permissions: ['impersonate', ...adder] })
    const strong = await crowd.user({ permissions: ['view_user'] })
    const [bob, empty] = [await crowd.user(), await crowd.group()]
    const acting = { ...effective, impersonator: real }
    await crowd.refused(acting, groupEntry(empty, { users: [strong.pk] }), `one of the users ${viewUser}`)
    await crowd.refused(acting, groupEntry(empty, { users: [effective.pk] }), `one of the users ${viewUser}`)
    await crowd.allowed(acting, groupEntry(empty, { users: [bob.pk] }))
  })
})
