import { hostname } from 'node:os'
import { z } from 'zod'
import manifest from '../../package.json' with { type: 'json' }
import type { Db } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'
import { execute, query } from '../db/raw.ts'
import { uuid7 } from '../ids.ts'
import { runFormat } from '../runs/format.ts'
import type { Consumer } from './consumer.ts'

/** The worker processes of an installation: each says every two seconds that it is there. */

export const workerSeenEveryMs = 2_000

/** A worker that was not heard for this long is silent: frozen, cut off from PostgreSQL, or killed. */
export const silentAfterS = 10

/** A silent worker is forgotten after this time: it was killed, and another has taken its place or not. */
const forgottenAfterS = 900

/**
 * Says that this worker is there, until it is stopped. By the clock of the database.
 *
 * @param slots how many jobs it takes at once
 */
export function announceWorker(db: Db, consumer: Consumer, slots: number): { stop(): Promise<void> } {
  const id = uuid7()
  let saying: Promise<unknown> = Promise.resolve()
  let isOver = false

  const say = () =>
    execute(db, {
      text: `WITH forgotten AS (DELETE FROM workers WHERE seen_at < now() - make_interval(secs => $8))
        INSERT INTO workers (id, host, process_id, version, format, slots, busy) VALUES ($1::uuid, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (id) DO UPDATE SET seen_at = now(), busy = excluded.busy,
          taken_at = CASE WHEN $9 THEN now() ELSE workers.taken_at END`,
      values: [
        ...[id, hostname().slice(0, 255), process.pid, manifest.version, runFormat, slots, consumer.busy()],
        ...[forgottenAfterS, consumer.hasTaken()],
      ],
    })

  /** While the database is away, the worker is not heard, and says so again when it is back. */
  const round = () => {
    if (!isOver) saying = inTime(say()).catch(() => {})
  }
  round()
  const timer = setInterval(round, workerSeenEveryMs)
  return {
    stop: async () => {
      isOver = true
      clearInterval(timer)
      await saying
      const gone = execute(db, { text: 'DELETE FROM workers WHERE id = $1::uuid', values: [id] })
      await inTime(gone).catch(() => {})
    },
  }
}

const workerRow = z.object({
  ...{ id: z.guid(), host: z.string(), processId: z.int(), version: z.string(), format: z.int() },
  ...{ slots: z.int(), busy: z.int(), startedAt: z.date(), takenAt: z.date().nullable(), seenS: z.number() },
})

/** @property seenS seconds since it was last heard @property takenAt when it last took a job, about */
export type KnownWorker = z.output<typeof workerRow>

/** Those that were heard within the last quarter of an hour, the oldest first. */
export const readWorkers = (db: Db): Promise<KnownWorker[]> =>
  query(db, workerRow, {
    text: `SELECT id, host, process_id AS "processId", version, format::integer AS format, slots, busy,
      started_at AS "startedAt", taken_at AS "takenAt", extract(epoch FROM now() - seen_at)::float8 AS "seenS"
      FROM workers ORDER BY started_at, id`,
    values: [],
  })

export const isSilent = ({ seenS }: Pick<KnownWorker, 'seenS'>): boolean => seenS > silentAfterS

/** One sentence for each silent worker, without its host: anyone may read readiness. */
export function silentWorkers(workers: readonly KnownWorker[]): string {
  const silent = workers.filter(isSilent)
  if (silent.length === 0) return ''
  const times = silent.map(({ seenS }) => `${Math.round(seenS)} s`).join(', ')
  return `${silent.length} of ${workers.length} workers ${silent.length === 1 ? 'is' : 'are'} silent, for ${times}: frozen, killed, or cut off from PostgreSQL.`
}
