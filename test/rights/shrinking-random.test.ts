import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { expect, inject, test } from 'vitest'
import { Refusal } from '../../src/apply/refusal.ts'
import { write } from '../../src/apply/write.ts'
import { reader } from '../../src/db/engine-tx.ts'
import type { Entry } from '../../src/document/document.ts'
import { Problem } from '../../src/errors.ts'
import type { Actor } from '../../src/permissions.ts'
import { currentActor } from '../../src/rights/actor.ts'
import { bench } from '../apply/engine.ts'
import { onCi } from '../support/environment.ts'
import { rows, run, sql } from '../support/sql.ts'
import { absent, groupEntry, people, roleEntry, userEntry } from './people.ts'

/**
 * Shrinking instead of growing: delegates remove, move, rename, clear and delete, in any order, by requests and by
 * documents, some while impersonating. An oracle reads the tables before and after each call that was accepted. It shares
 * no code with the product, and walks the tree itself.
 */

const there = await bench()
const crowd = people(there)

const everything = 'everything'
const powers = [
  ...['add_group', 'change_group', 'delete_group', 'add_user', 'change_user', 'delete_user', 'add_role', 'change_role'],
  ...['delete_role', 'assign_role', 'add_user_to_group', 'enable_group_superuser', 'disable_group_superuser'],
]

type Seen = {
  /** What each active user has: permissions, or `everything`. */
  rights: ReadonlyMap<number, ReadonlySet<string>>
  /** The groups of each user, with all above them. */
  groups: ReadonlyMap<number, ReadonlySet<string>>
  /** What a group gives to its members, by the name that documents know it by. */
  granted: ReadonlyMap<string, { pk: string; rights: ReadonlySet<string> }>
  /** The same of roles. */
  filled: ReadonlyMap<string, { pk: string; rights: ReadonlySet<string> }>
  /** Superusers who can authenticate. */
  superusers: ReadonlySet<number>
}

async function look(): Promise<Seen> {
  const chain = sql`WITH RECURSIVE chain AS (
    SELECT g.pk AS own, g.pk AS above FROM groups g
    UNION SELECT c.own, g.parent FROM chain c JOIN groups g ON g.pk = c.above WHERE g.parent IS NOT NULL)`
  const ofGroups = await rows<{ pk: string; name: string; above: string[]; rights: string[] | null }>(
    there.db,
    sql`${chain}, given AS (
      SELECT c.own, p AS item FROM chain c JOIN group_roles gr ON gr.group_pk = c.above
        JOIN roles r ON r.pk = gr.role_pk, unnest(r.permissions) p
      UNION SELECT c.own, ${everything} FROM chain c JOIN groups g ON g.pk = c.above WHERE g.is_superuser)
    SELECT g.pk::text, g.name, ARRAY(SELECT c.above::text FROM chain c WHERE c.own = g.pk) AS above,
      ARRAY(SELECT item FROM given WHERE own = g.pk) AS rights FROM groups g`,
  )
  const ofRoles = await rows<{ pk: string; name: string; permissions: string[] }>(
    there.db,
    sql`SELECT pk::text, name, permissions FROM roles`,
  )
  const members = await rows<{ user: number; active: boolean; token: boolean; group: string | null }>(
    there.db,
    sql`SELECT u.pk AS user, u.is_active AS active, m.group_pk::text AS group, EXISTS (SELECT FROM tokens t
        WHERE t.user_pk = u.pk AND t.intent = 'api' AND (NOT t.expiring OR t.expires > now())) AS token
      FROM users u LEFT JOIN memberships m ON m.user_pk = u.pk`,
  )
  const byKey = new Map(ofGroups.map((group) => [group.pk, group]))
  const rights = new Map<number, Set<string>>()
  const groups = new Map<number, Set<string>>()
  const superusers = new Set<number>()
  for (const { user, active, token, group } of members) {
    const found = byKey.get(group ?? '')
    const held = rights.getOrInsertComputed(user, () => new Set())
    const joined = groups.getOrInsertComputed(user, () => new Set())
    for (const above of found?.above ?? []) joined.add(above)
    if (active) for (const right of found?.rights ?? []) held.add(right)
    if (token && held.has(everything)) superusers.add(user)
  }
  return {
    ...{ rights, groups, superusers },
    granted: new Map(ofGroups.map(({ pk, name, rights: given }) => [name, { pk, rights: new Set(given) }])),
    filled: new Map(ofRoles.map(({ pk, name, permissions }) => [name, { pk, rights: new Set(permissions) }])),
  }
}

const none: ReadonlySet<string> = new Set()

/** What two sets do not have in common. */
const change = (one: ReadonlySet<string> = none, other: ReadonlySet<string> = none) => [
  ...one.symmetricDifference(other),
]

/**
 * What an accepted call did that the caller may not do.
 *
 * @param held by the caller; while impersonating, by both users
 * @param acting what the effective user holds: it decides whether a kind of change is permitted at all
 */
function violations(before: Seen, after: Seen, held: ReadonlySet<string>, acting = held): string[] {
  const found: string[] = []
  const lacks = (rights: Iterable<string>) => [...rights].filter((right) => !held.has(right))
  const report = (what: string, rights: Iterable<string>) => {
    const more = lacks(rights)
    if (more.length > 0) found.push(`${what}: ${more}`)
  }
  for (const user of new Set([...before.groups.keys(), ...after.groups.keys()])) {
    const [had, has] = [before.rights.get(user), after.rights.get(user)]
    report(`user ${user} gained or lost`, change(had, has))
    if (change(before.groups.get(user), after.groups.get(user)).length === 0) continue
    report(`user ${user}, who has more, was moved`, had ?? none)
    if (!acting.has('add_user_to_group')) found.push(`user ${user} was moved without add_user_to_group`)
  }
  for (const [what, was, is] of [
    ['group', before.granted, after.granted],
    ['role', before.filled, after.filled],
  ] as const)
    for (const [name, { pk, rights }] of was)
      if (is.get(name)?.pk !== pk) report(`the ${what} ${name} lost its name`, rights)
  if (change(toNames(before.superusers), toNames(after.superusers)).length > 0) found.push('the superusers are others')
  return found
}

const toNames = (keys: ReadonlySet<number>) => new Set([...keys].map(String))

type World = { users: number[]; delegates: number[]; groups: string[]; roles: string[] }

async function world(): Promise<World> {
  await rows(there.db, sql`TRUNCATE groups, roles, users CASCADE`)
  const delegates = [
    await crowd.user({ permissions: [...powers, 'view_user', 'impersonate'] }),
    await crowd.user({ permissions: [...powers, 'view_group'] }),
    await crowd.user({ permissions: powers.filter((power) => power !== 'add_user_to_group') }),
    await crowd.user({ permissions: ['impersonate', ...powers.filter((power) => power !== 'assign_role')] }),
  ]
  const others = [
    ...[await crowd.user(), await crowd.user({ permissions: ['view_user'] })],
    ...[await crowd.user({ permissions: ['view_group', 'view_role'] }), await crowd.user({ superuser: true })],
    await crowd.user({ superuser: true, active: false }),
  ]
  const users = [...delegates, ...others].map(({ pk }) => pk)
  await run(
    there.db,
    sql`INSERT INTO tokens (pk, identifier, user_pk, expiring, key_hash)
      SELECT gen_random_uuid(), 'of ' || u, u, false, sha256(u::text::bytea) FROM unnest(${users}::int[]) u`,
  )
  const some = (...picked: number[]) => picked.map((index) => users[index] ?? 0)
  const top = await crowd.group({ superuser: true })
  const rich = await crowd.group({ permissions: ['view_user'], users: some(4, 5) })
  const groups = [
    ...[top, rich, await crowd.group({ parent: top }), await crowd.group({ parent: top, users: some(7) })],
    ...[await crowd.group({ parent: rich, users: some(4, 6) }), await crowd.group({ parent: rich })],
    ...[await crowd.group({ users: some(4, 5, 7) }), await crowd.group({ users: some(4) }), await crowd.group()],
  ]
  const middle = await crowd.group({ parent: groups[6] ?? '', permissions: ['view_group'], users: some(4) })
  groups.push(middle, await crowd.group({ parent: middle, users: some(6) }))
  const owned = [...delegates, ...others].map(({ own }) => own)
  const roles = await rows<{ pk: string }>(there.db, sql`SELECT pk::text FROM roles`)
  return {
    ...{ users, groups: [...groups, ...owned], delegates: delegates.map(({ pk }) => pk) },
    roles: [...roles.map(({ pk }) => pk), await crowd.role([]), await crowd.role(['view_user'])],
  }
}

type Pick = <Item>(from: readonly Item[]) => Item

/** An entry that shrinks something, on the rows as they are: a removal of one or of all, a move, a name, a deletion. */
async function shrinking({ groups, users, roles }: World, pick: Pick): Promise<Partial<Entry>> {
  const [group, user, role] = [pick(groups), pick(users), pick(roles)]
  const some = <Key>(keys: readonly Key[]) => keys.filter(() => pick([true, false]))
  const fewer = async (what: 'memberships' | 'roles') => {
    const found = await there.db.group.findUnique({ where: { pk: group }, select: { memberships: true, roles: true } })
    return what === 'roles'
      ? some(found?.roles.map(({ rolePk }) => rolePk) ?? [])
      : some(found?.memberships.map(({ userPk }) => userPk) ?? [])
  }
  const left = async () =>
    some((await there.db.membership.findMany({ where: { userPk: user } })).map(({ groupPk }) => groupPk))
  const granted = async () => some((await there.db.role.findUnique({ where: { pk: role } }))?.permissions ?? [])
  const tries: (() => Promise<Partial<Entry>>)[] = [
    async () => groupEntry(group, { users: await fewer('memberships') }),
    async () => groupEntry(group, { users: [...new Set([...(await fewer('memberships')), user])] }),
    async () => groupEntry(group, { roles: await fewer('roles') }),
    async () => groupEntry(group, { parent: pick([null, ...groups]) }),
    async () => groupEntry(group, { parent: null, users: await fewer('memberships'), roles: await fewer('roles') }),
    async () => groupEntry(group, { is_superuser: false, ...pick([{}, { users: [] }, { parent: null }]) }),
    async () =>
      groupEntry(group, { name: randomUUID(), ...pick([{}, { roles: [] }, { users: [] }, { parent: null }]) }),
    async () => userEntry(user, { groups: await left() }),
    async () => userEntry(user, { groups: [...new Set([...(await left()), group])] }),
    async () => userEntry(user, { is_active: pick([false, true]) }),
    async () => roleEntry(role, { permissions: await granted() }),
    async () => roleEntry(role, { name: randomUUID() }),
    async () => absent(pick([groupEntry(group), userEntry(user), roleEntry(role), groupEntry(group)])),
    async () => groupEntry(null, { parent: pick([null, group]), users: pick([[], [user]]), roles: pick([[], [role]]) }),
  ]
  return pick(tries)()
}

/** By a document, or by a request where there is one for it. */
async function call(entry: Partial<Entry>, actor: Actor, byRequest: boolean): Promise<'accepted' | 'refused'> {
  const { pk } = entry.identifiers ?? {}
  const isRequest =
    byRequest && entry.state === undefined && entry.model === 'service_core.group' && typeof pk === 'string'
  const request = { model: 'service_core.group', mode: { change: String(pk) }, fields: entry.attrs, requestId: 'r' }
  const outcome: unknown = await (isRequest
    ? write(there.db, there.engine, actor, request, async () => 'written')
    : there.apply([entry], actor)
  ).catch((error: unknown) => error)
  if (outcome instanceof Refusal || outcome instanceof Problem) {
    expect(['permission_denied', 'invalid', 'not_found', 'conflict']).toContain(
      outcome instanceof Refusal ? outcome.reason : outcome.code,
    )
    return 'refused'
  }
  expect(outcome).not.toBeInstanceOf(Error)
  return 'accepted'
}

const perWorld = 50
/** 20 000 calls on CI. */
const worlds = onCi && inject('transactions') === 'prisma' ? 400 : 40

test(
  'nobody gains, loses or moves what the caller does not hold, and no superuser is lost',
  async () => {
    const count = { calls: 0, accepted: 0, impersonating: 0, lost: 0, moved: 0, renamed: 0 }
    const dice = fc.array(fc.array(fc.nat(9_999), { minLength: 24, maxLength: 24 }), {
      minLength: perWorld,
      maxLength: perWorld,
    })
    await fc.assert(
      fc.asyncProperty(dice, async (throws) => {
        const made = await world()
        let before = await look()
        for (const thrown of throws) {
          let die = 0
          const pick: Pick = (from) => {
            die += 1
            const [picked] = from.slice((thrown[die % thrown.length] ?? 0) % from.length)
            if (picked === undefined && from.length === 0) expect.fail('nothing to pick from')
            return picked as (typeof from)[number]
          }
          const pk = pick(made.delegates)
          const keys = pick([{ pk }, { pk }, { pk: pick(made.users), impersonator: { pk } }])
          const actor = (await currentActor(reader(there.db), keys)) ?? (await currentActor(reader(there.db), { pk }))
          // Another delegate deactivated or deleted this one.
          if (actor === null) continue
          const entry = await shrinking(made, pick)
          count.calls += 1
          if ((await call(entry, actor, pick([true, false]))) === 'refused') continue
          const after = await look()
          const effective = before.rights.get(actor.pk ?? 0) ?? none
          const real = before.rights.get(actor.impersonator?.pk ?? actor.pk ?? 0) ?? none
          const found = violations(before, after, effective.intersection(real), effective)
          expect(found, `${JSON.stringify(entry)} by ${pk} as ${actor.pk}`).toEqual([])
          count.accepted += 1
          if (actor.impersonator !== undefined) count.impersonating += 1
          if (isAny(before, after, ({ rights }) => rights)) count.lost += 1
          if (isAny(before, after, ({ groups }) => groups)) count.moved += 1
          if ([...before.granted].some(([name, { pk: key }]) => after.granted.get(name)?.pk !== key)) count.renamed += 1
          before = after
        }
      }),
      { numRuns: worlds, endOnFailure: true },
    )
    // Without what was accepted, nothing would have been shown.
    expect(count.calls, JSON.stringify(count)).toBeGreaterThan((worlds * perWorld) / 2)
    for (const some of [count.accepted / 5, count.impersonating, count.lost, count.moved, count.renamed])
      expect(some, JSON.stringify(count)).toBeGreaterThan(worlds / 4)
  },
  onCi ? 1_800_000 : 300_000,
)

const isAny = (before: Seen, after: Seen, of: (seen: Seen) => ReadonlyMap<number, ReadonlySet<string>>): boolean =>
  [...of(before)].some(([user, had]) => change(had, of(after).get(user)).length > 0)

test('the oracle finds what is planted', async () => {
  const held = new Set([...powers, 'view_user'])
  const planted = [
    ['gained or lost', (g: string) => sql`DELETE FROM memberships WHERE group_pk = ${g}`],
    ['gained or lost', (g: string) => sql`DELETE FROM group_roles WHERE group_pk = ${g}`],
    ['lost its name', (g: string) => sql`UPDATE groups SET name = 'other' WHERE pk = ${g}`],
    ['who has more, was moved', (g: string) => sql`DELETE FROM memberships WHERE group_pk = ${g}`],
    ['the superusers are others', () => sql`UPDATE groups SET is_superuser = false`],
    ['the superusers are others', () => sql`UPDATE tokens SET expiring = true, expires = now() - interval '1 s'`],
    ['lost its name', () => sql`UPDATE roles SET name = 'other ' || name`],
  ] as const
  for (const [what, plant] of planted) {
    const { groups } = await world()
    const before = await look()
    await run(there.db, plant(groups[9] ?? ''))
    expect(violations(before, await look(), held).join('\n')).toContain(what)
    expect(violations(before, before, held)).toEqual([])
  }
})
