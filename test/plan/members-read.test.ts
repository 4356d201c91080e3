import { expect, test } from 'vitest'
import { z } from 'zod'
import { check } from '../../src/apply/check.ts'
import type { EngineTx } from '../../src/db/engine-tx.ts'
import type { Entry } from '../../src/document/document.ts'
import { system } from '../../src/permissions.ts'
import { compile } from '../../src/plan/compile.ts'
import { unconditional } from '../../src/plan/engine.ts'
import { bench } from '../apply/engine.ts'
import { absent, groupEntry, people } from '../rights/people.ts'
import { rows, sql } from '../support/sql.ts'

/** A group may have very many members: they are read for an entry that needs them. */

const there = await bench()
const crowd = people(there)
/** Enough that PostgreSQL, which has counted them, reads one by the index. */
const many = 2_000

async function largeGroup(): Promise<string> {
  const group = await crowd.group()
  await rows(
    there.db,
    sql`WITH made AS (INSERT INTO users (uuid, username)
        SELECT gen_random_uuid(), ${group} || n FROM generate_series(1, ${many}::integer) n RETURNING pk)
      INSERT INTO memberships (group_pk, user_pk) SELECT ${group}::uuid, pk FROM made`,
  )
  await rows(there.db, sql`ANALYZE memberships`)
  return group
}

async function membershipsRead(tx: EngineTx): Promise<number> {
  const [row] = await tx.query(z.object({ rows: z.int() }), {
    text: `SELECT (seq_tup_read + idx_tup_fetch)::integer AS rows FROM pg_stat_xact_user_tables WHERE relname = 'memberships'`,
    values: [],
  })
  return row?.rows ?? 0
}

/** How many memberships are read to judge these entries: how PostgreSQL finds those that are written then is its own matter. */
const readFor = (...entries: Partial<Entry>[]): Promise<number> =>
  there.transaction(async (tx) => {
    const whole = entries.map((each) => ({
      ...{ model: '', state: 'present' as const, identifiers: {}, attrs: {} },
      ...each,
    }))
    const plan = compile({ version: 1, metadata: { name: 'test' }, entries: whole }, there.engine.registry)
    const before = await membershipsRead(tx)
    await check(tx, there.engine, plan, system, unconditional)
    return (await membershipsRead(tx)) - before
  })

test('members are not read for a change that does not send them', async () => {
  const group = await largeGroup()
  expect(await readFor(groupEntry(group, { attributes: { a: 1 } }))).toBe(0)
  expect(await readFor(groupEntry(group, { users: [] }))).toBeGreaterThanOrEqual(many)
})

test('of a list that is edited, the members that it names are read', async () => {
  const group = await largeGroup()
  const [{ user_pk: member = 0 } = {}] = await rows<{ user_pk: number }>(
    there.db,
    sql`SELECT user_pk FROM memberships WHERE group_pk = ${group}::uuid LIMIT 1`,
  )
  expect(await readFor(groupEntry(group, { users: { remove: [member] } }))).toBeLessThan(many / 2)
})

test('members are read for a deletion', async () => {
  expect(await readFor(absent(groupEntry(await largeGroup())))).toBeGreaterThanOrEqual(many)
})
