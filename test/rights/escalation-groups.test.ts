import { describe, expect, test } from 'vitest'
import { KeyOf } from '../../src/document/document.ts'
import { bench } from '../apply/engine.ts'
import { absent, groupEntry, people } from './people.ts'

/** Groups: a caller who adds a link through which rights are inherited must hold all of those rights. */

const there = await bench()
const crowd = people(there)

const writer = ['add_group', 'change_group', 'delete_group'] as const

describe('the superuser flag', () => {
  test('needs enable_group_superuser to set, disable_group_superuser to remove', async () => {
    const ada = await crowd.user({ permissions: writer })
    const empty = await crowd.group()
    await crowd.refused(ada, groupEntry(empty, { is_superuser: true }), 'the permission enable_group_superuser')
    await crowd.refused(ada, groupEntry(null, { is_superuser: true }), 'the permission enable_group_superuser')
    const bea = await crowd.user({ permissions: [...writer, 'enable_group_superuser'] })
    await crowd.allowed(bea, groupEntry(empty, { is_superuser: true }))
    await crowd.allowed(bea, groupEntry(null, { is_superuser: true }))
    await crowd.refused(bea, groupEntry(empty, { is_superuser: false }), 'the permission disable_group_superuser')
    await crowd.refused(bea, absent(groupEntry(empty)), 'the permission disable_group_superuser')
    // Its name is one by which a document gives the flag.
    const root = await crowd.user({ superuser: true })
    await crowd.allowed(root, absent(groupEntry(await crowd.group({ superuser: true }))))
    const cyd = await crowd.user({ permissions: [...writer, 'disable_group_superuser'] })
    await crowd.refused(cyd, absent(groupEntry(empty)), 'the group has superuser rights, and the caller has not')
    await crowd.allowed(cyd, groupEntry(empty, { is_superuser: false }))
    await crowd.allowed(cyd, absent(groupEntry(empty)))
  })

  test('of a group with members, own or of descendants, is set by superusers only', async () => {
    const ada = await crowd.user({ permissions: [...writer, 'enable_group_superuser', 'add_user_to_group'] })
    const mine = groupEntry(ada.own, { is_superuser: true })
    const why = 'only a superuser may make superusers of its members'
    await crowd.refused(ada, mine, why)
    const above = await crowd.group()
    await crowd.group({ parent: above, users: [ada.pk] })
    await crowd.refused(ada, groupEntry(above, { is_superuser: true }), why)
    const superuser = 'the group has superuser rights, and the caller has not'
    await crowd.refused(ada, groupEntry(null, { is_superuser: true, users: [ada.pk] }), superuser)
    const root = await crowd.user({ superuser: true })
    await crowd.allowed(root, groupEntry(above, { is_superuser: true }))
  })

  test('that does not change needs no permission', async () => {
    const ada = await crowd.user({ permissions: [...writer, 'assign_role'] })
    const group = await crowd.group({ superuser: true })
    await crowd.allowed(ada, groupEntry(group, { is_superuser: true, roles: [await crowd.role([])] }))
  })
})

describe('a parent', () => {
  test('that inherits the flag needs enable_group_superuser; leaving it disable_group_superuser', async () => {
    const top = await crowd.group({ superuser: true })
    const parent = await crowd.group({ parent: top })
    const child = await crowd.group()
    const ada = await crowd.user({ permissions: writer })
    await crowd.refused(ada, groupEntry(child, { parent }), 'the permission enable_group_superuser')
    await crowd.refused(ada, groupEntry(null, { parent }), 'the permission enable_group_superuser')
    const bea = await crowd.user({ permissions: [...writer, 'enable_group_superuser'] })
    await crowd.allowed(bea, groupEntry(child, { parent }))
    await crowd.refused(bea, groupEntry(child, { parent: null }), 'the permission disable_group_superuser')
    const cyd = await crowd.user({ permissions: [...writer, 'disable_group_superuser'] })
    await crowd.allowed(cyd, groupEntry(child, { parent: null }))
  })

  test('that inherits the flag is set by superusers only, for a group with members', async () => {
    const top = await crowd.group({ superuser: true })
    const ada = await crowd.user({ permissions: [...writer, 'enable_group_superuser'] })
    const child = await crowd.group()
    await crowd.group({ parent: child, users: [ada.pk] })
    const why = 'only a superuser may make superusers of its members'
    await crowd.refused(ada, groupEntry(child, { parent: top }), why)
    await crowd.refused(ada, groupEntry(ada.own, { parent: top }), why)
  })

  test('with inherited roles needs a caller who holds their permissions', async () => {
    const top = await crowd.group({ permissions: ['view_user'] })
    const parent = await crowd.group({ parent: top })
    const mover = [...writer, 'assign_role', 'add_user_to_group']
    const ada = await crowd.user({ permissions: mover })
    const why = 'its new parent has the permission view_user, and the caller has not'
    await crowd.refused(ada, groupEntry(ada.own, { parent }), why)
    await crowd.refused(ada, groupEntry(null, { parent }), why)
    const bea = await crowd.user({ permissions: [...mover, 'view_user'] })
    await crowd.allowed(bea, groupEntry(ada.own, { parent }))
  })

  test('that would form a circle is an error for every caller', async () => {
    const top = await crowd.group()
    const middle = await crowd.group({ parent: top })
    const low = await crowd.group({ parent: middle })
    const root = await crowd.user({ superuser: true })
    const ada = await crowd.user({ permissions: writer })
    const message = 'Is this group, or stands below it: groups cannot form a circle.'
    for (const actor of [root, ada])
      for (const parent of [top, middle, low])
        await crowd.invalid(actor, groupEntry(top, { parent }), 'parent', message)
  })
})

describe('members (CVE-2026-40172: users who could edit groups joined a superuser group)', () => {
  test('need add_user_to_group to join', async () => {
    const group = await crowd.group()
    const ada = await crowd.user({ permissions: writer })
    await crowd.refused(ada, groupEntry(group, { users: [ada.pk] }), 'the permission add_user_to_group')
    await crowd.refused(ada, groupEntry(null, { users: [ada.pk] }), 'the permission add_user_to_group')
    const bea = await crowd.user({ permissions: [...writer, 'add_user_to_group'] })
    await crowd.allowed(bea, groupEntry(group, { users: [ada.pk, bea.pk] }))
  })

  test('of a group with effective superuser are added by superusers only', async () => {
    const ada = await crowd.user({ permissions: [...writer, 'add_user_to_group', 'enable_group_superuser'] })
    const top = await crowd.group({ superuser: true })
    const low = await crowd.group({ parent: await crowd.group({ parent: top }) })
    const why = 'the group has superuser rights, and the caller has not'
    for (const group of [top, low]) await crowd.refused(ada, groupEntry(group, { users: [ada.pk] }), why)
    const root = await crowd.user({ superuser: true })
    await crowd.allowed(root, groupEntry(low, { users: [ada.pk] }))
  })

  test('of a group with more effective roles than the caller cannot be added', async () => {
    const ada = await crowd.user({ permissions: [...writer, 'add_user_to_group'] })
    const top = await crowd.group({ permissions: ['view_user'] })
    const low = await crowd.group({ parent: top })
    const why = 'the group has the permission view_user, and the caller has not'
    for (const group of [top, low]) await crowd.refused(ada, groupEntry(group, { users: [ada.pk] }), why)
    const bea = await crowd.user({ permissions: [...writer, 'add_user_to_group', 'view_user'] })
    await crowd.allowed(bea, groupEntry(low, { users: [ada.pk] }))
  })
})

describe('roles', () => {
  test('need assign_role to be added and removed', async () => {
    const role = await crowd.role(['view_group'])
    const group = await crowd.group()
    const ada = await crowd.user({ permissions: [...writer, 'view_group'] })
    await crowd.refused(ada, groupEntry(group, { roles: [role] }), 'the permission assign_role')
    await crowd.refused(ada, groupEntry(null, { roles: [role] }), 'the permission assign_role')
    const bea = await crowd.user({ permissions: [...writer, 'view_group', 'assign_role'] })
    await crowd.allowed(bea, groupEntry(group, { roles: [role] }))
    await crowd.refused(ada, groupEntry(group, { roles: [] }), 'the permission assign_role')
    await crowd.allowed(bea, groupEntry(group, { roles: [] }))
  })

  test('are added only by a caller who holds all their permissions', async () => {
    const ada = await crowd.user({ permissions: [...writer, 'assign_role', 'view_group'] })
    const role = await crowd.role(['view_group', 'view_user'])
    const why = 'the role has the permission view_user, and the caller has not'
    await crowd.refused(ada, groupEntry(ada.own, { roles: [role] }), why)
    await crowd.refused(ada, groupEntry(null, { roles: [role] }), why)
  })
})

test('each entry is decided on the state that earlier entries left (CVE-2026-11577: bulk import as privilege boundary)', async () => {
  const ada = await crowd.user({
    permissions: [...writer, 'enable_group_superuser', 'add_user_to_group', 'assign_role', 'change_user'],
  })
  const flagged = { ...groupEntry(null, { is_superuser: true }), id: 'flagged' }
  const joined = [
    flagged,
    { model: 'service_core.user', identifiers: { pk: ada.pk }, attrs: { groups: [ada.own, new KeyOf('flagged')] } },
  ]
  expect((await there.refusal(joined, ada)).logs[0]).toContain('the group has superuser rights')
  const below = [flagged, groupEntry(null, { parent: new KeyOf('flagged'), users: [ada.pk] })]
  expect((await there.refusal(below, ada)).logs[0]).toContain('the group has superuser rights')
  const moved = [
    { ...groupEntry(null, { users: [ada.pk] }), id: 'mine' },
    flagged,
    groupEntry(ada.own, { parent: new KeyOf('flagged') }),
  ]
  expect((await there.refusal(moved, ada)).logs[0]).toContain('only a superuser may make superusers of its members')
})
