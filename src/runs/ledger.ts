import { z } from 'zod'
import type { Db, Tx } from '../db/client.ts'
import type { EngineTx } from '../db/engine-tx.ts'
import { pairLocks } from '../db/locks.ts'
import { silentAfterS } from '../db/presence.ts'
import { query, type Statement } from '../db/raw.ts'
import type { Keyring, SealedPlace } from '../db/seal.ts'
import type { Actor } from '../permissions.ts'
import type { Conditions } from '../plan/engine.ts'
import type { TraceHeaders } from '../tracing.ts'
import { runFormat } from './format.ts'
import type { RetryKey } from './idempotency.ts'
import { staleAfterS } from './life.ts'
import { storedAuthors, storedOptions } from './options.ts'
import { priorityOfSets } from './queued.ts'
import type { Why } from './why.ts'

/** The run ledger: one row for each submission, with its outcome. BullMQ only wakes a worker. */

export type NewRun = {
  readonly id: string
  /** The name of the job: `apply oauth2 grafana`. */
  readonly title: string
  /** The provider's kind, or `blueprint`. */
  readonly kind: string
  /** The slug of the application; null for a blueprint. */
  readonly slug: string | null
  readonly submitter: Pick<Actor, 'pk' | 'impersonator' | 'ceiling' | 'authors' | 'pipeline'>
  readonly requestId: string
  /** YAML text. */
  readonly blueprint: string
  /** The owners that the document names for entries: labels, and null for none. */
  readonly owners?: readonly (string | null)[]
  /** The slugs of applications that the document names, but for `slug`. */
  readonly applications?: readonly string[]
  readonly conditions: Conditions
  /** The reason for the change, in the submitter's words. */
  readonly message?: string | null
  /** The run whose document it is, and what that cannot put back. */
  readonly former?: { readonly id: string; readonly left: readonly string[] } | undefined
  /** The trace that its jobs continue, where the API is traced. */
  readonly trace?: TraceHeaders | undefined
  /** The number of its entries, when they are more than `fewEntries`: runs of few entries go before it. */
  readonly entries?: number | undefined
  /** `Idempotency-Key`. */
  readonly retryKey?: RetryKey | undefined
}

export type Recording = {
  /**
   * Milliseconds by the clock of the database: a statement that the network delivers later writes nothing
   * (docs/adr/0034-a-run-is-recorded-in-time-or-never.md).
   */
  readonly notAfterMs: number
  /** Whether the commit waits for the disk: the answer then says that the run is recorded, and not its outcome. */
  readonly isFlushed: boolean
}

export const sealedColumn = (id: string, column: 'blueprint' | 'generated'): SealedPlace => ({
  table: 'runs',
  row: id,
  column,
})

const columns = 'id, title, kind, slug, submitter_pk, request_id, blueprint, mode, options, format'
const placeholders = (options: string) =>
  `$1::uuid, $2::text, $3::text, $4::text, $5::integer, $6::text, $7::text, $8::run_mode, ${options}, ${runFormat}`

function valuesOf(keyring: Keyring, run: NewRun): unknown[] {
  const { id, title, kind, slug, submitter, requestId, blueprint, conditions } = run
  const { message, former, owners, trace, applications = [] } = run
  const { pk, impersonator, ceiling, authors, pipeline } = submitter
  const real = impersonator && { pk: impersonator.pk, username: impersonator.username }
  const keys = { impersonator: real, ceiling: ceiling && [...ceiling].sort(), authors: storedAuthors(authors) }
  const again = former && { former: former.id, ...(former.left.length > 0 && { not_put_back: former.left }) }
  const named = applications.length > 0 && { applications }
  const others = { ...keys, pipeline, ...(message && { message }), ...again, trace, ...named }
  const options = JSON.stringify(storedOptions(conditions, others, owners))
  const sealed = keyring.seal(blueprint, sealedColumn(id, 'blueprint'))
  return [id, title, kind, slug, pk, requestId, sealed, conditions.mode, options]
}

/**
 * Writes the row of a run, before its job is added. Raw SQL, because the commit of a run whose client waits does not wait for the
 * disk (docs/adr/0004-recording-does-not-wait-for-the-disk.md).
 *
 * @returns the priority of its job; null when it was too late, and nothing was written
 * @throws an error of which `isKeyTaken` holds, when another request has recorded a run under the same key
 */
export async function recordRun(
  db: Db,
  keyring: Keyring,
  run: NewRun,
  { notAfterMs, isFlushed }: Recording,
): Promise<number | null> {
  const { retryKey, entries = null } = run
  const values = [...valuesOf(keyring, run), notAfterMs, isFlushed, entries]
  const keyed = `, keyed AS (INSERT INTO idempotency_keys (submitter_pk, key, request, run_id)
    SELECT $5::integer, $13::text, $14::bytea, id FROM recorded)`
  const [row] = await query(db, priorityRow, {
    text: `WITH committing AS (SELECT set_config('synchronous_commit', 'off', true) WHERE NOT $11::boolean),
      ${own}, recorded AS (INSERT INTO runs (${columns}) SELECT ${placeholders("$9::jsonb || jsonb_strip_nulls(jsonb_build_object('lane', own.priority, 'entries', $12::integer))")}
        FROM own LEFT JOIN committing ON true WHERE clock_timestamp() < to_timestamp($10::float8 / 1000)
        RETURNING id, (options->>'lane')::integer AS priority)${retryKey === undefined ? '' : keyed}
      SELECT priority FROM recorded`,
    values: retryKey === undefined ? values : [...values, retryKey.key, retryKey.request],
  })
  return row?.priority ?? null
}

const priorityRow = z.object({ priority: z.int() })

/**
 * Jobs have a priority, and those with a lower number go first: the first run of a submitter does not wait for the backlog of others,
 * and a run of few entries not for large ones. A submitter's runs keep their order: a new run never has a lower priority than the
 * submitter's queued runs.
 */
const own = `own AS (SELECT greatest(max((options->>'lane')::integer), CASE WHEN count(*) = 0 THEN 0 WHEN count(*) < 10 THEN 1
    WHEN count(*) < 100 THEN 2 ELSE 3 END + CASE WHEN $12::integer IS NULL THEN 0 ELSE ${priorityOfSets} END) AS priority
  FROM runs WHERE state = 'queued' AND submitter_pk = $5::integer)`

const workerRow = z.object({
  id: z.guid(),
  title: z.string(),
  kind: z.string(),
  slug: z.string().nullable(),
  mode: z.enum(['apply', 'plan']),
  state: z.enum(['queued', 'done', 'failed', 'cancelled']),
  attempts: z.int(),
  submitterPk: z.int().nullable(),
  submitterName: z.string().nullable(),
  requestId: z.string(),
  /** Null in a finished run whose document a later one holds. */
  blueprint: z.string().nullable(),
  isStale: z.boolean(),
  format: z.int(),
  options: z.unknown(),
  applied: z.boolean().nullable(),
  reason: z.string().nullable(),
  /** Milliseconds since it was recorded. */
  ageMs: z.number(),
  /** Milliseconds from its record to the first attempt. */
  queueMs: z.number(),
  /** The time-out of the transaction from now on. */
  lockTimeout: z.string(),
  /** None while it is queued. */
  logs: z.array(z.string()),
})

export type WorkerRun = z.output<typeof workerRow>

/** The longest wait of a run for locks while another run of its submitter may wait longer: waiting holds a slot. */
const shortWait = '300ms'

/** Locks the row for the rest of the transaction, so that only one worker works on the run. */
export async function lockRun(tx: EngineTx, id: string): Promise<WorkerRun | undefined> {
  const [run] = await tx.query(workerRow, {
    text: `WITH runs AS (SELECT * FROM runs WHERE id = $1::uuid FOR UPDATE)
      SELECT id, title, kind, slug, mode::text AS mode, state::text AS state, attempts, submitter_pk AS "submitterPk",
      (SELECT username FROM users WHERE pk = submitter_pk) AS "submitterName", request_id AS "requestId",
      blueprint, created_at < now() - make_interval(secs => $2) AS "isStale", format, options, applied,
      reason, coalesce(logs, '{}') AS logs, round(extract(epoch FROM now() - created_at) * 1000)::float8 AS "ageMs",
      round(extract(epoch FROM coalesce(started_at, now()) - created_at) * 1000)::float8 AS "queueMs", set_config('lock_timeout',
        CASE WHEN pg_try_advisory_xact_lock($3::integer, coalesce(submitter_pk, 0)) THEN current_setting('lock_timeout')
          ELSE $4 END, true) AS "lockTimeout"
      FROM runs`,
    values: [id, staleAfterS, pairLocks.waits, shortWait],
  })
  return run
}

export async function lockedRuns(db: Db, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const text = 'SELECT id FROM runs WHERE id = ANY($1::uuid[]) FOR KEY SHARE SKIP LOCKED'
  const free = await query(db, idRow, { text, values: [ids] })
  return new Set(ids).difference(new Set(free.map(({ id }) => id)))
}

/** Whether generated values may still be read. The clock of the database counts. */
export async function showsGenerated(db: Db, id: string): Promise<boolean> {
  const [row] = await query(db, z.object({ shows: z.boolean() }), {
    text: 'SELECT coalesce(generated_until > now(), false) AS shows FROM runs WHERE id = $1::uuid',
    values: [id],
  })
  return row?.shows === true
}

export const idRow = z.object({ id: z.guid() })

/** The columns of a cancelled run, in SQL. When the judgement has no cause, it is that of its last failed attempt, or else the sentence. */
export const cancelledSet = (sentence: string, cause = 'NULL') =>
  `state = 'cancelled', reason = 'cancelled', logs = ARRAY['not applied: ' || ${sentence}], finished_at = clock_timestamp(),
    cause = coalesce(${cause}, (SELECT a.cause FROM run_attempts a WHERE a.run_id = runs.id ORDER BY a.attempt DESC LIMIT 1),
      left(${sentence}, 300))`

export const cancellation = (id: string, { sentence, cause }: Why, by: string | null = null): Statement => ({
  text: `UPDATE runs SET ${cancelledSet('$2::text', '$4::text')},
      options = options || jsonb_strip_nulls(jsonb_build_object('cancelled_by', $3::text))
    WHERE id = $1::uuid AND state = 'queued' RETURNING id`,
  values: [id, sentence, by, cause],
})

/**
 * Cancels a queued run. Waits for the row's lock: a run that a worker has locked is not cancelled.
 *
 * @param by the user who cancels it, whose name the run keeps: the answer to its submitter does not ask for a repetition
 * @returns true: it was cancelled, and certainly not applied
 */
export async function cancelRun(tx: Tx, id: string, why: Why, by: string | null = null): Promise<boolean> {
  return (await query(tx, idRow, cancellation(id, why, by))).length > 0
}

/**
 * Leaves a run in the queue. The reconciler does not check it before its job has come back, so that no attempt is counted. One
 * that another worker has locked stays as it is.
 */
export const postponement = (id: string, afterMs: number): Statement => ({
  text: `UPDATE runs SET enqueued_at = now() + make_interval(secs => $2::float8 / 1000)
    WHERE id = (SELECT id FROM runs WHERE id = $1::uuid AND state = 'queued' FOR UPDATE SKIP LOCKED)`,
  values: [id, afterMs],
})

/** Counts older sets of the same submitter that wait or are at work. */
const olderSets = `SELECT count(*) FROM runs o WHERE o.state = 'queued' AND o.options->'entries' IS NOT NULL
  AND o.submitter_pk IS NOT DISTINCT FROM r.submitter_pk AND (o.created_at, o.id) < (r.created_at, r.id)`

/** Whether a set of the submitter `r` is at work, in SQL. */
export const isAtSet = `EXISTS (SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND l.classid = ${pairLocks.sets} AND l.objid::bigint = coalesce(r.submitter_pk, 0))`

/**
 * Whether the turn of a locked run has come (docs/adr/0111-a-set-waits-for-its-turn.md). A submitter's sets are worked on in
 * their order, one at a time, and all sets have half of the slots. The other runs of the submitter stay behind sets that have not
 * begun. The locks end with the transaction, also when the worker dies.
 */
export async function takeTurn(tx: EngineTx, { id, options }: WorkerRun): Promise<boolean> {
  if (Number(Object(options).lane ?? 0) < priorityOfSets) return true
  const [row] = await tx.query(z.object({ isTurn: z.boolean() }), {
    text: `SELECT CASE WHEN r.options->'entries' IS NULL THEN older.sets = 0 OR (older.sets = 1 AND ${isAtSet})
        ELSE older.sets = 0 AND pg_try_advisory_xact_lock(${pairLocks.sets}, coalesce(r.submitter_pk, 0)) AND EXISTS (
          SELECT FROM generate_series(1, greatest(1, (
            SELECT sum(slots) FROM workers WHERE seen_at > now() - make_interval(secs => $2)) / 2)::integer) slot
          WHERE pg_try_advisory_xact_lock(${pairLocks.slotsOfSets}, slot)) END AS "isTurn"
      FROM runs r, LATERAL (${olderSets}) older(sets) WHERE r.id = $1::uuid`,
    values: [id, silentAfterS],
  })
  return row?.isTurn !== false
}

/**
 * Cancels a run that may or may not be recorded. Its row is written as cancelled, so that a record that arrives later fails on
 * the key.
 *
 * @returns true: it is cancelled, and certainly never applied
 */
export async function recordCancelled(tx: Tx, keyring: Keyring, run: NewRun, { sentence }: Why): Promise<boolean> {
  const rows = await query(tx, idRow, {
    text: `INSERT INTO runs (${columns}, state, reason, logs, cause, finished_at)
      VALUES (${placeholders('$9::jsonb')}, 'cancelled', 'cancelled', ARRAY['not applied: ' || $10::text], $10, clock_timestamp())
      ON CONFLICT (id) DO UPDATE SET state = excluded.state, reason = excluded.reason, logs = excluded.logs, cause = excluded.cause,
        finished_at = excluded.finished_at WHERE runs.state = 'queued' RETURNING id`,
    values: [...valuesOf(keyring, run), sentence],
  })
  return rows.length > 0
}
