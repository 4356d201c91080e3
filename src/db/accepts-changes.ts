import { z } from 'zod'
import { Problem } from '../errors.ts'
import { type Db, transaction } from './client.ts'
import { failureCode, refusesWrites } from './errors.ts'
import { execute, query } from './raw.ts'

const answer = z.object({ isReadOnly: z.boolean(), rows: z.int() })

const diskFull = '53100'
/** The operator allows temporary files less than this writes: nothing is known then. */
const limitReached = '53400'

/**
 * Whether the database takes changes, although it answers. It writes about 1 MB to a temporary file, which is gone at once: a
 * small change of a table finds room in a page for long after the disk is full.
 *
 * @returns why it takes none; null when it does
 * @throws when it does not answer
 */
export async function whyNoChanges(db: Db): Promise<string | null> {
  try {
    return await transaction(db, async (tx) => {
      await execute(tx, {
        text: `SELECT set_config('work_mem', '64kB', true), set_config('temp_tablespaces', '', true)`,
        values: [],
      })
      const [found] = await query(tx, answer, {
        text: `SELECT current_setting('transaction_read_only') = 'on' AS "isReadOnly", count(*)::integer AS rows
          FROM generate_series(1, 40000)`,
        values: [],
      })
      return found?.isReadOnly === true ? 'it is read-only' : null
    })
  } catch (error) {
    const code = failureCode(error instanceof Problem ? error.cause : error)
    if (code === limitReached) return null
    if (code === diskFull) return 'its disk is full'
    if (refusesWrites(error)) return `it cannot write (${code})`
    throw error
  }
}
