import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Refusal } from '../../src/apply/refusal.ts'
import { viewKey } from '../../src/apply/token-key.ts'
import { reader } from '../../src/db/engine-tx.ts'
import type { Entry } from '../../src/document/document.ts'
import { Problem } from '../../src/errors.ts'
import type { Actor } from '../../src/permissions.ts'
import { currentActor } from '../../src/rights/actor.ts'
import { bench } from '../apply/engine.ts'
import { rows, sql } from '../support/sql.ts'
import { absent, groupEntry, people, roleEntry, tokenEntry, userEntry } from './people.ts'

/**
 * Random changes by delegates, in any order, against an oracle that computes all rights from the tables: no user gets
 * more than the delegates held together at the start, or becomes a superuser. A delegate who viewed the key of a token
 * has the rights of its user too, and the real user needed the permission to view it.
 */

const there = await bench()
const crowd = people(there)

const powers = [
  ...['add_group', 'change_group', 'delete_group', 'add_user', 'change_user', 'delete_user', 'add_role', 'change_role'],
  ...['delete_role', 'assign_role', 'add_user_to_group', 'enable_group_superuser', 'disable_group_superuser'],
]
/** Permissions that no delegate holds; some group or role has each. */
const treasures = ['view_user', 'view_group', 'view_token', 'view_role']

/** The permissions of each user, by a recursive walk from the memberships, without the product's tables of ancestors. */
async function oracle(): Promise<Map<number, Set<string>>> {
  const found = await rows<{ user: number; permission: string }>(
    there.db,
    sql`
    WITH RECURSIVE chain AS (
      SELECT m.user_pk, m.group_pk FROM memberships m
      UNION SELECT c.user_pk, g.parent FROM chain c JOIN groups g ON g.pk = c.group_pk WHERE g.parent IS NOT NULL
    )
    SELECT c.user_pk AS "user", p AS permission FROM chain c JOIN group_roles gr ON gr.group_pk = c.group_pk
      JOIN roles r ON r.pk = gr.role_pk, unnest(r.permissions) p
    UNION SELECT c.user_pk, 'everything' FROM chain c JOIN groups g ON g.pk = c.group_pk WHERE g.is_superuser`,
  )
  const rights = new Map<number, Set<string>>()
  for (const { user, permission } of found) rights.set(user, (rights.get(user) ?? new Set()).add(permission))
  return rights
}

type Token = { identifier: string; user: number }
type World = { users: number[]; delegates: number[]; groups: string[]; roles: string[]; tokens: Token[] }

async function world(): Promise<World> {
  const top = await crowd.group({ superuser: true, permissions: ['view_token'] })
  const rich = await crowd.group({ permissions: ['view_user', 'view_role'] })
  const groups = [top, rich]
  for (const parent of [top, rich, rich, undefined, undefined, undefined])
    groups.push(await crowd.group(parent === undefined ? {} : { parent }))
  const roles = [
    await crowd.role(['view_group']),
    await crowd.role(['view_user']),
    await crowd.role(['assign_role']),
    await crowd.role([]),
  ]
  // Each delegate has one of the permissions for tokens of others.
  const delegates = [
    await crowd.user({ permissions: [...powers, 'impersonate', 'view_token_key'] }),
    await crowd.user({ permissions: [...powers.slice(0, 10), 'impersonate', 'add_token'] }),
  ]
  const others = [await crowd.user(), await crowd.user({ superuser: true }), await crowd.user({ active: false })]
  groups.push(...delegates.map(({ own }) => own), ...others.map(({ own }) => own))
  const users = [...delegates, ...others].map(({ pk }) => pk)
  const entries = users.map((user) => tokenEntry(null, { user }))
  await there.apply(entries)
  const tokens = entries.map((entry, index) => ({ identifier: nameOf(entry), user: users[index] ?? 0 }))
  return { groups, roles, users, tokens, delegates: delegates.map(({ pk }) => pk) }
}

const nameOf = ({ identifiers }: Partial<Entry>) => String(identifiers?.identifier)

type Pick = <Item>(from: readonly Item[]) => Item

/** A random entry. */
function attempt({ users, groups, roles }: World, pick: Pick, some: Pick): Partial<Entry> {
  const [group, user, role] = [pick(groups), pick(users), pick(roles)]
  const tries: (() => Partial<Entry>)[] = [
    () => groupEntry(group, { is_superuser: some([true, false]) }),
    () => groupEntry(group, { parent: some([null, ...groups]) }),
    () => groupEntry(group, { users: [user, some(users)].filter((pk, index, all) => all.indexOf(pk) === index) }),
    () => groupEntry(group, { roles: [role] }),
    () => groupEntry(group, { is_superuser: some([true, false]), parent: some(groups), users: [user] }),
    () => groupEntry(null, { parent: some([null, ...groups]), users: some([[], [user]]), roles: some([[], [role]]) }),
    () => userEntry(user, { groups: [group, some(groups)].filter((pk, index, all) => all.indexOf(pk) === index) }),
    () => userEntry(null, { groups: [group] }),
    () => userEntry(user, { is_active: some([true, false]) }),
    () =>
      roleEntry(role, { permissions: [some([...treasures, ...powers]), ...some([[], ['assign_role']])].slice(0, 1) }),
    () => roleEntry(role, { permissions: some([[], treasures]) }),
    () => absent(some([groupEntry(group), userEntry(user), roleEntry(role)])),
  ]
  return pick(tries)()
}

const realOf = ({ pk, impersonator }: Actor) => impersonator?.pk ?? pk ?? 0

/** @returns the token whose key the actor viewed; undefined when it was refused */
async function tryToken({ users, tokens }: World, actor: Actor, pick: Pick): Promise<Token | undefined> {
  const held = (await oracle()).get(realOf(actor)) ?? new Set()
  const isForeign = (user: number) => actor.impersonator !== undefined || user !== realOf(actor)
  const user = pick([actor.pk ?? 0, ...users])
  const entry = tokenEntry(null, { user })
  const outcome = await there.apply([entry], actor).catch((error: unknown) => error)
  if (!(outcome instanceof Refusal)) {
    expect(outcome).not.toBeInstanceOf(Error)
    if (isForeign(user)) expect(held).toContain('add_token')
    tokens.push({ identifier: nameOf(entry), user })
  }
  const token = pick([...tokens].reverse())
  const key = await viewKey(there.db, there.engine, actor, token.identifier, 'r').catch((error: unknown) => error)
  if (typeof key !== 'string') {
    expect(key).toBeInstanceOf(Problem)
    return undefined
  }
  if (isForeign(token.user)) expect(held).toContain('view_token_key')
  return token
}

test('no sequence of changes gives a user more rights than the delegates held', async () => {
  const count = { done: 0, impersonating: 0, viewed: 0 }
  const sequence = fc.array(fc.tuple(...Array.from({ length: 8 }, () => fc.nat(9_999))), {
    minLength: 15,
    maxLength: 25,
  })
  await fc.assert(
    fc.asyncProperty(sequence, async (steps) => {
      const made = await world()
      const before = await oracle()
      const ceiling = new Set(made.delegates.flatMap((pk) => [...(before.get(pk) ?? [])]))
      const viewed: { by: number; user: number }[] = []
      for (const dice of steps) {
        let die = 0
        const pick: Pick = (from) => {
          die += 1
          const [picked] = from.slice((dice[die % dice.length] ?? 0) % from.length)
          if (picked === undefined) expect.fail('nothing to pick from')
          return picked
        }
        const pk = pick(made.delegates)
        const actor = await currentActor(
          reader(there.db),
          pick([{ pk }, { pk: pick(made.users), impersonator: { pk } }]),
        )
        if (actor === null) continue
        if (actor.impersonator !== undefined) count.impersonating += 1
        const what = pick(['entry', 'entry', 'token'])
        const entry = attempt(made, pick, pick)
        if (what === 'token') {
          const token = await tryToken(made, actor, pick)
          if (token !== undefined) viewed.push({ by: realOf(actor), user: token.user })
        } else {
          const outcome = await there.apply([entry], actor).catch((error: unknown) => error)
          if (!(outcome instanceof Refusal)) {
            expect(outcome).not.toBeInstanceOf(Error)
            count.done += 1
          }
        }
        const after = await oracle()
        const withKeys = viewed.map(({ by, user }) => [by, after.get(user) ?? new Set<string>()] as const)
        for (const [user, rights] of [...after, ...withKeys]) {
          const more = [...rights].filter((right) => !before.get(user)?.has(right) && !ceiling.has(right))
          expect(more, `user ${user} after ${JSON.stringify(entry)} by ${pk} as ${actor.pk}`).toEqual([])
        }
      }
      count.viewed += viewed.length
    }),
    { numRuns: 40 },
  )
  expect(count.done, JSON.stringify(count)).toBeGreaterThan(40)
  expect(count.impersonating, JSON.stringify(count)).toBeGreaterThan(40)
  expect(count.viewed, JSON.stringify(count)).toBeGreaterThan(5)
}, 120_000)
