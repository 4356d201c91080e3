import { describe, expect, test } from 'vitest'
import { reader } from '../../src/db/engine-tx.ts'
import { permissionNames } from '../../src/models/registry.ts'
import { type Actor, mayReadSecrets } from '../../src/permissions.ts'
import { actAs, actorOfUser } from '../../src/rights/actor.ts'
import { bench } from '../apply/engine.ts'
import { freshDatabase, rows, sql } from '../support/kit.ts'
import { absent, groupEntry, people, roleEntry, tokenEntry, userEntry } from './people.ts'

/** The rights to read secrets: they are given by callers who hold them, and nothing else implies them. */

const there = await bench()
const { db } = there
const crowd = people(there)

const right = 'read_oauth2provider_secrets'
const others = permissionNames(there.engine.registry).filter((each) => each !== right)

/** A user with all other permissions, and with this one for the rows of an owner; null: without it. */
async function caller(owner: string | null): Promise<Actor & { readonly pk: number; readonly own: string }> {
  const user = await crowd.user({ permissions: others })
  if (owner === null) return user
  const role = await crowd.role([right])
  await rows(db, sql`UPDATE roles SET owners = ${owner === '' ? [] : [owner]} WHERE pk = ${role}`)
  await rows(db, sql`INSERT INTO group_roles (group_pk, role_pk) VALUES (${user.own}, ${role})`)
  const actor = (await actorOfUser(reader(db), { pk: user.pk })) ?? expect.fail('no actor')
  return { ...actor, pk: user.pk, own: user.own }
}

/** Entries by which users get the right for the rows of team one. */
const ways: Record<string, (self: Actor & { readonly own: string }) => Promise<Parameters<typeof crowd.allowed>[1]>> = {
  'a new role': async () => roleEntry(null, { permissions: [right], owners: ['team-one'] }),
  'a role that gets it': async () => roleEntry(await bound([]), { permissions: [right] }),
  'a role that gets another owner': async () => roleEntry(await bound([right], 'team-two'), { owners: ['team-one'] }),
  'a role of a group': async () => groupEntry(await crowd.group(), { roles: [await bound([right])] }),
  'a group for itself': async ({ pk }) => groupEntry(await withRole(), { users: [pk] }),
  'a group for a user': async () => userEntry((await crowd.user()).pk, { groups: [await withRole()] }),
  'a parent': async ({ own }) => groupEntry(own, { parent: await withRole() }),
  'a token of a user': async () => {
    const user = await crowd.user()
    await rows(db, sql`INSERT INTO memberships (group_pk, user_pk) VALUES (${await withRole()}::uuid, ${user.pk})`)
    return tokenEntry(null, { user: user.pk })
  },
  'the end of its role': async () => absent(roleEntry(await bound([right]))),
}

async function bound(permissions: string[], owner = 'team-one'): Promise<string> {
  const role = await crowd.role(permissions)
  await rows(db, sql`UPDATE roles SET owners = ${[owner]} WHERE pk = ${role}`)
  return role
}

async function withRole(): Promise<string> {
  const [group, role] = [await crowd.group(), await bound([right])]
  await rows(db, sql`INSERT INTO group_roles (group_pk, role_pk) VALUES (${group}::uuid, ${role}::uuid)`)
  return group
}

describe('the right to read secrets is given and taken by who holds it for these owners:', () => {
  test.each(Object.entries(ways))('by %s', async (way, entryFor) => {
    // What a role has for another owner is taken from it, too.
    const why = `the permission ${right} for owner`
    for (const owner of [null, 'team-three']) {
      const lacking = await caller(owner)
      await crowd.refused(lacking, await entryFor(lacking), why)
    }
    for (const owner of way === 'a role that gets another owner' ? [''] : ['team-one', '']) {
      const holding = await caller(owner)
      await crowd.allowed(holding, await entryFor(holding))
    }
  })

  test('for all owners, by who holds it for all', async () => {
    const entry = roleEntry(null, { permissions: [right] })
    await crowd.refused(await caller('team-one'), entry, `the permission ${right}, and the caller has not`)
    await crowd.allowed(await caller(''), entry)
  })
})

test('all other permissions together do not imply it, and superusers have it', async () => {
  expect(mayReadSecrets(await caller(null), 'oauth2provider', 'team-one')).toBe(false)
  expect(mayReadSecrets(await caller('team-one'), 'oauth2provider', 'team-one')).toBe(true)
  for (const owner of ['team-two', null])
    expect(mayReadSecrets(await caller('team-one'), 'oauth2provider', owner)).toBe(false)
  expect(mayReadSecrets(await crowd.user({ superuser: true }), 'oauth2provider', null)).toBe(true)
})

test('a user who acts as another needs it, too', async () => {
  const [reading, holding, lacking] = [await caller('team-one'), await caller(''), await caller(null)]
  const mayAs = (real: Actor) => {
    const acting = actAs(real, reading) ?? expect.fail('no actor')
    return mayReadSecrets(acting, 'oauth2provider', 'team-one')
  }
  expect([holding, await crowd.user({ superuser: true }), lacking].map(mayAs)).toEqual([true, true, false])
})

test('no shipped role has it', async () => {
  const { db: installed } = await freshDatabase({ isInstalled: true })
  const roles = await installed.role.findMany()
  expect(roles.length).toBeGreaterThan(0)
  for (const { permissions } of roles) {
    expect(permissions).toContain('view_oauth2provider')
    expect(permissions.filter((each) => /^(read_|record_)/.test(each))).toEqual([])
  }
})
