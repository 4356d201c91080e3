import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'
import { query } from '../db/raw.ts'
import { Problem } from '../errors.ts'

/** The number of runs that wait for a worker, and the admission of further submissions. */

const backlogRow = z.object({ waiting: z.int(), oldestS: z.number().nullable() })

/**
 * The number of queued runs, and the age of the oldest in seconds. Raw SQL: the state must stand in the text, or PostgreSQL
 * reads all runs instead of the index of those that are queued.
 */
export async function readBacklog(db: Db): Promise<z.output<typeof backlogRow>> {
  const [row] = await query(db, backlogRow, {
    text: `SELECT count(*)::integer AS waiting, extract(epoch FROM now() - min(created_at))::float8 AS "oldestS"
      FROM runs WHERE state = 'queued'`,
    values: [],
  })
  return row ?? { waiting: 0, oldestS: null }
}

export type Backlog = {
  /** @throws {Problem} `unavailable` when too many submissions are inside */
  refuseIfFull(): void
  /**
   * Admits a submission.
   *
   * @throws {Problem} at once: `unavailable` when too many are inside already or the database does not answer,
   *   `cancelled` when no worker takes jobs. Nothing was recorded
   */
  enter(): Promise<Admission>
}

export type Admission = {
  /**
   * The clock of the database, in milliseconds: never ahead of it. A clock that is set back in the meantime makes it
   * later.
   */
  databaseNow(): number
  /** Call it when the submission has ended. @param known its outcome is known, so that its time says something */
  leave(known: boolean): void
}

/** Submissions that take longer lower the limit. Milliseconds. */
const slowMs = 2_500
/** Submissions of this process at the same time. */
const limits = { first: 128, least: 16, most: 2_000 } as const
const lowered = 0.8
const lowerEveryMs = 1_000
const retryAfterS = 2

/**
 * A limit that follows the measured time of submissions: it grows while they are quick and need it, and shrinks by a fifth
 * a second while they are slow (additive increase, multiplicative decrease: RFC 5681 does the same for TCP).
 */
export function adaptiveLimit(): { readonly limit: number; ended(ms: number, inside: number): void } {
  let limit: number = limits.first
  let loweredAt = Number.NEGATIVE_INFINITY
  return {
    get limit() {
      return Math.floor(limit)
    },
    ended: (ms, inside) => {
      if (ms <= slowMs) {
        if (inside > limit / 2) limit = Math.min(limits.most, limit + 1)
        return
      }
      const now = performance.now()
      if (now - loweredAt < lowerEveryMs) return
      loweredAt = now
      limit = Math.max(limits.least, limit * lowered)
    },
  }
}

const sampleRow = z.object({ nowMs: z.number(), silentS: z.number().nullable() })

/** Between two samples, while there are submissions. */
const sampleEveryMs = 1_000
/** An older sample is not used. */
const outdatedMs = 5_000
/** Two and a half probes of the queue. A worker that comes back is noticed by the next sample. */
const silentMostS = 10
const silentEveryMs = 250

/**
 * @param heartbeat the queue whose workers must take jobs, as `queue_heartbeats` names it; undefined: submissions wait
 *   whether workers do or not
 */
export function openBacklog(db: Db, heartbeat?: string): Backlog {
  const adaptive = adaptiveLimit()
  let inside = 0
  let sample: { readonly at: number; readonly nowMs: number; readonly silentS: number | null } | undefined
  let sampling: Promise<void> | undefined

  async function read(): Promise<void> {
    const [row] = await inTime(
      query(db, sampleRow, {
        text: `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS "nowMs",
          (SELECT extract(epoch FROM now() - consumed_at)::float8 FROM queue_heartbeats WHERE queue = $1) AS "silentS"`,
        values: [heartbeat ?? ''],
      }),
    )
    if (row !== undefined) sample = { at: performance.now(), ...row }
  }

  function refresh(): Promise<void> {
    sampling ??= read().finally(() => {
      sampling = undefined
    })
    return sampling
  }

  const isSilent = () => (sample?.silentS ?? 0) > silentMostS

  async function refreshed(): Promise<void> {
    const ageMs = sample === undefined ? Number.POSITIVE_INFINITY : performance.now() - sample.at
    if (ageMs > outdatedMs || (isSilent() && ageMs > silentEveryMs)) return refresh()
    if (ageMs > sampleEveryMs) refresh().catch(() => {})
  }

  function refuseIfFull(): void {
    if (inside < adaptive.limit) return
    throw new Problem(
      'unavailable',
      `Not applied: ${inside} submissions are waiting already, and more would take too long. Nothing was changed; try again shortly.`,
      { retryAfterS },
    )
  }

  return {
    refuseIfFull,
    enter: async () => {
      refuseIfFull()
      const from = performance.now()
      inside += 1
      const leave = (known: boolean) => {
        inside -= 1
        const ms = performance.now() - from
        // A quick refusal says nothing about the time that a run takes.
        if (known || ms > slowMs) adaptive.ended(ms, inside)
      }
      try {
        await refreshed()
        if (isSilent())
          throw new Problem(
            'cancelled',
            `Not applied: no worker has taken a job for ${Math.round(sample?.silentS ?? 0)} s. Nothing was changed; try again shortly.`,
            { retryAfterS },
          )
      } catch (error) {
        inside -= 1
        throw error
      }
      return { databaseNow: () => (sample === undefined ? 0 : sample.nowMs + performance.now() - sample.at), leave }
    },
  }
}
