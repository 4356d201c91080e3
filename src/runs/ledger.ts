import { z } from 'zod'
import { type AuditedChange, auditRow, digestKey, insertObjects, listOf } from '../apply/audit.ts'
import type { Change } from '../apply/changes.ts'
import type { Db, Tx } from '../db/client.ts'
import type { EngineTx } from '../db/engine-tx.ts'
import { execute, query, type Statement } from '../db/raw.ts'
import type { Keyring, SealedPlace } from '../db/seal.ts'
import type { Actor } from '../permissions.ts'
import type { Conditions } from '../plan/engine.ts'
import type { TraceHeaders } from '../tracing.ts'
import { runFormat } from './format.ts'
import type { RetryKey } from './idempotency.ts'
import { comesBackAfterMs, isFinished, live, type RunState, staleAfterS } from './life.ts'
import type { Notes } from './notes.ts'
import { type StandsSince, storedOptions, submitterOf } from './options.ts'
import { keepShared, logsSql, storedResult } from './results.ts'

/** The run ledger: one row for each submission, with its outcome. BullMQ only wakes a worker. */

export type NewRun = {
  readonly id: string
  /** The name of the job: `apply oauth2 grafana`. */
  readonly title: string
  /** The provider's kind, or `blueprint`. */
  readonly kind: string
  /** Of the application; null for a blueprint. */
  readonly slug: string | null
  readonly submitterPk: number | null
  /** The real user, while impersonating. */
  readonly impersonator?: Pick<Actor, 'pk' | 'username'> | undefined
  /** The only permissions that the submitter's token carries. */
  readonly ceiling?: ReadonlySet<string> | undefined
  readonly requestId: string
  /** YAML text. */
  readonly blueprint: string
  /** Those that the document names for entries: labels, and null for none. */
  readonly owners?: readonly (string | null)[]
  readonly conditions: Conditions
  /** Why, as the submitter says it. */
  readonly message?: string | null
  /** The id of the run whose document it is. */
  readonly former?: string | undefined
  /** What its jobs continue, where the API is traced. */
  readonly trace?: TraceHeaders | undefined
  /** It has so many entries that runs of few go before it. */
  readonly isLarge?: boolean
  /** `Idempotency-Key`. */
  readonly retryKey?: RetryKey | undefined
}

/** How a run is recorded. */
export type Recording = {
  /**
   * By the clock of the database: a statement that the network delivers later writes nothing
   * (docs/adr/0034-a-run-is-recorded-in-time-or-never.md).
   */
  readonly notAfterMs: number
  /** Waits for the disk: the answer says that the run is recorded, and not what came of it. */
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
  const { id, title, kind, slug, submitterPk, requestId, blueprint, conditions, impersonator, ceiling } = run
  const { message, former, owners, trace } = run
  const real = impersonator && { pk: impersonator.pk, username: impersonator.username }
  const submitter = { impersonator: real, ceiling: ceiling && [...ceiling].sort() }
  const options = JSON.stringify(
    storedOptions(conditions, { ...submitter, ...(message && { message }), former, trace }, owners),
  )
  return [
    id,
    title,
    kind,
    slug,
    submitterPk,
    requestId,
    keyring.seal(blueprint, sealedColumn(id, 'blueprint')),
    conditions.mode,
    options,
  ]
}

/**
 * Writes the row of a run, before its job is added. Raw SQL, because the commit of a run whose client waits does not wait
 * for the disk (docs/adr/0004-recording-does-not-wait-for-the-disk.md).
 *
 * @returns the lane of its job; null when it was too late, and nothing was written
 * @throws an error of which `isKeyTaken` holds, when another request has recorded a run under the same key
 */
export async function recordRun(
  db: Db,
  keyring: Keyring,
  run: NewRun,
  { notAfterMs, isFlushed }: Recording,
): Promise<number | null> {
  const { retryKey, isLarge = false } = run
  const values = [...valuesOf(keyring, run), notAfterMs, isFlushed, isLarge]
  const keyed = `, keyed AS (INSERT INTO idempotency_keys (submitter_pk, key, request, run_id)
    SELECT $5::integer, $13::text, $14::bytea, id FROM recorded)`
  const [row] = await query(db, laneRow, {
    text: `WITH committing AS (SELECT set_config('synchronous_commit', 'off', true) WHERE NOT $11::boolean),
      ${own}, recorded AS (INSERT INTO runs (${columns}) SELECT ${placeholders("$9::jsonb || jsonb_build_object('lane', own.lane)")}
        FROM own LEFT JOIN committing ON true WHERE clock_timestamp() < to_timestamp($10::float8 / 1000)
        RETURNING id, (options->>'lane')::integer AS lane)${retryKey === undefined ? '' : keyed}
      SELECT lane FROM recorded`,
    values: retryKey === undefined ? values : [...values, retryKey.key, retryKey.request],
  })
  return row?.lane ?? null
}

const laneRow = z.object({ lane: z.int() })

/**
 * Jobs wait in lanes, and those of a lower one go first: the first run of a submitter waits for no other's backlog, and a run
 * of few entries not for large ones. A submitter's runs keep their order: no run has a lower lane than the submitter's own
 * that wait.
 */
const own = `own AS (SELECT greatest(max((options->>'lane')::integer), CASE WHEN count(*) = 0 THEN 0 WHEN count(*) < 10 THEN 1
    WHEN count(*) < 100 THEN 2 ELSE 3 END + CASE WHEN $12::boolean THEN 4 ELSE 0 END) AS lane
  FROM runs WHERE state = 'queued' AND submitter_pk = $5::integer)`

/** The columns for a worker. */
const workerRow = z.object({
  id: z.guid(),
  title: z.string(),
  kind: z.string(),
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
  options: z.record(z.string(), z.unknown()),
  applied: z.boolean().nullable(),
  reason: z.string().nullable(),
  /** Milliseconds since it was recorded. */
  queueMs: z.number(),
})

/** @property logs none while it is queued */
export type WorkerRun = z.output<typeof workerRow> & { readonly logs: string[] }

/** Locks the row for the rest of the transaction, so that only one worker works on the run. */
export async function lockRun(tx: EngineTx, id: string): Promise<WorkerRun | undefined> {
  const [run] = await tx.query(workerRow, {
    text: `SELECT id, title, kind, mode::text AS mode, state::text AS state, attempts, submitter_pk AS "submitterPk",
      (SELECT username FROM users WHERE pk = submitter_pk) AS "submitterName", request_id AS "requestId",
      blueprint, created_at < now() - make_interval(secs => $2) AS "isStale", format, options, applied,
      reason, round(extract(epoch FROM now() - created_at) * 1000)::float8 AS "queueMs"
      FROM runs WHERE id = $1::uuid FOR UPDATE`,
    values: [id, staleAfterS],
  })
  if (run === undefined) return undefined
  if (!isFinished(run.state)) return { ...run, logs: [] }
  // With a snapshot behind the lock: of a run that another worker has just ended, the first one has the row alone.
  const [ended] = await tx.query(z.object({ logs: z.array(z.string()) }), {
    text: `SELECT ${logsSql} AS logs FROM runs WHERE id = $1::uuid`,
    values: [id],
  })
  return { ...run, logs: ended?.logs ?? [] }
}

/** Which of these runs a worker has locked. */
export async function lockedRuns(db: Db, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const free = await query(db, z.object({ id: z.guid() }), {
    text: 'SELECT id FROM runs WHERE id = ANY($1::uuid[]) FOR KEY SHARE SKIP LOCKED',
    values: [ids],
  })
  return new Set(ids).difference(new Set(free.map(({ id }) => id)))
}

/** Later runs of a submitter among which one of the same name is looked for. */
const mostLater = 1_000

/**
 * What repaired failed runs: a later run that applied an application with the same slug, the newest one of the same document,
 * or the first that changed the application as part of a set; the earliest of these. A blueprint with a name is the same
 * document when its submitter applies one of this name, though it says something else by then.
 *
 * @returns the ids of these runs, by the ids of the failed ones
 */
export async function repairs(
  db: Db | Tx,
  runs: readonly { readonly id: string; readonly state: RunState }[],
): Promise<ReadonlyMap<string, string>> {
  const failed = runs.filter(({ state }) => state === 'failed').map(({ id }) => id)
  if (failed.length === 0) return new Map()
  const rows = await query(db, z.object({ id: z.guid(), by: z.guid().nullable() }), {
    text: `SELECT f.id, (SELECT later.id FROM (
        (SELECT l.id, l.created_at FROM runs l WHERE l.slug = f.slug AND l.created_at > f.created_at AND l.applied
          ORDER BY l.created_at LIMIT 1)
        UNION ALL (SELECT l.id, l.created_at FROM runs l WHERE l.document = f.document AND l.blueprint IS NOT NULL
          AND l.created_at > f.created_at AND l.applied ORDER BY l.created_at LIMIT 1)
        UNION ALL (SELECT o.run_id, o.at FROM run_objects o WHERE o.model = 'service_core.application' AND o.name = f.slug
          AND o.action <> 'delete' AND o.run_id IS NOT NULL AND o.at > f.created_at ORDER BY o.audit_pk LIMIT 1)
        UNION ALL (SELECT n.id, n.created_at FROM (SELECT l.id, l.created_at, l.title, l.applied FROM runs l
            WHERE f.slug IS NULL AND f.title LIKE 'apply blueprint _%' AND l.submitter_pk = f.submitter_pk
              AND l.created_at > f.created_at ORDER BY l.created_at, l.id LIMIT ${mostLater}) n
          WHERE n.title = f.title AND n.applied ORDER BY n.created_at LIMIT 1)
      ) later ORDER BY later.created_at LIMIT 1) AS by
      FROM runs f WHERE f.id = ANY ($1::uuid[])`,
    values: [failed],
  })
  return new Map(rows.flatMap(({ id, by }) => (by === null ? [] : [[id, by]])))
}

/** Whether the time for reading generated values has not passed. The clock of the database counts. */
export async function showsGenerated(db: Db, id: string): Promise<boolean> {
  const [row] = await query(db, z.object({ shows: z.boolean() }), {
    text: 'SELECT coalesce(generated_until > now(), false) AS shows FROM runs WHERE id = $1::uuid',
    values: [id],
  })
  return row?.shows === true
}

/** The end of a run: applied, refused or failed. */
export type RunResult = {
  readonly event: 'finish' | 'fail'
  /** A digest of the document that was applied. */
  readonly document?: Buffer
  readonly applied: boolean
  /** A code of the closed catalogue; null when it was applied. */
  readonly reason: string | null
  readonly logs: readonly string[]
  /** What each entry changes, also in a plan; none when it was refused. */
  readonly changes: readonly Change[]
  /** Of each entry of a plan. */
  readonly digests: readonly string[]
  /** Of a plan that was not refused. */
  readonly planTag?: string
  /** Of an apply of a reviewed plan that stood already. */
  readonly stands?: StandsSince | undefined
  /** For the audit row. */
  readonly audited: readonly AuditedChange[]
  /** Generated values by entry and field; readable for a few hours. */
  readonly generated: Readonly<Record<string, Readonly<Record<string, string>>>>
  readonly actorName: string
  /** Of a failure: `causeText`. */
  readonly cause?: string
  /** Of a plan: what it reports beside the changes. */
  readonly notes?: Notes | undefined
}

type Ledger = { readonly keyring: Keyring; readonly runSecretsHours: number }

/** Ends a run that the transaction has locked. Writes its result, and the audit row when it was applied. */
export function finishRun(
  tx: EngineTx,
  { keyring, runSecretsHours }: Ledger,
  run: WorkerRun,
  state: RunState,
  result: RunResult,
): void {
  const { document = null, applied, reason, digests, planTag = null, cause = null } = result
  const { audited, generated, actorName, stands } = result
  const sealed =
    Object.keys(generated).length === 0
      ? null
      : keyring.seal(JSON.stringify(generated), sealedColumn(run.id, 'generated'))
  const { own, shared } = storedResult(keyring, run, result)
  const values = [
    ...[run.id, state, applied, reason, sealed, runSecretsHours, document],
    ...[digests, planTag, cause, ...own],
  ]
  if (!applied) {
    // Only plans have notes, and only failed runs a cause.
    const more = result.notes === undefined ? '' : ', notes = $14::jsonb'
    const text = cause === null ? end(more) : `WITH attempted AS (${attempt}) ${end(more)}`
    tx.send({ text, values: [...values, ...(result.notes === undefined ? [] : [JSON.stringify(result.notes)])] })
    return
  }
  if (document !== null && audited.length === 0) dropEarlierCopies(tx, run.id, document)
  if (stands !== undefined) tx.send({ text: keepStanding, values: [run.id, JSON.stringify({ stands })] })
  const { impersonator } = submitterOf(run)
  const actor = { pk: run.submitterPk, username: actorName, impersonator }
  const { actorPk, realPk, realName, changes: of } = auditRow({ actor, action: 'apply', changes: audited })
  const withAudit = [...values, actorPk, actorName, realPk, realName, JSON.stringify(of)]
  const text = `WITH ${shared === null ? '' : `${keepShared('$13', '$19', '$20')}, `}ended AS (${end()} RETURNING request_id, id)`
  const audit = `INSERT INTO audit_rows (actor_pk, actor_name, real_pk, real_name, action, changes, request_id, run_id)
    SELECT $14::integer, $15::text, $16::integer, $17::text, 'apply', $18::jsonb, request_id, id FROM ended`
  if (audited.length === 0) tx.send({ text: `${text} ${audit}`, values: [...withAudit, ...(shared ?? [])] })
  else
    tx.send({
      text: `${text}, audited AS (${audit} RETURNING pk, at, run_id) ${insertObjects('audited', '$19', '$20')}`,
      values: [...withAudit, listOf(audited, true), digestKey(keyring)],
    })
}

const end = (more = ''): string => `UPDATE runs SET state = $2::run_state, applied = $3, reason = $4, generated = $5,
  generated_until = CASE WHEN $5::text IS NULL THEN NULL ELSE now() + make_interval(hours => $6::integer) END,
  started_at = now(), finished_at = clock_timestamp(), document = $7::bytea, entry_digests = $8::text[], plan_tag = $9,
  cause = $10, logs = $11::text[], changes = $12::jsonb, shared_result = $13::uuid${more} WHERE id = $1::uuid`

/** It is rare: no other run has a column for it. */
const keepStanding = 'UPDATE runs SET options = options || $2::jsonb WHERE id = $1::uuid'

/** The attempt that ended a run as failed, with the cause of the run. */
const attempt = `INSERT INTO run_attempts (run_id, attempt, cause)
  SELECT id, attempts, $10::text FROM runs WHERE id = $1::uuid ON CONFLICT DO NOTHING`

/**
 * A run that changed nothing often has the document of earlier runs: the newest of them keeps it for all
 * (docs/adr/0035-the-newest-run-keeps-the-document.md).
 */
function dropEarlierCopies(tx: EngineTx, id: string, document: Buffer): void {
  tx.send({
    text: `UPDATE runs SET blueprint = NULL FROM runs latest
      WHERE latest.id = $1::uuid AND runs.document = $2::bytea AND runs.blueprint IS NOT NULL
        AND runs.state <> 'queued' AND runs.created_at < latest.created_at`,
    values: [id, document],
  })
}

/** Records that the present attempt of a queued run failed. The first cause of an attempt stays. */
export async function recordAttempt(db: Db, id: string, cause: string): Promise<void> {
  await execute(db, {
    text: `INSERT INTO run_attempts (run_id, attempt, cause) SELECT id, attempts, $2 FROM runs
      WHERE id = $1::uuid AND state = 'queued' ON CONFLICT DO NOTHING`,
    values: [id, cause],
  })
}

const cancelled: RunState = live({ state: 'queued', attempts: 1 }, 'cancel').state
const cancelledRow = z.object({ id: z.guid() })

const cancellation = (id: string, why: string, by: string | null = null): Statement => ({
  text: `UPDATE runs SET state = $2::run_state, reason = 'cancelled', logs = ARRAY[$3::text], finished_at = clock_timestamp(),
      options = options || jsonb_strip_nulls(jsonb_build_object('cancelled_by', $4::text))
    WHERE id = $1::uuid AND state = 'queued' RETURNING id`,
  values: [id, cancelled, why, by],
})

/**
 * Cancels a queued run. Waits for the row's lock: a run that a worker has locked is not cancelled.
 *
 * @returns true: it was cancelled, and certainly not applied
 */
export async function cancelRun(tx: Tx, id: string, why: string): Promise<boolean> {
  return (await query(tx, cancelledRow, cancellation(id, why))).length > 0
}

/** The same for a user, whose name the run keeps: its submitter is not asked to send it again. */
export async function cancelRunBy(tx: Tx, id: string, username: string): Promise<boolean> {
  const why = `not applied: cancelled by ${username}`
  return (await query(tx, cancelledRow, cancellation(id, why, username))).length > 0
}

/** Cancels a run that the transaction has locked. */
export const cancelLocked = (tx: EngineTx, id: string, why: string): void => tx.send(cancellation(id, why))

/**
 * Leaves a locked run to another worker. The reconciler does not ask about it before its job has come back, so that no
 * attempt is counted.
 */
export function leaveQueued(tx: EngineTx, id: string): void {
  tx.send({
    text: 'UPDATE runs SET enqueued_at = now() + make_interval(secs => $2::float8 / 1000) WHERE id = $1::uuid',
    values: [id, comesBackAfterMs],
  })
}

/**
 * Cancels a run that may or may not be recorded. Its row is written as cancelled, so that a record that arrives later
 * fails on the key.
 *
 * @returns true: it is cancelled, and certainly never applied
 */
export async function recordCancelled(tx: Tx, keyring: Keyring, run: NewRun, why: string): Promise<boolean> {
  const rows = await query(tx, cancelledRow, {
    text: `INSERT INTO runs (${columns}, state, reason, logs, finished_at)
      VALUES (${placeholders('$9::jsonb')}, $10::run_state, 'cancelled', ARRAY[$11::text], clock_timestamp())
      ON CONFLICT (id) DO UPDATE SET state = excluded.state, reason = excluded.reason, logs = excluded.logs,
        finished_at = excluded.finished_at WHERE runs.state = 'queued' RETURNING id`,
    values: [...valuesOf(keyring, run), cancelled, why],
  })
  return rows.length > 0
}

/** The columns for a waiting client, as raw SQL reads them and as JSON holds them. */
const ended = {
  /** The user who cancelled it. Null in all other runs; a version that knows no such user leaves it out. */
  cancelledBy: z.string().nullable().default(null),
  ...{ id: z.guid(), state: z.enum(['queued', 'done', 'failed', 'cancelled']), applied: z.boolean().nullable() },
  ...{ reason: z.string().nullable(), logs: z.array(z.string()), planTag: z.string().nullable() },
}
const readRow = z.object({ ...ended, createdAt: z.date(), startedAt: z.date().nullable() })

/** What a waiting client gets. */
export type Run = z.output<typeof readRow>

const time = z.iso.datetime({ offset: true }).transform((text) => new Date(text))
const notifiedRow: z.ZodType<Run> = z.object({ ...ended, createdAt: time, startedAt: time.nullable() })

const columnsToRead = `id, state::text AS state, applied, reason, ${logsSql} AS logs,
  created_at AS "createdAt", started_at AS "startedAt", plan_tag AS "planTag", options->>'cancelled_by' AS "cancelledBy"`

/** Runs by their ids. Raw SQL: Prisma's list of keys is planned anew for each length. */
export const readRuns = (db: Db, ids: readonly string[]): Promise<Run[]> =>
  query(db, readRow, { text: `SELECT ${columnsToRead} FROM runs WHERE id = ANY($1::uuid[])`, values: [ids] })

/** The channel for `LISTEN`. The payload is a run that ended, as JSON, or only its id when it is too long. */
export const runChannel = 'gatewright_run'

/** PostgreSQL refuses a longer payload. */
const longestPayload = 7_999

/**
 * Notifies the subscribers of a run of its end, which PostgreSQL takes from the committed row; of a run that has not
 * ended, it does not. Never inside the transaction that ends it: commits that notify wait for each other. A notification
 * may get lost: subscribers also poll (docs/adr/0052-a-notification-carries-the-end.md).
 */
export const notification = (id: string): Statement => ({
  text: `SELECT pg_notify($2, CASE WHEN octet_length(run) <= ${longestPayload} THEN run ELSE id::text END)
    FROM (SELECT id, to_jsonb(ended)::text AS run
      FROM (SELECT ${columnsToRead} FROM runs WHERE id = $1::uuid AND state <> 'queued') ended) notified`,
  values: [id, runChannel],
})

/** Notifies in the background. */
export function notifyEnded(db: Db, id: string): void {
  execute(db, notification(id)).catch(() => {})
}

/** @returns the run in a payload; its id alone when that is all there is; undefined for anything else */
export function notifiedRun(payload: string): Run | string | undefined {
  if (z.guid().safeParse(payload).success) return payload
  try {
    return notifiedRow.parse(JSON.parse(payload))
  } catch {
    return undefined
  }
}
