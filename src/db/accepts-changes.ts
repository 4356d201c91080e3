import { z } from 'zod'
import type { Db } from './client.ts'
import { failureCode, refusesWrites } from './errors.ts'
import { query } from './raw.ts'

const answer = z.object({ isReadOnly: z.boolean(), rows: z.int() })

const diskFull = '53100'
/** The code of PostgreSQL when the operator allows smaller temporary files than this writes. The answer is not known then. */
const limitReached = '53400'

/**
 * Checks whether the database takes changes, although it answers. It writes half a megabyte to a temporary file, which is removed
 * at once: a small change of a table finds room in a page for long after the disk is full. The settings hold for this statement
 * alone, and come before the rows, because these depend on them.
 *
 * @returns why it takes none; null when it does
 * @throws when it does not answer
 */
export async function whyNoChanges(db: Db): Promise<string | null> {
  try {
    const [found] = await query(db, answer, {
      text: `SELECT current_setting('transaction_read_only') = 'on' AS "isReadOnly", count(*)::integer AS rows
        FROM (SELECT set_config('work_mem', '64kB', true) AS room, set_config('temp_tablespaces', '', true) AS place) AS set,
          LATERAL generate_series(1, 40000 + 0 * length(set.room || set.place))`,
      values: [],
    })
    return found?.isReadOnly === true ? 'it is read-only' : null
  } catch (error) {
    const code = failureCode(error)
    if (code === limitReached) return null
    if (code === diskFull) return 'its disk is full'
    if (refusesWrites(error)) return `it cannot write (${code})`
    throw error
  }
}
