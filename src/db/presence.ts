import { hostname } from 'node:os'
import { z } from 'zod'
import manifest from '../../package.json' with { type: 'json' }
import { uuid7 } from '../ids.ts'
import type { Db } from './client.ts'
import { inTime } from './in-time.ts'
import { execute, query } from './raw.ts'
import { repeat } from './rounds.ts'

/** The processes of an installation. Each writes a heartbeat every two seconds, by the clock of the database. */

const seenEveryMs = 2_000

/** A process without a heartbeat for this long is silent: frozen, cut off from PostgreSQL, or killed. */
export const silentAfterS = 10

/** A silent process is forgotten after this time: it was killed, and may have been replaced. */
const forgottenAfterS = 900

/** The workers, and the processes of the API. Each table has the same columns. */
export type ProcessTable = 'workers' | 'servers'

/** @property slots how much it takes at once @property hasTaken whether it took anything since the last call */
export type Load = { slots(): number; busy(): number; hasTaken(): boolean }

/**
 * Writes heartbeats of this process until it is stopped.
 *
 * @param format the format of the runs that it executes, or records
 */
export function registerProcess(db: Db, table: ProcessTable, format: number, load: Load): { stop(): Promise<void> } {
  const id = uuid7()
  const say = () =>
    execute(db, {
      text: `WITH forgotten AS (DELETE FROM ${table} WHERE seen_at < now() - make_interval(secs => $8))
        INSERT INTO ${table} (id, host, process_id, version, format, slots, busy) VALUES ($1::uuid, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (id) DO UPDATE SET seen_at = now(), slots = excluded.slots, busy = excluded.busy,
          taken_at = CASE WHEN $9 THEN now() ELSE ${table}.taken_at END`,
      values: [
        ...[id, hostname().slice(0, 255), process.pid, manifest.version, format, load.slots(), load.busy()],
        ...[forgottenAfterS, load.hasTaken()],
      ],
    })

  // A heartbeat fails while the database is away; the next ones follow when it is back.
  const rounds = repeat(
    () => inTime(say()).then(() => seenEveryMs),
    () => seenEveryMs,
  )
  return {
    stop: async () => {
      await rounds.stop()
      const gone = execute(db, { text: `DELETE FROM ${table} WHERE id = $1::uuid`, values: [id] })
      await inTime(gone).catch(() => {})
    },
  }
}

const row = z.object({
  id: z.guid(),
  host: z.string(),
  processId: z.int(),
  version: z.string(),
  format: z.int(),
  slots: z.int(),
  busy: z.int(),
  startedAt: z.date(),
  takenAt: z.date().nullable(),
  seenS: z.number(),
})

/** @property seenS seconds since its last heartbeat @property takenAt when it last took something, approximately */
export type KnownProcess = z.output<typeof row>

/** Processes with a heartbeat in the last quarter of an hour, the oldest first. */
export const readProcesses = (db: Db, table: ProcessTable): Promise<KnownProcess[]> =>
  query(db, row, {
    text: `SELECT id, host, process_id AS "processId", version, format::integer AS format, slots, busy,
      started_at AS "startedAt", taken_at AS "takenAt", extract(epoch FROM now() - seen_at)::float8 AS "seenS"
      FROM ${table} ORDER BY started_at, id`,
    values: [],
  })

export const isSilent = ({ seenS }: Pick<KnownProcess, 'seenS'>): boolean => seenS > silentAfterS

/** One sentence about the silent processes, without their hosts: anyone may read readiness. @param what `worker` */
export function silentOnes(all: readonly KnownProcess[], what: string): string {
  const silent = all.filter(isSilent)
  if (silent.length === 0) return ''
  const times = silent.map(({ seenS }) => `${Math.round(seenS)} s`).join(', ')
  return `${silent.length} of ${all.length} ${what}s ${silent.length === 1 ? 'is' : 'are'} silent, for ${times}: frozen, killed, or cut off from PostgreSQL.`
}
