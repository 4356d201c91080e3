import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'
import { query } from '../db/raw.ts'
import { Problem } from '../errors.ts'

/** The number of runs that wait for a worker, and its limit. */

/** More runs than workers finish while a submitter waits: a further submission would be cancelled anyway. */
const maxWaiting = 2_000
const sampleEveryMs = 1_000
const retryAfterS = 5

const backlogRow = z.object({ waiting: z.int(), oldest: z.date().nullable() })

/**
 * The number of queued runs, and when the oldest was recorded. Raw SQL: the state must stand in the text, or PostgreSQL
 * reads all runs instead of the index of those that are queued.
 */
export async function readBacklog(db: Db): Promise<z.output<typeof backlogRow>> {
  const [row] = await query(db, backlogRow, {
    text: `SELECT count(*)::integer AS waiting, min(created_at) AS oldest FROM runs WHERE state = 'queued'`,
    values: [],
  })
  return row ?? { waiting: 0, oldest: null }
}

export type Backlog = {
  /**
   * Admits a submission.
   *
   * @returns call it when the submission has ended
   * @throws {Problem} `unavailable` at once when too many wait already; nothing was recorded
   */
  enter(): () => void
}

/**
 * Limits the backlog. The runs of all processes are sampled once a second, while there are submissions. Those of this
 * process are counted exactly, so that a burst between two samples is limited too.
 */
export function openBacklog(db: Db, { limit = maxWaiting }: { limit?: number } = {}): Backlog {
  let sampled = 0
  let sampledAt = Number.NEGATIVE_INFINITY
  let inside = 0

  function sample(): void {
    if (performance.now() - sampledAt < sampleEveryMs) return
    sampledAt = performance.now()
    inTime(readBacklog(db)).then(
      ({ waiting }) => {
        sampled = waiting
      },
      () => {
        // The database is away and refuses submissions itself. When it is back, the old number is out of date.
        sampled = 0
      },
    )
  }

  return {
    enter: () => {
      sample()
      const waiting = Math.max(sampled, inside)
      if (waiting >= limit) {
        throw new Problem(
          'unavailable',
          `Not applied: ${waiting} submissions are waiting for a worker already. Nothing was changed; try again shortly.`,
          { retryAfterS },
        )
      }
      inside += 1
      return () => {
        inside -= 1
      }
    },
  }
}
