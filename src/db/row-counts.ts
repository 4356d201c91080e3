import { type Db, transaction } from './client.ts'
import { sql } from './sql.ts'

/** Rows of one table beyond which they are worth adding up: a list reads all of them for its size. */
const manyRows = 200

/**
 * Adds up what each statement that created or deleted wrote (docs/adr/0012-lists-know-their-size.md). Whoever reads a
 * size meanwhile sees either all the rows or their sum; who creates or deletes waits for nobody.
 *
 * @param many a table with more rows than this is added up
 * @throws as `transaction` does; nothing is lost by leaving it for the next time
 */
export async function addUp(db: Db, many = manyRows): Promise<void> {
  const long = await db.query<{ name: string }>(
    sql`SELECT table_name AS name FROM row_counts GROUP BY table_name HAVING count(*) > ${many}::bigint`,
  )
  if (long.length === 0) return
  await transaction(db, async (tx) => {
    // Two at once, or one beside a TRUNCATE, would each see rows and miss the other's sum.
    const [lock] = await tx.query<{ taken: boolean }>(
      sql`SELECT pg_try_advisory_xact_lock('"row_counts"'::regclass::oid::bigint) AS taken`,
    )
    if (lock?.taken !== true) return
    await tx.query(sql`
      WITH gone AS (
        DELETE FROM row_counts WHERE table_name = ANY(${long.map(({ name }) => name)}::text[]) RETURNING table_name, rows
      ) INSERT INTO row_counts (table_name, rows) SELECT table_name, sum(rows) FROM gone GROUP BY table_name HAVING sum(rows) <> 0`)
  })
}
