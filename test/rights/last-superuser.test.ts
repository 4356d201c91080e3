import { beforeEach, describe, expect, inject, test } from 'vitest'
import { write } from '../../src/apply/write.ts'
import { transaction } from '../../src/db/client.ts'
import type { Entry } from '../../src/document/document.ts'
import { Problem } from '../../src/errors.ts'
import { system } from '../../src/permissions.ts'
import { bench } from '../apply/engine.ts'
import { rows, sql } from '../support/sql.ts'
import { absent, groupEntry, type Person, people, tokenEntry, userEntry } from './people.ts'

/**
 * The last superuser who can authenticate cannot be removed: by any kind of change, by any caller, or by concurrent
 * changes. Who can: active, with an unexpired `api` token.
 */

const there = await bench()
const crowd = people(there)
let root: Person
let key: string
beforeEach(async () => {
  await rows(there.db, sql`UPDATE groups SET is_superuser = false`)
  root = await crowd.user({ superuser: true })
  ;({ pk: key } = await there.db.token.findFirstOrThrow({ where: { userPk: root.pk } }))
})

const ahead = (ms: number) => new Date(Date.now() + ms)
const dayMs = 86_400_000

const message =
  'Would leave no superuser who can authenticate: first give an active superuser another api token that has not expired.'

async function kept(entry: Partial<Entry>, field?: string): Promise<void> {
  const at = field === undefined ? 'entries.0' : `entries.0.${field}`
  expect((await there.refusal([entry], root)).logs).toEqual([`rolled back: ${at}: ${message}`])
}

describe('it is an error', () => {
  test('to remove the flag', () => kept(groupEntry(root.own, { is_superuser: false }), 'is_superuser'))
  test('to remove the superuser from the group', () => kept(groupEntry(root.own, { users: [] }), 'users'))
  test('to replace the superuser by an inactive user', async () => {
    const { pk } = await crowd.user({ active: false })
    await kept(groupEntry(root.own, { users: [pk] }), 'users')
  })
  test('to remove the group from the user', () => kept(userEntry(root.pk, { groups: [] }), 'groups'))
  test('to deactivate the superuser', () => kept(userEntry(root.pk, { is_active: false }), 'is_active'))
  test('to delete the superuser', () => kept(absent(userEntry(root.pk))))
  test('to delete the group', () => kept(absent(groupEntry(root.own))))

  test('to delete the only token', () => kept(absent(tokenEntry(key))))
  test.each([undefined, 1_000, 300 * dayMs])('to let the only token expire in %s ms', async (ms) => {
    const entry = tokenEntry(key, { expiring: true, ...(ms !== undefined && { expires: ahead(ms).toISOString() }) })
    const { logs } = await there.refusal([entry], root)
    expect(logs).toEqual([
      'rolled back, for these reasons:',
      ...['expires', 'expiring'].map((name) => `entries.0.${name}: ${message}`),
    ])
  })

  test('to move the end of the only token forward', async () => {
    await rows(there.db, sql`UPDATE tokens SET expiring = true, expires = ${ahead(20 * dayMs)} WHERE pk = ${key}`)
    await kept(tokenEntry(key, { expires: ahead(10 * dayMs).toISOString() }), 'expires')
    await crowd.allowed(root, tokenEntry(key, { expires: ahead(30 * dayMs).toISOString() }))
    await crowd.allowed(root, tokenEntry(key, { expiring: false }))
  })

  test('to move a group away from the ancestor with the flag, or to remove the flag there', async () => {
    const top = await crowd.group({ superuser: true })
    const low = await crowd.group({ parent: top, users: [root.pk] })
    await there.apply([groupEntry(root.own, { is_superuser: false })], root)
    await kept(groupEntry(low, { parent: null }), 'parent')
    await kept(groupEntry(top, { is_superuser: false }), 'is_superuser')
    await there.apply([groupEntry(low, { is_superuser: true, parent: null })], root)
  })
})

test('a document may remove the flag and set it again: only the result is checked', async () => {
  const next = await crowd.user()
  await crowd.token(next.pk)
  await there.apply([groupEntry(root.own, { is_superuser: false }), groupEntry(next.own, { is_superuser: true })], root)
  const entries = [userEntry(next.pk, { is_active: false })]
  expect((await there.refusal(entries, system)).logs[0]).toContain(message)
})

describe('another superuser counts', () => {
  const away = () => [
    groupEntry(root.own, { is_superuser: false }),
    groupEntry(root.own, { users: [] }),
    userEntry(root.pk, { groups: [] }),
    userEntry(root.pk, { is_active: false }),
    absent(tokenEntry(key)),
    absent(userEntry(root.pk)),
    absent(groupEntry(root.own)),
  ]
  const without = async (change: (pk: number) => Promise<unknown>): Promise<Person> => {
    const other = await crowd.user({ superuser: true })
    await rows(there.db, sql`DELETE FROM tokens WHERE user_pk = ${other.pk}`)
    await change(other.pk)
    for (const entry of away()) expect((await there.refusal([entry], root)).logs[0]).toContain(message)
    return other
  }

  test.each<[string, Parameters<typeof crowd.token>[1] | null]>([
    ['without a token', null],
    ['with an expired token', { expires: ahead(-1) }],
    ['with a token of the intent app_password', { intent: 'app_password' }],
    ['with a token of the intent recovery', { intent: 'recovery' }],
    ['with a token of the intent verification', { intent: 'verification' }],
    ['with a token that carries less than all rights', { ceiling: ['view_user'] }],
  ])('not %s', async (_, options) => {
    await without(async (pk) => options && crowd.token(pk, options))
  })

  test('with a token, whether it expires or not', async () => {
    for (const expiry of [{}, { expires: ahead(60_000) }]) {
      const other = await without(async () => undefined)
      await crowd.token(other.pk, expiry)
      await crowd.allowed(root, userEntry(root.pk, { is_active: false }))
      await rows(there.db, sql`UPDATE users SET is_active = true WHERE pk = ${root.pk}`)
      await rows(there.db, sql`UPDATE groups SET is_superuser = false WHERE pk = ${other.own}`)
    }
  })

  test('when the same document gives a token to one', async () => {
    const next = await without(async () => undefined)
    const entries = [absent(tokenEntry(key)), tokenEntry(null, { user: next.pk })]
    expect((await there.apply(entries, root)).audited).toHaveLength(2)
  })
})

test('a second token of the same superuser counts', async () => {
  await crowd.token(root.pk, { expires: ahead(60_000) })
  await crowd.allowed(root, tokenEntry(key, { expires: ahead(1_000).toISOString(), expiring: true }))
  await crowd.allowed(root, absent(tokenEntry(key)))
})

test('a document may create a superuser without a token', async () => {
  const group = await crowd.group({ superuser: true })
  await crowd.allowed(root, userEntry(null, { groups: [group] }))
  const pk = (await crowd.user()).pk
  await crowd.allowed(root, groupEntry(group, { users: [pk] }))
})

test('when all their tokens have expired, changes of others are not to blame', async () => {
  await rows(there.db, sql`DELETE FROM tokens`)
  const ada = await crowd.user({ permissions: ['change_group', 'add_user_to_group', 'disable_group_superuser'] })
  const group = await crowd.group()
  await crowd.allowed(ada, groupEntry(group, { users: [ada.pk] }))
  await crowd.allowed(ada, tokenEntry(await crowd.token(ada.pk), { expiring: true }))
})

test('of two superusers who delete the token of each other at the same time, one remains', async () => {
  for (let round = 0; round < 10; round += 1) {
    await rows(there.db, sql`UPDATE groups SET is_superuser = false`)
    const [a, b] = [await crowd.user({ superuser: true }), await crowd.user({ superuser: true })]
    const keyOf = async ({ pk }: Person) => (await there.db.token.findFirstOrThrow({ where: { userPk: pk } })).pk
    const [ofA, ofB] = [await keyOf(a), await keyOf(b)]
    const outcomes = await Promise.allSettled([
      there.apply([absent(tokenEntry(ofB))], a),
      there.apply([absent(tokenEntry(ofA))], b),
    ])
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  }
})

test('an inactive superuser does not count', async () => {
  await crowd.user({ superuser: true, active: false })
  await kept(userEntry(root.pk, { is_active: false }), 'is_active')
})

test('of two superusers who remove each other at the same time, one remains', async () => {
  for (let round = 0; round < 10; round += 1) {
    await rows(there.db, sql`UPDATE groups SET is_superuser = false`)
    const [a, b] = [await crowd.user({ superuser: true }), await crowd.user({ superuser: true })]
    const away = [
      (of: Person) => userEntry(of.pk, { is_active: false }),
      (of: Person) => groupEntry(of.own, { users: [] }),
      (of: Person) => absent(userEntry(of.pk)),
      (of: Person) => groupEntry(of.own, { is_superuser: false }),
    ]
    const [first, second] = [away[round % away.length], away[(2 * round + 1) % away.length]]
    if (first === undefined || second === undefined) throw new Error('no way')
    const outcomes = await Promise.allSettled([there.apply([first(b)], a), there.apply([second(a)], b)])
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    const rest = await rows(
      there.db,
      sql`
      SELECT FROM groups g JOIN memberships m ON m.group_pk = g.pk JOIN users u ON u.pk = m.user_pk WHERE g.is_superuser AND u.is_active`,
    )
    expect(rest).toHaveLength(1)
  }
})

test('groups that move at the same time never form a circle, and the refused request gets an error of the field', async () => {
  let refused = 0
  const rounds = 40 * inject('rounds')
  for (let round = 0; round < rounds; round += 1) {
    const [a, b, c] = [await crowd.group(), await crowd.group(), await crowd.group()]
    const move = (group: string, parent: string) =>
      write(
        there.db,
        there.engine,
        system,
        { model: 'service_core.group', mode: { change: group }, fields: { parent }, requestId: 'r' },
        async () => 'moved',
      )
    const outcomes = await Promise.allSettled([move(a, b), move(b, c), move(c, a)])
    const losers = outcomes.filter((outcome) => outcome.status === 'rejected')
    expect(losers).toHaveLength(1)
    refused += losers.length
    for (const { reason } of losers) {
      expect(reason).toBeInstanceOf(Problem)
      expect(reason).toMatchObject({
        code: 'invalid',
        fields: { parent: ['Is this group, or stands below it: groups cannot form a circle.'] },
      })
    }
  }
  expect(refused).toBe(rounds)
})

test('a flag and a member that are added concurrently by two others make no superuser', async () => {
  for (let round = 0; round < 20; round += 1) {
    const flagger = await crowd.user({ permissions: ['change_group', 'enable_group_superuser'] })
    const joiner = await crowd.user({ permissions: ['change_user', 'add_user_to_group'] })
    const group = await crowd.group()
    const outcomes = await Promise.allSettled([
      there.apply([groupEntry(group, { is_superuser: true })], flagger),
      there.apply([userEntry(joiner.pk, { groups: [joiner.own, group] })], joiner),
    ])
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  }
})

test('the database refuses a circle without the check of the service', async () => {
  const a = await crowd.group()
  const b = await crowd.group({ parent: a })
  const closing = transaction(there.db, (tx) => rows(tx, sql`UPDATE groups SET parent = ${b} WHERE pk = ${a}`))
  await expect(closing).rejects.toThrow('would be above itself')
})
