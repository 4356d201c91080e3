import { hash } from 'node:crypto'
import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'
import { silentAfterS } from '../db/presence.ts'
import { query, unprepared } from '../db/raw.ts'
import { type ActiveRun, activeRuns } from '../queue/active.ts'
import type { ApplyQueue } from '../queue/backend.ts'
import { applyQueue } from '../queue/define.ts'
import { answered } from '../queue/enqueue.ts'

/**
 * The state of the ledger and the queue, as a text: `min:max:open,open~digest`. The first part is a snapshot of PostgreSQL: the
 * transactions that are visible in it. The digest is of the jobs at work, the pause and the workers. It is the same in every
 * process.
 */
export type Revision = { readonly snapshot: string; readonly digest: string }

const form = /^(\d{1,19}:\d{1,19}:(?:\d{1,19}(?:,\d{1,19}){0,199})?)~([\w-]{11})$/
export const longestRevision = 4_100

/** @returns undefined for a text of another form, and for a snapshot that PostgreSQL does not take */
export function parseRevision(text: string): Revision | undefined {
  const [, snapshot, digest] = form.exec(text) ?? []
  if (snapshot === undefined || digest === undefined) return undefined
  const [min = 0n, max = 0n, ...open] = snapshot.split(/[:,]/).filter(Boolean).map(BigInt)
  const numbers = [min - 1n, ...open, max]
  const isInOrder = numbers.every((each, index) => index === 0 || each > (numbers[index - 1] ?? 0n))
  return isInOrder && min > 0n && max <= 2n ** 62n ? { snapshot, digest } : undefined
}

/** The text of a revision. When very many transactions are open, all count as open: a reader is answered once too often. */
export function textOf({ snapshot, digest }: Revision): string {
  const text = `${snapshot}~${digest}`
  const [min] = snapshot.split(':')
  return form.test(text) ? text : `${min}:${min}:~${digest}`
}

/**
 * A snapshot for two readers: what either of them has not seen is not visible in it. What one has seen may not be either.
 *
 * @param one that of earlier readers, which is mostly older
 */
export function olderOf(one: string | null, other: string): string {
  if (one === null) return other
  const [least = 0n, most = 0n] = one.split(':', 2).map(BigInt)
  const [from = 0n] = other.split(':', 1).map(BigInt)
  if (one === other || from >= most) return one
  const both = from < least ? from : least
  return `${both}:${both}:`
}

export type Now = Revision & {
  /** A run has been recorded or has changed since `since`, or an attempt has failed. */
  readonly isChanged: boolean
  /** The state of each requested run; a run that is gone is not in it. */
  readonly runs: ReadonlyMap<string, string>
}

const row = z.object({
  snapshot: z.string(),
  isChanged: z.boolean(),
  parts: z.string(),
  runs: z.record(z.string(), z.string()),
})

/** The age from which a job counts as at work: its worker has locked the run. */
const atWorkAfterMs = 1_000

/**
 * Reads the state by one statement and two commands of the queue.
 *
 * @param since a snapshot; null: nothing counts as changed
 * @param ids those of runs
 * @throws {Problem} `unavailable` when the database does not answer in time
 */
export async function readNow(
  { db, queue }: { readonly db: Db; readonly queue: ApplyQueue },
  since: string | null,
  ids: readonly string[],
): Promise<Now> {
  // The jobs at work are not known while the queue is away.
  const [active, isPaused] = await Promise.all([
    activeRuns(queue).catch((): ActiveRun[] => []),
    answered(queue.isPaused()).catch(() => null),
  ])
  const changed = (table: string, column: string) => `EXISTS (SELECT FROM ${table}, since
      WHERE ${column} >= pg_snapshot_xmin(since.at)::text::bigint AND NOT pg_visible_in_snapshot(${column}::text::xid8, since.at))`
  const statement = unprepared({
    text: `WITH since AS MATERIALIZED (SELECT $1::text::pg_snapshot AS at),
      free AS MATERIALIZED (
        SELECT id FROM runs WHERE id = ANY($2::uuid[]) AND state = 'queued' FOR KEY SHARE SKIP LOCKED)
      SELECT pg_current_snapshot()::text AS snapshot,
        coalesce((SELECT pg_snapshot_xmax(at) > pg_snapshot_xmax(pg_current_snapshot()) FROM since), false)
          OR ${changed('runs', 'changed_in')} OR ${changed('run_attempts', 'recorded_in')} AS "isChanged",
        concat((SELECT jsonb_agg(jsonb_build_array(id, version, seen_at < now() - make_interval(secs => $3)) ORDER BY id)
            FROM workers), (SELECT to_jsonb(p) FROM queue_pauses p WHERE queue = $4)) AS parts,
        coalesce((SELECT jsonb_object_agg(id, concat_ws(' ', state, attempts, id IN (SELECT id FROM free)))
          FROM runs WHERE id = ANY($2::uuid[])), '{}') AS runs`,
    values: [since, ids, silentAfterS, applyQueue.name],
  })
  const [found] = await inTime(query(db, row, statement))
  if (found === undefined) throw new Error('a statement that always has a row had none')
  const atWork = active.filter(({ sinceMs }) => sinceMs >= atWorkAfterMs)
  const progressOf = new Map(active.map(({ run, attempt, progress }) => [run, `${attempt} ${progress?.done}`]))
  const known = atWork.map(({ run, attempt, progress }) => [run, attempt, progress?.done]).sort()
  return {
    snapshot: found.snapshot,
    digest: hash('sha256', JSON.stringify([found.parts, isPaused, known]), 'base64url').slice(0, 11),
    isChanged: found.isChanged,
    runs: new Map(Object.entries(found.runs).map(([id, stands]) => [id, `${stands} ${progressOf.get(id) ?? ''}`])),
  }
}
