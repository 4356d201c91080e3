import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'
import { query, unprepared, Values } from '../db/raw.ts'
import { advanced, parseSnapshot, type Snapshot } from './positions.ts'

/**
 * What has become visible in the ledger since a reader last read: runs that were recorded or whose state changed, and
 * failed attempts. In the order of their transactions, each once.
 */

/** Which runs a reader may see, as SQL over `runs`. @param bind gives the placeholder of a value */
export type Condition = (bind: (value: unknown) => string) => string

const position = { in: z.string(), after: z.string() }
/** PostgreSQL writes times into JSON with the offset of its session. */
const time = z.string()

const changedRun = z.object({
  ...{ id: z.guid(), state: z.enum(['queued', 'done', 'failed', 'cancelled']), title: z.string() },
  ...{ mode: z.enum(['apply', 'plan']), kind: z.string(), slug: z.string().nullable() },
  ...{ owner: z.string().nullable(), applied: z.boolean().nullable(), reason: z.string().nullable() },
  ...{ submitter: z.int().nullable(), submitter_name: z.string().nullable(), request_id: z.string() },
  ...{ attempts: z.int(), created_at: time, started_at: time.nullable(), finished_at: time.nullable() },
  /** Null for a run of an earlier version whose state has not changed since. */
  recorded: z.object({ in: z.string().nullable(), after: z.string().nullable() }),
  changed: z.object(position).or(z.object({ in: z.null(), after: z.null() })),
  /** By the number of the condition. */
  seen: z.array(z.boolean().nullable()),
})

const failedAttempt = z.object({
  ...{ run: z.guid(), attempt: z.int(), at: time, cause: z.string() },
  recorded: z.object(position),
  seen: z.array(z.boolean().nullable()),
})

export type ChangedRun = z.output<typeof changedRun>
export type FailedAttempt = z.output<typeof failedAttempt>

const changesRow = z.object({
  snapshot: z.string(),
  now: z.date(),
  /** How far the log is written, and how far it is on disk. */
  written: z.string(),
  flushed: z.string(),
  runs: z.array(changedRun),
  attempts: z.array(failedAttempt),
  /** The last transaction of a portion that is full. */
  lastOfRuns: z.string().nullable(),
  lastOfAttempts: z.string().nullable(),
})

/** Rows of one read. Those of one transaction are never divided. */
const portion = 400

const shown = `'id', runs.id, 'state', runs.state, 'title', runs.title, 'mode', runs.mode, 'kind', runs.kind,
  'slug', runs.slug, 'owner', runs.options->>'owner', 'applied', runs.applied, 'reason', runs.reason,
  'submitter', runs.submitter_pk,
  'submitter_name', (SELECT u.username FROM users u WHERE u.pk = runs.submitter_pk),
  'request_id', runs.request_id, 'attempts', runs.attempts, 'created_at', runs.created_at,
  'started_at', runs.started_at, 'finished_at', runs.finished_at,
  'recorded', jsonb_build_object('in', runs.recorded_in::text, 'after', runs.recorded_after::text),
  'changed', jsonb_build_object('in', runs.changed_in::text, 'after', runs.changed_after::text)`

/** Each as `true` where it holds, so that a condition is asked of each row, and never excludes one. */
const seenBy = (conditions: readonly Condition[], { bind }: Values): string =>
  `to_jsonb(ARRAY[${conditions.map((each) => `(${each(bind)})`).join(', ')}]::boolean[])`

/** What changed since `from`, in the order in which its events are sent. */
export type Changes = {
  readonly runs: readonly (ChangedRun & { readonly transaction: bigint })[]
  readonly attempts: readonly (FailedAttempt & { readonly transaction: bigint })[]
  /** Where the reader stands now. */
  readonly position: Snapshot
  /** There is more. */
  readonly isPart: boolean
  /** By the clock of the database. */
  readonly now: Date
  /** What was read survives a crash of PostgreSQL once its log is on disk up to `written`. */
  readonly written: bigint
  readonly flushed: bigint
}

/**
 * Reads a portion of what is visible now and was not in `from`: one statement, which has one snapshot.
 *
 * Two ranges of an index: what was open in `from`, and what had not begun. So a transaction that is open for hours makes
 * no read longer.
 *
 * @param most rows of a portion
 * @throws {Problem} `unavailable` when the database does not answer in time
 */
export async function readChanges(
  db: Db,
  from: Snapshot,
  conditions: readonly Condition[],
  most = portion,
): Promise<Changes> {
  const values = new Values()
  const [open, max] = [values.bind([...from.open].map(String)), values.bind(String(from.max))]
  const ranges = (table: string, column: string, key: string) => `
    SELECT * FROM (
      (SELECT ${key}, ${column} AS place FROM ${table} WHERE ${column} = ANY(${open}::bigint[]))
      UNION ALL (SELECT ${key}, ${column} FROM ${table}
        WHERE ${column} >= ${max}::bigint AND ${column} < (SELECT next FROM here)
        ORDER BY ${column} FETCH FIRST ${most} ROWS WITH TIES)
    ) both_ranges ORDER BY place FETCH FIRST ${most} ROWS WITH TIES`
  const [row] = await inTime(
    query(
      db,
      changesRow,
      unprepared({
        text: `WITH here AS MATERIALIZED (
            SELECT pg_current_snapshot()::text AS snapshot, pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next),
          changed AS MATERIALIZED (${ranges('runs', 'changed_in', 'id')}),
          failed AS MATERIALIZED (${ranges('run_attempts', 'recorded_in', 'run_id, attempt')})
          SELECT here.snapshot, now() AS now,
            pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::text AS written,
            pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::text AS flushed,
            coalesce((SELECT jsonb_agg(jsonb_build_object(${shown}, 'seen', ${seenBy(conditions, values)})
              ORDER BY changed.place, runs.id) FROM changed JOIN runs ON runs.id = changed.id), '[]') AS runs,
            coalesce((SELECT jsonb_agg(jsonb_build_object('run', a.run_id, 'attempt', a.attempt, 'at', a.at,
              'cause', a.cause, 'recorded', jsonb_build_object('in', a.recorded_in::text, 'after', a.recorded_after::text),
              'seen', ${seenBy(conditions, values)}) ORDER BY failed.place)
              FROM failed JOIN run_attempts a ON a.run_id = failed.run_id AND a.attempt = failed.attempt
              JOIN runs ON runs.id = a.run_id), '[]') AS attempts,
            (SELECT max(place)::text FROM changed HAVING count(*) >= ${most}) AS "lastOfRuns",
            (SELECT max(place)::text FROM failed HAVING count(*) >= ${most}) AS "lastOfAttempts"
          FROM here`,
        values: values.list,
      }),
    ),
  )
  if (row === undefined) throw new Error('a statement that always has a row had none')
  return portionOf(row, from)
}

const nowRow = z.object({ run: changedRun, isLocked: z.boolean() })

/** Runs as they are now, and whether a worker has locked them. */
export async function readNow(
  db: Db,
  ids: readonly string[],
  conditions: readonly Condition[],
): Promise<(ChangedRun & { readonly isLocked: boolean })[]> {
  const values = new Values()
  const among = `ANY(${values.bind(ids)}::uuid[])`
  const rows = await inTime(
    query(
      db,
      nowRow,
      unprepared({
        text: `WITH free AS MATERIALIZED (
            SELECT id FROM runs WHERE id = ${among} AND state = 'queued' FOR KEY SHARE SKIP LOCKED)
          SELECT jsonb_build_object(${shown}, 'seen', ${seenBy(conditions, values)}) AS run,
            runs.state = 'queued' AND runs.id NOT IN (SELECT id FROM free) AS "isLocked"
          FROM runs WHERE runs.id = ${among}`,
        values: values.list,
      }),
    ),
  )
  return rows.map(({ run, isLocked }) => ({ ...run, isLocked }))
}

function portionOf(row: z.output<typeof changesRow>, from: Snapshot): Changes {
  const snapshot = parseSnapshot(row.snapshot)
  const runs = row.runs.map((run) => ({ ...run, transaction: BigInt(run.changed.in ?? 0) }))
  const attempts = row.attempts.map((each) => ({ ...each, transaction: BigInt(each.recorded.in) }))
  const common = { now: row.now, written: BigInt(row.written), flushed: BigInt(row.flushed) }
  const ends = [row.lastOfRuns, row.lastOfAttempts].flatMap((last) => (last === null ? [] : BigInt(last)))
  const [first, other = first] = ends
  if (first === undefined || other === undefined)
    return { ...common, runs, attempts, position: snapshot, isPart: false }
  const last = other < first ? other : first
  return {
    ...common,
    runs: runs.filter(({ transaction }) => transaction <= last),
    attempts: attempts.filter(({ transaction }) => transaction <= last),
    position: advanced(from, snapshot, last),
    isPart: true,
  }
}
