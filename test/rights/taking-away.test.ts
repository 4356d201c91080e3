import { describe, expect, test } from 'vitest'
import { bench } from '../apply/engine.ts'
import { absent, groupEntry, people, roleEntry, userEntry } from './people.ts'

/** Taking rights away needs what giving them needs, by every path: lists, links, flags, moves and deletions. */

const there = await bench()
const crowd = people(there)

const writer = ['add_group', 'change_group', 'delete_group', 'change_user', 'delete_user', 'change_role', 'delete_role']
const keeper = [...writer, 'add_user_to_group', 'assign_role', 'disable_group_superuser', 'enable_group_superuser']
const without = (permission: string) => keeper.filter((each) => each !== permission)

const superuser = 'has superuser rights, and the caller has not'
const viewUser = 'has the permission view_user, and the caller has not'

describe('removing members', () => {
  test('needs add_user_to_group, of the caller too', async () => {
    const ada = await crowd.user({ permissions: without('add_user_to_group') })
    const bob = await crowd.user()
    const group = await crowd.group({ users: [ada.pk, bob.pk] })
    const why = 'the permission add_user_to_group is missing'
    await crowd.refused(ada, groupEntry(group, { users: [ada.pk] }), why)
    await crowd.refused(ada, groupEntry(group, { users: [bob.pk] }), why)
    await crowd.refused(ada, groupEntry(group, { users: [] }), why)
    await crowd.refused(ada, userEntry(bob.pk, { groups: [bob.own] }), why)
    await crowd.refused(ada, userEntry(bob.pk, { groups: [] }), why)
    await crowd.refused(ada, absent(groupEntry(group)), why)
    await crowd.refused(ada, absent(userEntry(bob.pk)), why)
    const bea = await crowd.user({ permissions: keeper })
    await crowd.allowed(ada, groupEntry(group, { users: [ada.pk, bob.pk], attributes: { a: 1 } }))
    await crowd.allowed(bea, userEntry(bob.pk, { groups: [bob.own] }))
    // Ada has fewer rights than bea.
    await crowd.allowed(bea, groupEntry(group, { users: [] }))
    await crowd.allowed(bea, absent(groupEntry(group)))
    await crowd.allowed(bea, absent(userEntry(bob.pk)))
  })

  test('needs a caller who holds everything that the group grants', async () => {
    const ada = await crowd.user({ permissions: keeper })
    const bob = await crowd.user()
    const top = await crowd.group({ permissions: ['view_user'] })
    const low = await crowd.group({ parent: top, users: [bob.pk] })
    const own = await crowd.group({ permissions: ['view_user'], users: [bob.pk] })
    for (const group of [low, own]) {
      await crowd.refused(ada, groupEntry(group, { users: [] }), viewUser)
      await crowd.refused(ada, absent(groupEntry(group)), viewUser)
    }
    await crowd.refused(ada, userEntry(bob.pk, { groups: [] }), viewUser)
    await crowd.refused(ada, absent(userEntry(bob.pk)), viewUser)
    const bea = await crowd.user({ permissions: [...keeper, 'view_user'] })
    await crowd.allowed(bea, groupEntry(low, { users: [] }))
    await crowd.allowed(bea, userEntry(bob.pk, { groups: [] }))
  })

  test('from a group with effective superuser is for superusers only', async () => {
    const ada = await crowd.user({ permissions: keeper })
    const bob = await crowd.user()
    const top = await crowd.group({ superuser: true })
    const low = await crowd.group({ parent: await crowd.group({ parent: top }), users: [bob.pk] })
    const root = await crowd.user({ superuser: true })
    for (const group of [low, root.own]) {
      await crowd.refused(ada, groupEntry(group, { users: [] }), superuser)
      await crowd.refused(ada, absent(groupEntry(group)), 'take superuser rights from its members')
    }
    await crowd.refused(ada, groupEntry(root.own, { users: [ada.pk] }), superuser)
    for (const user of [bob, root]) {
      await crowd.refused(ada, userEntry(user.pk, { groups: [] }), superuser)
      await crowd.refused(ada, absent(userEntry(user.pk)), superuser)
    }
    await crowd.allowed(root, groupEntry(low, { users: [] }))
  })

  test('by a list with errors is reported as those errors', async () => {
    const ada = await crowd.user({ permissions: writer })
    const bob = await crowd.user()
    const group = await crowd.group({ users: [bob.pk] })
    await crowd.invalid(ada, groupEntry(group, { users: 'none' }), 'users', 'Must be a list.')
  })
})

describe('unsetting the flag', () => {
  test('needs disable_group_superuser, and with members, own or of descendants, a superuser', async () => {
    const ada = await crowd.user({ permissions: without('disable_group_superuser') })
    const bea = await crowd.user({ permissions: keeper })
    const bob = await crowd.user()
    const empty = await crowd.group({ superuser: true })
    const own = await crowd.group({ superuser: true, users: [bob.pk] })
    const above = await crowd.group({ superuser: true })
    await crowd.group({ parent: above, users: [bob.pk] })
    const missing = 'the permission disable_group_superuser is missing'
    for (const group of [empty, own, above]) {
      await crowd.refused(ada, groupEntry(group, { is_superuser: false }), missing)
    }
    await crowd.refused(ada, absent(groupEntry(empty)), missing)
    const why = 'only a superuser may take superuser rights from its members'
    for (const group of [own, above]) {
      await crowd.refused(bea, groupEntry(group, { is_superuser: false }), why)
      // Not by removing them in the same request either.
      await crowd.refused(bea, groupEntry(group, { is_superuser: false, users: [] }), why)
    }
    await crowd.allowed(bea, groupEntry(empty, { is_superuser: false }))
    const root = await crowd.user({ superuser: true })
    await crowd.allowed(root, groupEntry(own, { is_superuser: false }))
  })

  test('needs a caller who holds what the group grants besides', async () => {
    const ada = await crowd.user({ permissions: keeper })
    const group = await crowd.group({ superuser: true, permissions: ['view_user'] })
    await crowd.refused(ada, groupEntry(group, { is_superuser: false }), viewUser)
    await crowd.refused(ada, absent(groupEntry(group)), viewUser)
  })
})

describe('unsetting a role', () => {
  test('needs assign_role and everything that the group grants, inherited rights too', async () => {
    const top = await crowd.group({ permissions: ['view_user'] })
    const group = await crowd.group({ parent: top, permissions: ['view_group'] })
    const ada = await crowd.user({ permissions: [...without('assign_role'), 'view_user', 'view_group'] })
    await crowd.refused(ada, groupEntry(group, { roles: [] }), 'the permission assign_role is missing')
    await crowd.refused(ada, absent(groupEntry(group)), 'the permission assign_role is missing')
    const bea = await crowd.user({ permissions: [...keeper, 'view_group'] })
    await crowd.refused(bea, groupEntry(group, { roles: [] }), viewUser)
    await crowd.refused(bea, absent(groupEntry(group)), viewUser)
    const cyd = await crowd.user({ permissions: [...keeper, 'view_group', 'view_user'] })
    await crowd.allowed(cyd, groupEntry(group, { roles: [] }))
    await crowd.allowed(cyd, absent(groupEntry(group)))
  })

  test('or what is in it, or deleting it, needs assign_role and all that is taken', async () => {
    const role = await crowd.role(['view_user', 'view_group'])
    await crowd.group({ users: [] })
    const ada = await crowd.user({ permissions: [...without('assign_role'), 'view_user', 'view_group'] })
    const missing = 'the permission assign_role is missing'
    await crowd.refused(ada, roleEntry(role, { permissions: ['view_group'] }), missing)
    await crowd.refused(ada, roleEntry(role, { permissions: [] }), missing)
    await crowd.refused(ada, absent(roleEntry(role)), missing)
    await crowd.refused(ada, absent(roleEntry(await crowd.role([]))), missing)
    const bea = await crowd.user({ permissions: [...keeper, 'view_group'] })
    const why = `the role ${viewUser}`
    await crowd.refused(bea, roleEntry(role, { permissions: ['view_group'] }), why)
    await crowd.refused(bea, absent(roleEntry(role)), why)
    await crowd.allowed(bea, roleEntry(role, { permissions: ['view_user'] }))
    const cyd = await crowd.user({ permissions: [...keeper, 'view_user'] })
    await crowd.allowed(cyd, absent(roleEntry(role)))
  })
})

describe('clearing a parent', () => {
  test('needs assign_role and everything that the group grants', async () => {
    const top = await crowd.group({ permissions: ['view_user'] })
    const low = await crowd.group({ parent: top })
    const lower = await crowd.group({ parent: low })
    const ada = await crowd.user({ permissions: [...without('assign_role'), 'view_user'] })
    const bea = await crowd.user({ permissions: keeper })
    for (const group of [lower, low]) {
      await crowd.refused(ada, groupEntry(group, { parent: null }), 'the permission assign_role is missing')
      await crowd.refused(bea, groupEntry(group, { parent: null }), viewUser)
    }
    await crowd.refused(ada, absent(groupEntry(lower)), 'the permission assign_role is missing')
    await crowd.refused(bea, absent(groupEntry(lower)), viewUser)
    const cyd = await crowd.user({ permissions: [...keeper, 'view_user'] })
    await crowd.allowed(cyd, groupEntry(lower, { parent: null }))
    await crowd.allowed(cyd, absent(groupEntry(lower)))
  })

  test('needs add_user_to_group when members hang on the branch, and a superuser below the flag', async () => {
    const bob = await crowd.user()
    const top = await crowd.group()
    const low = await crowd.group({ parent: top })
    await crowd.group({ parent: low, users: [bob.pk] })
    const ada = await crowd.user({ permissions: without('add_user_to_group') })
    const missing = 'the permission add_user_to_group is missing'
    await crowd.refused(ada, groupEntry(low, { parent: null }), missing)
    const bea = await crowd.user({ permissions: keeper })
    await crowd.allowed(bea, groupEntry(low, { parent: null }))
    const flagged = await crowd.group({ superuser: true })
    const below = await crowd.group({ parent: flagged, users: [bob.pk] })
    const why = 'only a superuser may take superuser rights from its members'
    await crowd.refused(bea, groupEntry(below, { parent: null }), why)
    await crowd.refused(bea, groupEntry(below, { parent: null, users: [] }), why)
  })
})

test('the published group of admins cannot be emptied by a delegate', async () => {
  const ada = await crowd.user({ permissions: keeper })
  const admins = await there.db.group.findUniqueOrThrow({ where: { name: 'gatewright Admins' } })
  const row = await there.db.membership.findFirstOrThrow({ where: { groupPk: admins.pk } })
  await crowd.refused(ada, groupEntry(admins.pk, { users: [] }), superuser)
  await crowd.refused(ada, groupEntry(admins.pk, { users: [ada.pk] }), superuser)
  await crowd.refused(ada, userEntry(row.userPk, { groups: [] }), superuser)
  expect(await there.db.membership.count({ where: { groupPk: admins.pk } })).toBeGreaterThan(0)
})
