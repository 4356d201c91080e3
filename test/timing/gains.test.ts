import { expect, test } from 'vitest'
import { reader } from '../../src/db/engine-tx.ts'
import { gainRow, gainStatement } from '../../src/rights/gains-sql.ts'
import { bench } from '../apply/engine.ts'
import { people } from '../rights/people.ts'
import { rows, sql } from '../support/sql.ts'

/** Who gains rights is asked once for a document, however many users wear a role. */

const there = await bench()
const { db } = there
const crowd = people(there)

/** What any answer has to read: who wears the role, and which rights they have by all of their groups. */
const floor = (group: string) => sql`SELECT count(*) FROM (SELECT DISTINCT m.user_pk, p FROM memberships w
  JOIN memberships m ON m.user_pk = w.user_pk JOIN group_ancestors a ON a.group_pk = m.group_pk
  JOIN group_roles gr ON gr.group_pk = a.ancestor_pk JOIN roles r ON r.pk = gr.role_pk, unnest(r.rights) p
  WHERE w.group_pk = ${group}::uuid) worn`

test('who gains by a role that 10 000 users wear is found in little more time than it takes to read them', async () => {
  const role = await crowd.role([])
  const groups = await Promise.all(Array.from({ length: 10 }, () => crowd.group({ permissions: ['view_group'] })))
  const [group = ''] = groups
  await rows(db, sql`INSERT INTO group_roles (group_pk, role_pk) VALUES (${group}, ${role})`)
  await rows(
    db,
    sql`WITH made AS (INSERT INTO users (uuid, username)
        SELECT gen_random_uuid(), 'worn-' || n FROM generate_series(1, 10000) n RETURNING pk)
      INSERT INTO memberships (group_pk, user_pk)
        SELECT unnest(ARRAY[${group}::uuid, (${groups}::uuid[])[2 + pk % 9], (${groups}::uuid[])[2 + pk % 7]]), pk FROM made
        ON CONFLICT DO NOTHING`,
  )
  await rows(db, sql`ANALYZE`)
  const states = (permissions: string[]) => ({ groups: [], roles: [{ pk: role, permissions }] })
  const none = { joined: [], left: [] }
  const times: number[] = []
  const floors: number[] = []
  const given = [['view_user'], ['add_user'], ['view_role'], ['change_user', 'view_user', 'add_role']]
  for (const permissions of Array.from({ length: 4 }, () => given).flat()) {
    const statement = gainStatement({ before: states([]), after: states(permissions), ...none }, noNames, false)
    const began = performance.now()
    await rows(db, floor(group))
    floors.push(performance.now() - began)
    const from = performance.now()
    const [first] = await reader(db).query(gainRow, statement)
    times.push(performance.now() - from)
    expect(first).toMatchObject({ total: 10_000, gained: permissions.toSorted() })
  }
  const [cost, base] = [Math.min(...times), Math.min(...floors)]
  console.info(`the statement ${cost.toFixed(1)} ms, the floor ${base.toFixed(1)} ms`)
  // 42 ms and 14 ms on a quiet machine.
  expect(cost / base).toBeLessThan(6)
})

const noNames = { keys: new Set<number>(), names: new Set<string>() }
