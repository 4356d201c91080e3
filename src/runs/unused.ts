import type { Db } from '../db/client.ts'
import { execute } from '../db/raw.ts'

/** Tables of what many runs have in common, with their keys. A row is used for a day before that is written down again. */
const shared = { shared_results: 'key', run_titles: 'pk' } as const

/**
 * Deletes some of the rows that no run has any more. All runs that have a row were recorded until a day after `used_at`; so
 * they are too old, and none is left that is.
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
