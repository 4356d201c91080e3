import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Refusal } from '../../src/apply/refusal.ts'
import { viewKey } from '../../src/apply/token-key.ts'
import { reader } from '../../src/db/engine-tx.ts'
import { Problem } from '../../src/errors.ts'
import type { Actor } from '../../src/permissions.ts'
import { actAs, actorByToken, actorOfUser } from '../../src/rights/actor.ts'
import { bench } from '../apply/engine.ts'
import { rows, sql } from '../support/sql.ts'
import { people, tokenEntry } from './people.ts'

/**
 * While others are promoted and demoted by the operator, delegates make tokens for them and view keys, with their own
 * token or with any in their hands, and while impersonating. No key in a delegate's hands ever carries more than that
 * delegate has held.
 */

const there = await bench()
const crowd = people(there)
const { db, engine } = there

const treasures = ['view_user', 'view_group', 'view_role', 'delete_user']

/** What a user holds by the tables: not by the product's own statement. */
async function heldBy(user: number): Promise<Set<string>> {
  const found = await rows<{ permission: string }>(
    db,
    sql`
    SELECT p AS permission FROM memberships m JOIN group_roles gr ON gr.group_pk = m.group_pk
      JOIN roles r ON r.pk = gr.role_pk, unnest(r.permissions) p WHERE m.user_pk = ${user}
    UNION SELECT 'everything' FROM memberships m JOIN groups g ON g.pk = m.group_pk
      WHERE m.user_pk = ${user} AND g.is_superuser`,
  )
  return new Set(found.map(({ permission }) => permission))
}

type Hands = { readonly pk: number; readonly secrets: string[]; readonly held: Set<string> }
type World = {
  readonly delegates: readonly Hands[]
  readonly users: readonly number[]
  readonly groups: readonly string[]
  readonly tokens: string[]
}

async function world(): Promise<World> {
  const delegates = [
    await crowd.user({ permissions: ['add_token', 'view_token_key', 'impersonate', 'view_user'] }),
    await crowd.user({ permissions: ['add_token', 'view_token_key', 'view_group'] }),
  ]
  const others = [await crowd.user(), await crowd.user(), await crowd.user({ permissions: ['view_user'] })]
  const hands = await Promise.all(
    delegates.map(async ({ pk }) => ({ pk, secrets: [] as string[], held: await heldBy(pk) })),
  )
  const users = [...delegates, ...others].map(({ pk }) => pk)
  const made: World = { delegates: hands, users, groups: others.map(({ own }) => own), tokens: [] }
  for (const user of users) await create(made, null, user)
  return made
}

/** @param actor null: the service itself @returns whether the token was made */
async function create({ tokens }: World, actor: Actor | null, user: number): Promise<boolean> {
  const entry = tokenEntry(null, { user })
  const outcome = await there.apply([entry], actor ?? undefined).catch((error: unknown) => error)
  if (outcome instanceof Refusal) return false
  expect(outcome).not.toBeInstanceOf(Error)
  tokens.push(String(entry.identifiers?.identifier))
  return true
}

/** The operator gives a group another role, or makes superusers of its members, or takes both away. */
async function promote(group: string, permission: string, isSuperuser: boolean): Promise<void> {
  await rows(db, sql`DELETE FROM group_roles WHERE group_pk = ${group}`)
  const role = await crowd.role([permission])
  await rows(db, sql`INSERT INTO group_roles (group_pk, role_pk) VALUES (${group}, ${role})`)
  await rows(db, sql`UPDATE groups SET is_superuser = ${isSuperuser} WHERE pk = ${group}`)
}

test('no key in the hands of a delegate carries more than the delegate has held', async () => {
  const count = { made: 0, viewed: 0, byKey: 0, impersonating: 0, beyond: 0 }
  const sequence = fc.array(fc.tuple(...Array.from({ length: 7 }, () => fc.nat(9_999))), {
    minLength: 20,
    maxLength: 30,
  })
  await fc.assert(
    fc.asyncProperty(sequence, async (steps) => {
      const made = await world()
      for (const dice of steps) {
        let die = 0
        const pick = <Item>(from: readonly Item[]): Item => {
          die += 1
          return from[(dice[die % dice.length] ?? 0) % from.length] as Item
        }
        if (pick([true, false, false])) await promote(pick(made.groups), pick(treasures), pick([true, false]))
        else await act(made, pick)
        for (const { pk, secrets, held } of made.delegates)
          for (const secret of secrets) {
            const actor = await actorByToken(reader(db), secret)
            const carries = actor?.isSuperuser ? ['everything'] : [...(actor?.permissions ?? [])]
            expect(
              carries.filter((right) => !held.has(right)),
              `in the hands of ${pk}`,
            ).toEqual([])
            if ((await heldBy(actor?.pk ?? 0)).difference(held).size > 0) count.beyond += 1
          }
      }
    }),
    { numRuns: 25, endOnFailure: true },
  )

  async function act(made: World, pick: <Item>(from: readonly Item[]) => Item): Promise<void> {
    const hands = pick(made.delegates)
    const secret = pick([undefined, ...hands.secrets, ...hands.secrets])
    const self = await (secret === undefined
      ? actorOfUser(reader(db), { pk: hands.pk })
      : actorByToken(reader(db), secret))
    const effective = pick([true, false, false]) ? await actorOfUser(reader(db), { pk: pick(made.users) }) : null
    const actor = self && (effective === null ? self : actAs(self, effective))
    if (actor === null) return
    if (await create(made, actor, pick([actor.pk ?? 0, ...made.users]))) count.made += 1
    const token = pick(made.tokens.slice(-4))
    const key = await viewKey(db, engine, actor, token, randomUUID()).catch((error: unknown) => error)
    if (typeof key !== 'string') {
      expect(key).toBeInstanceOf(Problem)
      return
    }
    hands.secrets.push(key)
    count.viewed += 1
    if (secret !== undefined) count.byKey += 1
    if (effective !== null) count.impersonating += 1
  }

  // Else the test would prove nothing: users of keys in their hands gained more than the delegates held.
  expect(Math.min(...Object.values(count)), JSON.stringify(count)).toBeGreaterThan(2)
  expect(count.beyond, JSON.stringify(count)).toBeGreaterThan(20)
}, 120_000)
