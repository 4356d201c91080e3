import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'
import { type Load, silentAfterS } from '../db/presence.ts'
import { query } from '../db/raw.ts'
import { Problem } from '../errors.ts'
import { once } from '../http/shares.ts'
import { runFormat } from '../runs/format.ts'
import { notApplied } from '../runs/why.ts'
import type { WhyNot } from './why-not.ts'

/** The admission of submissions. */

export type Backlog = ReturnType<typeof openBacklog>
export type Admission = Awaited<ReturnType<Backlog['enter']>>

/** Milliseconds. */
const slowMs = 2_500
/**
 * The limit is lowered when at least `slowShare` of the `last` submissions were slow. A few are slow for a reason of their own:
 * one worker of several is slow or frozen, a row is locked.
 */
const judged = { last: 20, least: 4, slowShare: 0.75 } as const
/** Submissions of this process at the same time. */
const limits = { first: 128, least: 16, most: 2_000 } as const
const lowered = 0.8
const lowerEveryMs = 1_000
const retryAfterS = 2

/**
 * A limit that follows the measured time of submissions: it grows while they are quick and need it, and shrinks by a fifth a
 * second while most are slow (additive increase, multiplicative decrease: RFC 5681 does the same for TCP). It does not shrink in
 * a process with a small part of all submissions: the other processes make them slow, and have to shrink.
 */
export function adaptiveLimit() {
  let limit: number = limits.first
  let loweredAt = Number.NEGATIVE_INFINITY
  const wereSlow: boolean[] = []
  const areMostSlow = () =>
    wereSlow.length >= judged.least && wereSlow.filter(Boolean).length >= wereSlow.length * judged.slowShare
  return {
    get limit() {
      return Math.floor(limit)
    },
    /** @param fairShare submissions that each process would have inside if all had as many; 0 when there is only this one */
    ended: (ms: number, inside: number, fairShare: number): void => {
      const isSlow = ms > slowMs
      wereSlow.push(isSlow)
      if (wereSlow.length > judged.last) wereSlow.shift()
      if (!isSlow) {
        if (inside > limit / 2) limit = Math.min(limits.most, limit + 1)
        return
      }
      const now = performance.now()
      if (now - loweredAt < lowerEveryMs || !areMostSlow() || inside < fairShare * littleOfIt) return
      loweredAt = now
      limit = Math.max(limits.least, limit * lowered)
    },
  }
}

/** A small part of the fair share. The submissions of other processes are known a few seconds late. */
const littleOfIt = 0.5

/**
 * `silentS`, `olderS`: seconds since a worker that executes the format of new runs took a job, and one that does not. `isPaused`:
 * an operator has paused the queue. `servers`, `inside`: the processes of the API with a heartbeat, and the submissions that they
 * have inside.
 */
const sampleRow = z.object({
  nowMs: z.number(),
  silentS: z.number().nullable(),
  olderS: z.number().nullable(),
  isPaused: z.boolean(),
  servers: z.int(),
  inside: z.int(),
})

/** Milliseconds between two samples, while there are submissions. */
const sampleEveryMs = 1_000
/** An older sample is not used. */
const outdatedMs = 5_000
/** Two and a half probes of the queue. The next sample shows a worker that comes back. */
const silentMostS = 10
const silentEveryMs = 250

type Workers = {
  /** False: submissions wait whether workers take jobs or not. */
  readonly needsWorkers: boolean
  readonly whyNot: Pick<WhyNot, 'installation'>
}

export function openBacklog(db: Db, { needsWorkers, whyNot }: Workers) {
  const adaptive = adaptiveLimit()
  let inside = 0
  let arriving = 0
  let hasAdmitted = false
  let sample: (z.output<typeof sampleRow> & { readonly at: number }) | undefined
  let sampling: Promise<void> | undefined

  async function read(): Promise<void> {
    const statement = {
      text: `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS "nowMs", formats.*,
          EXISTS (SELECT FROM queue_pauses) AS "isPaused", heard.*
        FROM (SELECT extract(epoch FROM now() - max(consumed_at) FILTER (WHERE format >= $1))::float8 AS "silentS",
            extract(epoch FROM now() - max(consumed_at) FILTER (WHERE format < $1))::float8 AS "olderS"
          FROM worker_formats) formats,
          (SELECT count(*)::integer AS servers, coalesce(sum(busy), 0)::integer AS inside
          FROM servers WHERE seen_at > now() - make_interval(secs => $2)) heard`,
      values: [runFormat, silentAfterS],
    }
    const [row] = await inTime(query(db, sampleRow, statement))
    if (row !== undefined) sample = { at: performance.now(), ...row }
  }

  function refresh(): Promise<void> {
    sampling ??= read().finally(() => {
      sampling = undefined
    })
    return sampling
  }

  /** Whether no worker that is new enough takes jobs. Nothing is refused before the first worker. */
  function areSilent(): boolean {
    if (sample === undefined || !needsWorkers) return false
    const { silentS, olderS } = sample
    return silentS === null ? olderS !== null : silentS > silentMostS
  }

  async function refreshed(): Promise<void> {
    const ageMs = sample === undefined ? Number.POSITIVE_INFINITY : performance.now() - sample.at
    if (ageMs > outdatedMs || (areSilent() && ageMs > silentEveryMs)) return refresh()
    if (ageMs > sampleEveryMs) refresh().catch(() => {})
  }

  const fairShare = () => (sample === undefined || sample.servers < 2 ? 0 : sample.inside / sample.servers)

  function refuseIfFull(count: number, limit = adaptive.limit): void {
    if (count < limit) return
    throw new Problem(
      'unavailable',
      `Not applied: ${count} submissions are waiting already, and more would take too long. Nothing was changed; try again shortly.`,
      { retryAfterS },
    )
  }

  const load: Load = {
    slots: () => adaptive.limit,
    busy: () => inside,
    hasTaken: () => {
      const had = hasAdmitted
      hasAdmitted = false
      return had
    },
  }
  return {
    load,
    /** The part of the first limit that is left, up to 1. */
    part: () => Math.min(1, adaptive.limit / limits.first),
    /**
     * Counts a submission that has arrived and is not admitted yet. Many that arrive at once would all be authenticated before
     * the first of them is inside, and be refused late.
     *
     * @property mayJoin whether it has a key, under which its run may exist already: twice as many of those may arrive
     * @returns a function to call when it was authenticated, or refused; more often does no harm
     * @throws {Problem} `unavailable` when too many submissions are inside or arriving
     */
    arrive: ({ mayJoin }: { readonly mayJoin: boolean }): (() => void) => {
      refuseIfFull(inside + arriving, adaptive.limit * (mayJoin ? 2 : 1))
      arriving += 1
      return once(() => {
        arriving -= 1
      })
    },
    /**
     * Admits a submission.
     *
     * @property waits whether it waits for the end of its run: while the queue is paused, that would be in vain
     * @throws {Problem} at once: `unavailable` when too many are inside already or the database does not answer, `cancelled` when
     * no worker takes jobs. Nothing was recorded
     */
    enter: async ({ waits }: { readonly waits: boolean }) => {
      refuseIfFull(inside)
      const from = performance.now()
      inside += 1
      try {
        await refreshed()
        // The sample alone refuses nothing: a crash may have left the row of a pause behind.
        const why = sample?.isPaused === true || areSilent() ? await whyNot.installation() : null
        if (why !== null && (waits || why.code !== 'paused'))
          throw new Problem('cancelled', notApplied(why), { retryAfterS })
      } catch (error) {
        inside -= 1
        throw error
      }
      hasAdmitted = true
      return {
        /** The clock of the database, in milliseconds: never ahead of it. A clock that is set back meanwhile makes it later. */
        databaseNow: () => (sample === undefined ? 0 : sample.nowMs + performance.now() - sample.at),
        /** Ends the submission. @param known whether its outcome is known, so that its time counts */
        leave: (known: boolean) => {
          inside -= 1
          const ms = performance.now() - from
          // A quick refusal shows nothing about the time that a run takes.
          if (known || ms > slowMs) adaptive.ended(ms, inside, fairShare())
        },
      }
    },
  }
}
