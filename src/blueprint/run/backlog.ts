import { bounded } from '../../db/bounded.ts'
import type { Db, Queryable } from '../../db/client.ts'
import { sql } from '../../db/sql.ts'
import { Problem } from '../../errors.ts'

/** How many runs wait for a worker, and the bound on it: a queue without one only hides that nobody works. */

/** More than workers finish within the time that a submitter waits; whoever came later would wait for nothing. */
const maxWaiting = 2_000
const sampleEveryMs = 1_000
const sampleWithinMs = 800
const retryAfterS = 5

/** Runs that are queued, and the age of the oldest in seconds (0 when there is none). */
export async function readBacklog(q: Queryable): Promise<{ waiting: number; oldestS: number }> {
  const [row] = await q.query<{ waiting: number; oldestS: number }>(sql`
    SELECT count(*) AS waiting, coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8 AS "oldestS"
    FROM runs WHERE state = 'queued'`)
  return row ?? { waiting: 0, oldestS: 0 }
}

export type Backlog = {
  /**
   * Lets a submission in.
   *
   * @returns to be called when it has ended
   * @throws {Problem} `not_applied` at once when too many wait already; nothing was recorded
   */
  enter(): () => void
  close(): void
}

/**
 * Watches the backlog: the runs of all processes as the database had them a second ago at most, and those of this
 * process exactly, so that a burst between two samples is bounded too.
 *
 * @param limit runs that may wait
 */
export function startBacklog(db: Db, { limit = maxWaiting }: { limit?: number } = {}): Backlog {
  const quick = bounded(db, sampleWithinMs)
  let sampled = 0
  let inside = 0
  let sampling = false

  async function sample(): Promise<void> {
    if (sampling) return
    sampling = true
    try {
      sampled = (await readBacklog(quick)).waiting
    } catch {
      // A database that is away refuses submissions by itself; when it is back, the old number says nothing.
      sampled = 0
    } finally {
      sampling = false
    }
  }

  void sample()
  const timer = setInterval(sample, sampleEveryMs)
  timer.unref()
  return {
    enter: () => {
      const waiting = Math.max(sampled, inside)
      if (waiting >= limit) {
        throw new Problem(
          'not_applied',
          `Not applied: ${waiting} submissions are waiting for a worker already. Nothing was changed; try again shortly.`,
          { retryAfterS },
        )
      }
      inside += 1
      return () => {
        inside -= 1
      }
    },
    close: () => clearInterval(timer),
  }
}
