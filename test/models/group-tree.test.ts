import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { brokenConstraint } from '../../src/db/errors.ts'
import { uuid7 } from '../../src/ids.ts'
import { freshDatabase, rows, sql } from '../support/kit.ts'

const { db, pool } = await freshDatabase({ max: 4 })

async function group(parent: string | null = null): Promise<string> {
  const pk = uuid7()
  await rows(db, sql`INSERT INTO groups (pk, name, parent) VALUES (${pk}, ${randomUUID()}, ${parent}::uuid)`)
  return pk
}

/** @returns the violated constraint, which Prisma does not report */
const move = (pk: string, parent: string | null): Promise<string | undefined> =>
  pool.query('UPDATE groups SET parent = $1 WHERE pk = $2', [parent, pk]).then(
    () => undefined,
    (error: unknown) => brokenConstraint(error)?.constraint ?? String(error),
  )

/** The ancestors that the trigger stores, and those that a recursive walk finds. */
async function expectTrueAncestors() {
  const kept = await rows(db, sql`SELECT group_pk, ancestor_pk FROM group_ancestors ORDER BY 1, 2`)
  const walked = await rows(
    db,
    sql`
    WITH RECURSIVE chain AS (
      SELECT pk AS group_pk, pk AS ancestor_pk FROM groups
      UNION ALL SELECT c.group_pk, g.parent FROM chain c JOIN groups g ON g.pk = c.ancestor_pk WHERE g.parent IS NOT NULL
    ) SELECT group_pk, ancestor_pk FROM chain ORDER BY 1, 2`,
  )
  expect(kept).toEqual(walked)
}

test('the stored ancestors are right after every move', async () => {
  const groups: string[] = []
  const one = fc.nat(11)
  const parents = fc.sample(fc.option(one), 12)
  for (const parent of parents)
    groups.push(await group(parent === null ? null : (groups[parent % groups.length] ?? null)))
  await expectTrueAncestors()
  const refused = new Set<string | undefined>()
  const moves = fc.sample(fc.tuple(one, fc.option(one)), 60)
  for (const [at, below] of moves)
    refused.add(await move(groups[at] ?? '', below === null ? null : (groups[below] ?? null)))
  await expectTrueAncestors()
  expect([...refused].sort()).toEqual(['groups_have_no_cycle', 'groups_is_not_its_own_parent', undefined])
  await rows(db, sql`DELETE FROM groups g WHERE NOT EXISTS (SELECT FROM groups c WHERE c.parent = g.pk)`)
  await expectTrueAncestors()
})

test('of two concurrent moves that would form a circle, one is refused', async () => {
  for (let round = 0; round < 40; round += 1) {
    const [a, b] = [await group(), await group()]
    const outcomes = await Promise.all([move(a, b), move(b, a)])
    expect(outcomes.filter((constraint) => constraint === undefined)).toHaveLength(1)
    // The two transactions lock the rows in opposite order: either rule may end it.
    expect(outcomes.filter((constraint) => constraint !== undefined)).toHaveLength(1)
  }
  await expectTrueAncestors()
})
