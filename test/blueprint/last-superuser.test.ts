import { beforeEach, describe, expect, test } from 'vitest'
import type { Entry } from '../../src/blueprint/document.ts'
import { write } from '../../src/blueprint/write.ts'
import { transaction } from '../../src/db/client.ts'
import { sql } from '../../src/db/sql.ts'
import { Problem } from '../../src/errors.ts'
import { system } from '../../src/permissions.ts'
import { bench } from './engine.ts'
import { absent, groupEntry, people, type Somebody, userEntry } from './people.ts'

/** The last active superuser is not lost, by whatever path, whoever asks, and whoever asks at the same time. */

const there = await bench()
const crowd = people(there)
let root: Somebody
beforeEach(async () => {
  await there.db.query(sql`UPDATE groups SET is_superuser = false`)
  root = await crowd.user({ superuser: true })
})

const message = 'Would leave no active superuser.'

async function kept(entry: Partial<Entry>, member?: string): Promise<void> {
  const at = member === undefined ? 'entries.0' : `entries.0.${member}`
  expect((await there.refusal([entry], root)).logs).toEqual([`rolled back: ${at}: ${message}`])
}

describe('it is refused', () => {
  test('to take the flag away', () => kept(groupEntry(root.own, { is_superuser: false }), 'is_superuser'))
  test('to take him out of the group', () => kept(groupEntry(root.own, { users: [] }), 'users'))
  test('to put another there who is not active', async () => {
    const { pk } = await crowd.user({ active: false })
    await kept(groupEntry(root.own, { users: [pk] }), 'users')
  })
  test('that he leaves', () => kept(userEntry(root.pk, { groups: [] }), 'groups'))
  test('to deactivate him', () => kept(userEntry(root.pk, { is_active: false }), 'is_active'))
  test('to delete him', () => kept(absent(userEntry(root.pk))))
  test('to delete the group', () => kept(absent(groupEntry(root.own))))

  test('to move a group out of the chain by which he is one, or to take the flag from its top', async () => {
    const top = await crowd.group({ superuser: true })
    const low = await crowd.group({ parent: top, users: [root.pk] })
    await there.apply([groupEntry(root.own, { is_superuser: false })], root)
    await kept(groupEntry(low, { parent: null }), 'parent')
    await kept(groupEntry(top, { is_superuser: false }), 'is_superuser')
    await there.apply([groupEntry(low, { is_superuser: true, parent: null })], root)
  })
})

test('the flag may go round within one document: what counts is the end', async () => {
  const next = await crowd.user()
  await there.apply([groupEntry(root.own, { is_superuser: false }), groupEntry(next.own, { is_superuser: true })], root)
  const entries = [userEntry(next.pk, { is_active: false })]
  expect((await there.refusal(entries, system)).logs[0]).toContain(message)
})

test('an inactive superuser is none', async () => {
  await crowd.user({ superuser: true, active: false })
  await kept(userEntry(root.pk, { is_active: false }), 'is_active')
})

test('of two superusers who take each other away at the same time, one remains', async () => {
  for (let round = 0; round < 10; round += 1) {
    await there.db.query(sql`UPDATE groups SET is_superuser = false`)
    const [a, b] = [await crowd.user({ superuser: true }), await crowd.user({ superuser: true })]
    const away = [
      (of: Somebody) => userEntry(of.pk, { is_active: false }),
      (of: Somebody) => groupEntry(of.own, { users: [] }),
      (of: Somebody) => absent(userEntry(of.pk)),
      (of: Somebody) => groupEntry(of.own, { is_superuser: false }),
    ]
    const [first, second] = [away[round % away.length], away[(2 * round + 1) % away.length]]
    if (first === undefined || second === undefined) throw new Error('no way')
    const outcomes = await Promise.allSettled([there.apply([first(b)], a), there.apply([second(a)], b)])
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    const rest = await there.db.query(sql`
      SELECT FROM groups g JOIN memberships m ON m.group_pk = g.pk JOIN users u ON u.pk = m.user_pk WHERE g.is_superuser AND u.is_active`)
    expect(rest).toHaveLength(1)
  }
})

describe('groups that move at the same time', () => {
  test('never close a circle in a thousand rounds, and the loser is told where', async () => {
    let refused = 0
    for (let round = 0; round < 1_000; round += 1) {
      const [a, b, c] = [await crowd.group(), await crowd.group(), await crowd.group()]
      const move = (group: string, parent: string) =>
        write(
          there.db,
          there.engine,
          system,
          { model: 'service_core.group', mode: { change: group }, members: { parent }, requestId: 'r' },
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
    expect(refused).toBe(1_000)
  }, 60_000)
})

test('a flag and a member that meet: nobody becomes a superuser by two who are none', async () => {
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

test('the database itself refuses a circle, should nobody have looked', async () => {
  const a = await crowd.group()
  const b = await crowd.group({ parent: a })
  const closing = transaction(there.db, (tx) => tx.query(sql`UPDATE groups SET parent = ${b} WHERE pk = ${a}`))
  await expect(closing).rejects.toThrow('would be above itself')
})
