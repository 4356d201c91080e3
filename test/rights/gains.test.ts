import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, inject, test } from 'vitest'
import type { Refusal } from '../../src/apply/refusal.ts'
import { reader } from '../../src/db/engine-tx.ts'
import { type Entry, Find, KeyOf } from '../../src/document/document.ts'
import { type Conditions, nothingAllowed } from '../../src/plan/engine.ts'
import { gainRow, gainStatement } from '../../src/rights/gains-sql.ts'
import { acceptingNothing, bench } from '../apply/engine.ts'
import { rows, sql } from '../support/sql.ts'
import { everything, look, none, type Seen } from './oracle.ts'
import { absent, groupEntry, people, roleEntry, userEntry } from './people.ts'

/** What gives rights reaches only the users whom the document names, by its effect as a whole. */

/** Members of a group are counted from this number of them on. */
let counted: number | undefined
const gainText = gainStatement(
  { before: { groups: [], roles: [] }, after: { groups: [], roles: [] }, joined: [], left: [] },
  { keys: new Set(), names: new Set() },
  false,
).text
const accepting = await bench(({ text, values }) => ({
  ...{ text, values: text === gainText && counted !== undefined ? values.with(-1, counted) : values },
}))
const { db } = accepting
const there = acceptingNothing(accepting)
const crowd = people(accepting)
type Document = readonly Partial<Entry>[]
const allowed: Partial<Conditions> = { allow: { ...nothingAllowed, grants: true } }

const member = async () => crowd.user()
const inGroup = (...users: { readonly pk: number }[]) => crowd.group({ users: users.map(({ pk }) => pk) })
const remedy = '. Gatewright-Allow: grants applies it all the same'

/** The sentence with which both the check and the worker refuse; nothing is written. */
async function refused(entries: Document): Promise<string> {
  const { text } = await look(db)
  const { reason, logs } = await there.refusal(entries)
  expect(reason).toBe('conflict')
  expect((await look(db)).text).toBe(text)
  const why = (logs[0] ?? '').replace(/^rolled back: /, '')
  await expect(there.check(entries)).rejects.toMatchObject({ code: 'conflict', message: `${why}.` })
  return why
}

/** The check and the worker both apply it, and give nothing unexpected. */
async function applies(entries: Document): Promise<void> {
  await there.check(entries)
  const { logs } = await there.apply(entries)
  expect(logs.filter((line) => line.includes('whom the request does not name'))).toEqual([])
}

const gain = (username: string, rights: string) =>
  `1 user whom the request does not name would gain rights: ${username} (${rights})${remedy}`

describe('users who are not named gain rights', () => {
  const ways: Record<string, (group: string) => Promise<Document>> = {
    'by a role of their group': async (group) => [groupEntry(group, { roles: [await crowd.role(['view_user'])] })],
    'by a new role of their group': async (group) => [
      { ...roleEntry(null, { permissions: ['view_user'] }), id: 'new' },
      groupEntry(group, { roles: [new KeyOf('new')] }),
    ],
    'by a parent': async (group) => [groupEntry(group, { parent: await crowd.group({ permissions: ['view_user'] }) })],
    'by a parent below one with a role': async (group) => [
      groupEntry(group, { parent: await crowd.group({ parent: await crowd.group({ permissions: ['view_user'] }) }) }),
    ],
    'by a new parent': async (group) => [
      { ...groupEntry(null, { roles: [await crowd.role(['view_user'])] }), id: 'new' },
      groupEntry(group, { parent: new KeyOf('new') }),
    ],
    'by what a role of their group gets': async (group) => {
      const role = await crowd.role([])
      await rows(db, sql`INSERT INTO group_roles (group_pk, role_pk) VALUES (${group}, ${role})`)
      return [roleEntry(role, { permissions: ['view_user'] })]
    },
    'by what a harmless parent gets': async (group) => {
      const parent = await crowd.group()
      await rows(db, sql`UPDATE groups SET parent = ${parent}::uuid WHERE pk = ${group}::uuid`)
      return [groupEntry(parent, { roles: [await crowd.role(['view_user'])] })]
    },
    'by two entries that do nothing alone': async (group) => {
      const [role, parent] = [await crowd.role([]), await crowd.group()]
      return [
        groupEntry(group, { parent }),
        groupEntry(parent, { roles: [role] }),
        roleEntry(role, { permissions: ['view_user'] }),
      ]
    },
  }
  test.each(Object.entries(ways))('%s', async (_, entries) => {
    const amira = await member()
    const document = await entries(await inGroup(amira))
    expect(await refused(document)).toBe(gain(amira.username, 'view_user'))
    expect((await there.apply(document, undefined, allowed)).logs.at(-1)).toBe(
      `1 user whom the request does not name gained rights: ${amira.username} (view_user)`,
    )
    // They have them now: nothing is given any more.
    if (!document.some(({ id }) => id === 'new')) await applies(document)
  })

  test('by the flag, of which nothing else is said', async () => {
    const amira = await member()
    const group = await inGroup(amira)
    const flagged = groupEntry(group, { is_superuser: true, roles: [await crowd.role(['view_user'])] })
    expect(await refused([flagged])).toBe(gain(amira.username, 'superuser'))
  })

  test('by a look-up that names no user', async () => {
    const amira = await member()
    await rows(db, sql`UPDATE users SET email = ${`${amira.username}@example.com`} WHERE pk = ${amira.pk}`)
    const group = await crowd.group({ permissions: ['view_user'] })
    const found = new Find('service_core.user', { email: `${amira.username}@example.com` })
    expect(await refused([groupEntry(group, { users: [found] })])).toBe(gain(amira.username, 'view_user'))
  })

  test('and at most ten are listed, with five rights of each', async () => {
    const users = await Promise.all(Array.from({ length: 13 }, member))
    const permissions = [
      'add_group',
      'add_role',
      'add_user',
      'change_group',
      'change_role',
      'change_user',
      'view_group',
    ]
    const names = users.toSorted((one, other) => one.pk - other.pk).map(({ username }) => username)
    const text = await refused([groupEntry(await inGroup(...users), { roles: [await crowd.role(permissions)] })])
    const first = names.slice(0, 10).sort()
    const each = first.map((name) => `${name} (${permissions.slice(0, 5).join(', ')} and 2 more)`)
    expect(text).toBe(
      `13 users whom the request does not name would gain rights: ${each.join(', ')} and 3 more${remedy}`,
    )
  })

  test('and users of many groups count once, by what they did not have', async () => {
    const users = await Promise.all(Array.from({ length: 4 }, member))
    const [first, second, third, root] = users
    if (first === undefined || second === undefined || third === undefined || root === undefined) expect.fail()
    const parent = await inGroup(first, second, root)
    const group = await crowd.group({ parent, users: [second.pk, third.pk] })
    await crowd.group({ permissions: ['view_user'], users: [second.pk] })
    await crowd.group({ superuser: true, users: [root.pk] })
    const text = await refused([
      groupEntry(parent, { roles: [await crowd.role(['view_user', 'view_role'])] }),
      groupEntry(group, { attributes: { a: 1 } }),
    ])
    const gained = [
      `${first.username} (view_role, view_user)`,
      `${second.username} (view_role)`,
      `${third.username} (view_role, view_user)`,
    ]
    expect(text).toBe(`3 users whom the request does not name would gain rights: ${gained.sort().join(', ')}${remedy}`)
  })

  test('and of a large group, those who differ from the others count by what they gain', async () => {
    const users = (await Promise.all(Array.from({ length: 15 }, member))).toSorted((one, other) => one.pk - other.pk)
    const [first, second, third, , fifth] = users
    if (first === undefined || second === undefined || third === undefined || fifth === undefined) expect.fail()
    const group = await inGroup(...users)
    await crowd.group({ permissions: ['view_user', 'view_role'], users: [first.pk] })
    await crowd.group({ permissions: ['view_user'], users: [second.pk] })
    await crowd.group({ superuser: true, users: [third.pk] })
    const gained = users
      .filter((user) => ![first, third, fifth].includes(user))
      .map((user) => `${user.username} (${user === second ? 'view_role' : 'view_role, view_user'})`)
    for (const from of [undefined, 5]) {
      counted = from
      const role = await crowd.role(['view_user', 'view_role'])
      const text = await refused([userEntry(fifth.pk, { name: 'Named' }), groupEntry(group, { roles: [role] })])
      const each = gained.slice(0, 10).sort().join(', ')
      expect(text).toBe(`12 users whom the request does not name would gain rights: ${each} and 2 more${remedy}`)
    }
    counted = undefined
  })

  test('and the digest is of all of them, with what each gains', async () => {
    const [one, other, another] = [await member(), await member(), await member()]
    const digestOf = async (members: readonly number[], permissions: string[]) => {
      const group = { pk: await inGroup(...members.map((pk) => ({ pk }))), parent: null, superuser: false }
      const role = await crowd.role(permissions)
      const delta = {
        before: { groups: [{ ...group, roles: [] }], roles: [] },
        after: { groups: [{ ...group, roles: [role] }], roles: [] },
        ...{ joined: [], left: [] },
      }
      const [row] = await reader(db).query(gainRow, gainStatement(delta, { keys: new Set(), names: new Set() }, true))
      return row?.digest
    }
    const digest = await digestOf([one.pk, other.pk], ['view_user'])
    expect(await digestOf([other.pk, one.pk], ['view_user'])).toBe(digest)
    expect(await digestOf([one.pk, another.pk], ['view_user'])).not.toBe(digest)
    expect(await digestOf([one.pk, other.pk], ['view_user', 'view_role'])).not.toBe(digest)
  })

  test('and a caller who may not view users learns their number only', async () => {
    const caller = await crowd.user({ permissions: ['change_group', 'assign_role', 'view_role', 'add_user_to_group'] })
    const document = [groupEntry(await inGroup(await member()), { roles: [await crowd.role(['view_role'])] })]
    const { logs } = await there.refusal(document, caller)
    expect(logs).toEqual([`rolled back: 1 user whom the request does not name would gain rights${remedy}`])
  })

  test('and errors and denials go first', async () => {
    const group = await inGroup(await member())
    const flagged = groupEntry(group, { is_superuser: true })
    await expect(there.check([flagged, groupEntry(null, { parent: randomUUID() })])).rejects.toMatchObject({
      code: 'invalid',
    })
    await expect(there.check([flagged], await crowd.user({ permissions: ['change_group'] }))).rejects.toMatchObject({
      code: 'permission_denied',
    })
  })
})

describe('nothing is to acknowledge', () => {
  const named: Record<string, (amira: { pk: number; username: string }) => Partial<Entry>> = {
    'by key, as a member': ({ pk }) => groupEntry(null, { users: [pk] }),
    'by name, as a member': ({ username }) =>
      groupEntry(null, { users: [new Find('service_core.user', { username })] }),
    'as an entry, by key': ({ pk }) => userEntry(pk, { name: 'Amira' }),
    'as an entry, by name': ({ username }) => ({ model: 'service_core.user', identifiers: { username } }),
  }
  test.each(Object.entries(named))('for a user who is named %s', async (_, entry) => {
    const [amira, bo] = [await member(), await member()]
    const document = [entry(amira), groupEntry(await inGroup(amira), { roles: [await crowd.role(['view_user'])] })]
    await applies(document)
    const both = [entry(amira), groupEntry(await inGroup(amira, bo), { is_superuser: true })]
    expect(await refused(both)).toBe(gain(bo.username, 'superuser'))
  })

  test('for a user whom the document creates', async () => {
    const group = await crowd.group()
    const created = userEntry(null, { groups: [group] })
    await applies([created, groupEntry(group, { roles: [await crowd.role(['view_user'])] })])
  })

  test('for users who have all of it already', async () => {
    const [amira, root] = [await crowd.user({ permissions: ['view_user'] }), await crowd.user({ superuser: true })]
    await applies([groupEntry(await inGroup(amira, root), { roles: [await crowd.role(['view_user'])] })])
    await applies([groupEntry(await inGroup(root), { is_superuser: true })])
  })

  test('for users who have it for the same owner already', async () => {
    const forOwner = async (owner: string) => {
      const role = await crowd.role(['view_application'])
      await db.role.update({ where: { pk: role }, data: { owners: [owner] } })
      return role
    }
    const amira = await member()
    await there.apply([groupEntry(amira.own, { roles: [await forOwner('team-a')] })], undefined, allowed)
    const group = await inGroup(amira)
    await applies([groupEntry(group, { roles: [await forOwner('team-a')] })])
    expect(await refused([groupEntry(group, { roles: [await forOwner('team-b')] })])).toContain(amira.username)
  })

  test('for users who get elsewhere what the same document takes', async () => {
    const amira = await member()
    const [group, from] = [await inGroup(amira), await crowd.group({ permissions: ['view_user'], users: [amira.pk] })]
    const to = await crowd.group({ permissions: ['view_user'] })
    await applies([groupEntry(from, { users: [] }), groupEntry(group, { parent: to })])
    const gone = await crowd.group({ superuser: true, users: [amira.pk] })
    await applies([absent(groupEntry(gone)), groupEntry(group, { is_superuser: true })])
  })

  test('for members who stay in a group of which an earlier entry says something else', async () => {
    const amira = await member()
    await rows(db, sql`UPDATE users SET email = ${`${amira.username}@example.com`} WHERE pk = ${amira.pk}`)
    const group = await crowd.group({ permissions: ['view_user'], users: [amira.pk] })
    const found = new Find('service_core.user', { email: `${amira.username}@example.com` })
    await applies([groupEntry(group, { attributes: { a: 1 } }), groupEntry(group, { users: [found] })])
  })

  test('for what gives nothing', async () => {
    const amira = await member()
    const group = await inGroup(amira)
    const [parent, role] = [await crowd.group(), await crowd.role([])]
    for (const attrs of [{ parent }, { roles: [role] }, { attributes: { a: 1 } }, { parent: null }, { roles: [] }])
      await applies([groupEntry(group, attrs)])
    await applies([groupEntry(await crowd.group(), { is_superuser: true })])
    await applies([groupEntry(null, { is_superuser: true, users: [amira.pk] })])
  })
})

const dice = fc.array(fc.array(fc.nat(9_999), { minLength: 10, maxLength: 10 }), { minLength: 1, maxLength: 4 })

test('random documents: what is refused is exactly what users gain who are not named', async () => {
  const counts = { given: 0, nothing: 0, invalid: 0 }
  const rounds = Math.max(60, 10 * inject('rounds'))
  await fc
    .assert(
      fc.asyncProperty(dice, async (throws) => {
        const users = await Promise.all(Array.from({ length: 4 }, member))
        const keys = users.map(({ pk }) => pk)
        const roles = [
          await crowd.role([]),
          await crowd.role(['view_user']),
          await crowd.role(['view_user', 'view_role']),
        ]
        const groups = await Promise.all(
          keys.map((pk, index) => crowd.group({ users: [pk, keys[(index + 1) % 4] ?? pk], superuser: index === 3 })),
        )
        const entries = throws.map((thrown) => entryOf(thrown, { keys, roles, groups }))
        const named = new Set(
          entries.flatMap(({ model, identifiers, attrs }) => [
            ...(model === 'service_core.user' ? [identifiers?.pk] : []),
            ...[attrs?.users ?? []]
              .flat()
              .flatMap((each) => (typeof each === 'number' ? each : Object.values(each).flat())),
          ]),
        )
        const [[thrown = 0] = []] = throws
        counted = [undefined, 0, 1][thrown % 3]
        const before = await look(db)
        const checked = await there.check(entries).then(
          () => '',
          (error: { code?: string; message: string }) => (error.code === 'conflict' ? error.message : undefined),
        )
        const refusal = await there.apply(entries).then(
          () => '',
          ({ reason, logs }: Refusal) =>
            reason === 'conflict' && logs[0]?.includes('would gain') === true
              ? `${logs[0].replace(/^rolled back: /, '')}.`
              : undefined,
        )
        // Such as a circle, or a group that is deleted and has others below it.
        if (checked === undefined || refusal === undefined) {
          counts.invalid += 1
          return
        }
        if (refusal !== '') await there.apply(entries, undefined, allowed)
        const gained = gainedBy(users, before, await look(db), named)
        expect(refusal).toBe(gained === '' ? '' : `${gained}${remedy}.`)
        expect(checked).toBe(refusal)
        counts[gained === '' ? 'nothing' : 'given'] += 1
      }),
      { numRuns: rounds, endOnFailure: true },
    )
    .finally(() => {
      counted = undefined
    })
  expect(Math.min(counts.given, counts.nothing), JSON.stringify(counts)).toBeGreaterThan(1)
})

type Small = { readonly keys: readonly number[]; readonly roles: readonly string[]; readonly groups: readonly string[] }

/** An entry by dice: a group with some of its fields, or what a role holds. */
function entryOf(thrown: readonly number[], { keys, roles, groups }: Small): Partial<Entry> {
  let die = 0
  const pick = <Item>(from: readonly Item[]): Item => {
    die += 1
    return from[(thrown[die % thrown.length] ?? 0) % from.length] as Item
  }
  const kind = pick(['group', 'group', 'group', 'role', 'user', 'absent'])
  if (kind === 'role')
    return roleEntry(pick(roles), { permissions: pick([[], ['view_user'], ['view_user', 'add_user']]) })
  if (kind === 'user') return userEntry(pick(keys), { groups: [pick(groups)] })
  if (kind === 'absent') return absent(groupEntry(pick(groups)))
  return groupEntry(pick(groups), {
    ...pick([{}, {}, { parent: null }, { parent: pick(groups) }]),
    ...pick([{}, { roles: [] }, { roles: pick([[pick(roles)], { add: [pick(roles)] }, { remove: [pick(roles)] }]) }]),
    ...pick([{}, {}, {}, { is_superuser: pick([true, false]) }]),
    ...pick([{}, {}, { users: pick([[pick(keys)], { add: [pick(keys)] }, { remove: [pick(keys)] }]) }]),
  })
}

/** The sentence about what the tables say. */
function gainedBy(
  users: readonly { readonly pk: number; readonly username: string }[],
  before: Seen,
  after: Seen,
  named: ReadonlySet<unknown>,
): string {
  const gaining = users.flatMap(({ pk, username }) => {
    const [had, has] = [before.users.get(pk)?.rights ?? none, after.users.get(pk)?.rights ?? none]
    if (named.has(pk) || had.has(everything)) return []
    const more = has.has(everything) ? ['superuser'] : [...has].filter((right) => !had.has(right)).sort()
    return more.length === 0 ? [] : [`${username} (${more.join(', ')})`]
  })
  const who = gaining.length === 1 ? '1 user' : `${gaining.length} users`
  return gaining.length === 0
    ? ''
    : `${who} whom the request does not name would gain rights: ${gaining.sort().join(', ')}`
}
