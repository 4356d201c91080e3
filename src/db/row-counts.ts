import { z } from 'zod'
import { type Db, transaction } from './client.ts'
import { rowCountsLock } from './locks.ts'
import { execute, query } from './raw.ts'

/** A table with more count rows than this is added up: a list reads all of them for its size. */
const manyRows = 200

/**
 * Adds up the counts of rows. Triggers write a row for each statement that creates or deletes rows
 * (docs/adr/0012-lists-know-their-size.md); this replaces them by their sum. A reader sees either the rows or the sum; no writer
 * waits.
 *
 * @param many a table with at most this many count rows stays as it is
 * @throws as `transaction` does; the next call adds up the same rows
 */
export async function addUp(db: Db, many = manyRows): Promise<void> {
  const long = await query(db, z.object({ name: z.string() }), {
    text: 'SELECT table_name AS name FROM row_counts GROUP BY table_name HAVING count(*) > $1::bigint',
    values: [many],
  })
  if (long.length === 0) return
  await transaction(db, async (tx) => {
    // Another addition, or a TRUNCATE, at the same time would miss the new sum.
    const [lock] = await query(tx, z.object({ taken: z.boolean() }), {
      text: `SELECT pg_try_advisory_xact_lock(${rowCountsLock}) AS taken`,
      values: [],
    })
    if (lock?.taken !== true) return
    await execute(tx, {
      text: `WITH gone AS (
          DELETE FROM row_counts WHERE table_name = ANY($1::text[]) RETURNING table_name, rows
        ) INSERT INTO row_counts (table_name, rows)
          SELECT table_name, sum(rows) FROM gone GROUP BY table_name HAVING sum(rows) <> 0`,
      values: [long.map(({ name }) => name)],
    })
  })
}
