import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { query } from '../db/raw.ts'

/** Runs that a worker is at work on, and what blocks them. */

/** Seconds; shorter work is not listed. */
const atWorkFromS = 1
const mostListed = 50

const blocker = z.object({
  pid: z.int(),
  /** Another run that is at work. */
  run: z.guid().nullable(),
  /** The name that the program gave itself; '' when it gave none. */
  program: z.string(),
  /** `idle in transaction`; null when this login may not know. */
  state: z.string().nullable(),
  /** Seconds since its transaction began. */
  openS: z.number().nullable(),
  /** The beginning of the last statement of the session, without values; null when it is not known. */
  statement: z.string().nullable(),
})
export type Blocker = Readonly<z.output<typeof blocker>>

/**
 * @property workS seconds; null between two attempts, when the last one was not given its locks
 * @property worker the session of its worker: the process of PostgreSQL, and the address it comes from; null between two attempts
 * @property blocker the session with the lock that it waits for; null when it waits for none
 */
const atWorkRow = z.object({
  id: z.guid(),
  workS: z.number().nullable(),
  worker: z.object({ pid: z.int(), address: z.string().nullable() }).nullable(),
  blocker: blocker.nullable(),
})
export type AtWork = Readonly<z.output<typeof atWorkRow>>

/** Whether the run is blocked: its blocker is known, or its locks were not given. */
export const isBlocked = ({ workS, blocker }: AtWork): boolean => workS === null || blocker !== null

/**
 * Reads the runs that are at work for a second or longer, the longest first, and all whose last attempt was not given its locks.
 * The lock of a run's row names the transaction of its worker (docs/adr/0002-running-is-a-lock.md), and PostgreSQL knows what
 * that one waits for. A login without `pg_read_all_stats` learns of the sessions of other logins only that they exist.
 */
export async function readAtWork(db: Db, only?: readonly string[]): Promise<AtWork[]> {
  const rows = await query(db, atWorkRow, {
    text: `WITH busy AS MATERIALIZED (
        SELECT pid, host(client_addr) AS address, backend_xid AS xid, extract(epoch FROM clock_timestamp() - xact_start)::float8 AS work_s
        FROM pg_stat_activity WHERE datname = current_database() AND backend_xid IS NOT NULL
      ), at_work AS MATERIALIZED (
        SELECT runs.id, busy.pid, busy.address, busy.work_s, a.run_id IS NOT NULL AS was_blocked FROM runs LEFT JOIN busy ON busy.xid = runs.xmax
          LEFT JOIN run_attempts a ON a.run_id = runs.id AND a.attempt = runs.attempts AND a.cause LIKE '%(SQLSTATE 55P03)'
        WHERE runs.state = 'queued' AND ($2::uuid[] IS NULL OR runs.id = ANY ($2::uuid[])) AND (busy.pid IS NOT NULL OR a.run_id IS NOT NULL)
      )
      SELECT w.id, w.work_s AS "workS",
        CASE WHEN w.pid IS NOT NULL THEN jsonb_build_object('pid', w.pid, 'address', w.address) END AS worker, CASE WHEN b.pid IS NOT NULL THEN jsonb_build_object('pid', b.pid, 'run', (
            SELECT o.id FROM busy JOIN runs o ON o.xmax = busy.xid WHERE busy.pid = b.pid AND o.state = 'queued' LIMIT 1),
          'program', coalesce(b.application_name, ''), 'state', b.state,
          'openS', extract(epoch FROM clock_timestamp() - b.xact_start)::float8,
          'statement', CASE WHEN b.state IS NOT NULL THEN b.query END) END AS blocker
      FROM at_work w LEFT JOIN LATERAL (
          SELECT a.* FROM unnest(pg_blocking_pids(w.pid)) blocking(pid) JOIN pg_stat_activity a ON a.pid = blocking.pid
          ORDER BY a.xact_start LIMIT 1
        ) b ON true
      WHERE w.was_blocked OR w.work_s >= $1::float8 ORDER BY w.work_s DESC NULLS LAST LIMIT $3`,
    values: [only === undefined ? atWorkFromS : 0, only ?? null, only?.length ?? mostListed],
  })
  return rows.map(({ blocker, ...row }) => ({
    ...row,
    blocker: blocker && { ...blocker, statement: startOf(blocker.statement ?? '') },
  }))
}

/** The session of a worker: by its address, the page of the workers has its host. */
export const workerText = ({ pid, address }: NonNullable<AtWork['worker']>): string =>
  `process ${pid} of PostgreSQL${address === null ? '' : `, from ${address}`}`

/** The words about a run between two attempts whose blocker is not known. */
export const notGiven = 'its locks were not given in time'

/** `process 4711 (psql), idle in transaction for 12 s, holds it` */
export function blockerSentence({ pid, run, program, state, openS }: Blocker): string {
  const name = program === '' ? `process ${pid}` : `process ${pid} (${program.slice(0, 60)})`
  const since = openS === null ? '' : ` for ${Math.round(openS)} s`
  if (run !== null) return `run ${run} holds it, ${name}`
  return state === null ? `${name}, of another login, holds it` : `${name}, ${state}${since}, holds it`
}

/** Milliseconds after which a run that is still at work is looked at, and between two looks. The shortest wait for a lock is 300 ms. */
const looks = { firstMs: 200, everyMs: 1_000 } as const

/**
 * Looks at intervals what blocks a run that is at work. A lock that was not given leaves no trace of its holder.
 *
 * @returns `last` is the blocker that was seen last; null when none was
 */
export function watchBlocker(db: Db, id: string): { last(): Blocker | null; stop(): void } {
  let last: Blocker | null = null
  let timer = setTimeout(look, looks.firstMs)
  function look(): void {
    timer = setTimeout(look, looks.everyMs)
    readAtWork(db, [id]).then(
      ([found]) => {
        last = found?.blocker ?? last
      },
      () => {},
    )
  }
  return { last: () => last, stop: () => clearTimeout(timer) }
}

/** The words before the first value: a statement that a person typed may hold a secret. */
export function startOf(statement: string): string | null {
  const words = statement.slice(0, 200).trim().split(/\s+/)
  const values = words.findIndex((word) => !/^[a-z_"][\w."]*$/i.test(word))
  const text = words.slice(0, values < 0 ? undefined : values).join(' ')
  return text === '' ? null : text.slice(0, 80)
}
