import { expect, test } from 'vitest'
import { freshDatabase, rows, sql } from '../support/kit.ts'

/**
 * An apply pays for each index of the tables that it writes; those of stacks are paid for by applies of a stack alone. A first apply
 * has two entries for servers that follow changes, and one that changes nothing has none. Of the runs, those of CI jobs alone have an
 * entry by commit. No apply writes the tokens of jobs.
 */
const most = 87

test(`the tables have at most ${most} indexes: one more needs a statement that is worth it`, async () => {
  const { db } = await freshDatabase()
  const found = await rows<{ name: string }>(
    db,
    sql`SELECT indexname AS name FROM pg_indexes WHERE schemaname = 'public' AND tablename <> '_prisma_migrations' ORDER BY 1`,
  )
  expect(found.length, found.map(({ name }) => name).join(', ')).toBeLessThanOrEqual(most)
  expect(found.length).toBeGreaterThan(most - 10)
})
