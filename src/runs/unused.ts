import type { Db } from '../db/client.ts'
import { execute } from '../db/raw.ts'

/** Tables of rows that many runs share, with their keys. The use of a row is written down again after a day. */
const shared = { shared_results: 'key', run_titles: 'pk' } as const

/**
 * Deletes some of the rows that no run names any more. All runs that name a row were recorded until a day after `used_at`: when
 * that is too old, none of these runs is left.
 *
 * @returns how many were deleted
 */
export const deleteUnused = (db: Db, table: keyof typeof shared, runDays: number, most: number): Promise<number> => {
  const key = shared[table]
  // The keys are found first, as in retention.ts.
  return execute(db, {
    text: `WITH unused AS (
        SELECT ${key} FROM ${table} WHERE used_at < now() - make_interval(days => $1::integer + 2)
          AND NOT EXISTS (SELECT FROM runs WHERE created_at < now() - make_interval(days => $1::integer))
        ORDER BY used_at LIMIT ${most} FOR UPDATE SKIP LOCKED
      ) DELETE FROM ${table} WHERE ${key} = ANY (ARRAY(SELECT ${key} FROM unused))`,
    values: [runDays],
  })
}
