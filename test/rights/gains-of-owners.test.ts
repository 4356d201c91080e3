import { expect, test } from 'vitest'
import { nothingAllowed } from '../../src/plan/engine.ts'
import { bench } from '../apply/engine.ts'
import { rows, sql } from '../support/sql.ts'
import { groupEntry, people, roleEntry } from './people.ts'

/** What roles that are bound to owners give to users whom a document does not name. */

const there = await bench()
const { db } = there
const crowd = people(there)

/** A user with a role of these owners, by a group that another user does not have. */
async function wearer(owners: string[]) {
  const role = await crowd.role(['change_application'])
  await rows(db, sql`UPDATE roles SET owners = ${owners} WHERE pk = ${role}`)
  const user = await crowd.user()
  const group = await crowd.group({ users: [user.pk] })
  await rows(db, sql`INSERT INTO group_roles (group_pk, role_pk) VALUES (${group}, ${role})`)
  return { role, user, group }
}

/** The refusal, which the check and the worker say in the same words; null when both apply it. */
async function refusal(entries: Parameters<typeof there.check>[0]): Promise<string | null> {
  const allow = { allow: nothingAllowed }
  const checked = await there.check(entries, undefined, allow).then(
    () => null,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  )
  if (checked === null) await there.apply(entries, undefined, allow)
  else expect((await there.refusal(entries, undefined, allow)).logs.join()).toBe(`rolled back: ${checked.slice(0, -1)}`)
  return checked
}

test('owners that an entry gives to a role count, whatever a later entry gives it', async () => {
  const { role, user } = await wearer(['team-one'])
  const document = [
    roleEntry(role, { owners: ['team-one', 'team-two'] }),
    roleEntry(role, { permissions: ['change_application', 'add_application'] }),
  ]
  const text = await refusal(document)
  for (const right of ['add_application for owner "team-two"', 'change_application for owner "team-two"'])
    expect(text).toContain(right)
  expect(text).toContain(user.username)
})

test('who holds a permission for all owners by another group does not gain it for one', async () => {
  const { role, user } = await wearer(['team-one'])
  const more = [roleEntry(role, { owners: ['team-one', 'team-two'] })]
  expect(await refusal(more)).toContain(user.username)
  await crowd.group({ permissions: ['change_application'], users: [user.pk] })
  expect(await refusal(more)).toBeNull()
})

test('a role for all owners is a gain for who wears one of one owner', async () => {
  const { user, group } = await wearer(['team-one'])
  const text = await refusal([groupEntry(group, { roles: [await crowd.role(['change_application'])] })])
  expect(text).toContain(`${user.username} (change_application)`)
})
