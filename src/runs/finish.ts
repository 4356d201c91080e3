import { type AuditedChange, auditValues } from '../apply/audit.ts'
import type { Change } from '../apply/changes.ts'
import type { EngineTx } from '../db/engine-tx.ts'
import type { Statement } from '../db/raw.ts'
import type { Keyring } from '../db/seal.ts'
import type { ErrorDetail } from '../errors.ts'
import { sealedColumn, type WorkerRun } from './ledger.ts'
import { submitterOf } from './options.ts'

/** The end of a run in the ledger, with its result, and the ends of its attempts. */

/** The end of a run: applied, refused or failed. */
export type RunResult = {
  readonly state: 'done' | 'failed'
  /** A digest of the document that was applied. */
  readonly document?: Buffer
  readonly applied: boolean
  /** A code of the closed catalogue; null when it was applied. */
  readonly reason: string | null
  readonly logs: readonly string[]
  /** Those of a refusal that are about entries. */
  readonly errors?: readonly ErrorDetail[]
  /** The changes of each entry, also in a plan; none when it was refused. */
  readonly changes?: readonly Change[]
  /** Digests of the entries of a plan. */
  readonly digests?: readonly string[]
  /** Set for a plan that was not refused. */
  readonly planTag?: string
  readonly audited?: readonly AuditedChange[]
  /** Generated values by entry and field; readable for a few hours. */
  readonly generated?: Readonly<Record<string, Readonly<Record<string, string>>>>
  /** The effective user, when it was applied. */
  readonly actorName?: string
  /** The `causeText` of a failure. */
  readonly cause?: string
  /** Its stack; null without one. */
  readonly stack?: string | null
  /** Whether the members of the stack differ from those before. */
  readonly isRestacked?: boolean
}

type Ledger = { readonly keyring: Keyring; readonly runSecretsHours: number }

/** Ends a run that the transaction has locked. Writes its result, and the audit row when it was applied. */
export function finishRun(tx: EngineTx, { keyring, runSecretsHours }: Ledger, run: WorkerRun, result: RunResult): void {
  const { state, document = null, applied, reason, digests = [], planTag = null, cause = null, errors = [] } = result
  const { audited = [], generated = {}, actorName = '', logs, changes = [], stack = null, isRestacked = false } = result
  const sealed =
    Object.keys(generated).length === 0
      ? null
      : keyring.seal(JSON.stringify(generated), sealedColumn(run.id, 'generated'))
  const values = [
    ...[run.id, state, applied, reason, sealed, runSecretsHours, document],
    ...[digests, planTag, cause, logs, changes.length === 0 ? null : JSON.stringify(changes)],
    errors.length === 0 ? null : JSON.stringify(errors),
  ]
  if (!applied) {
    if (cause !== null) tx.send({ text: recordedFailure, values: [run.id, cause] })
    tx.send({ text: end, values })
    return
  }
  if (document !== null && audited.length === 0) dropEarlierCopies(tx, run.id, document)
  if (stack !== null)
    tx.send({
      // To go back to a run with the same document would change nothing.
      text: `UPDATE stacks s SET run = $2::uuid, run_before = CASE
          WHEN (SELECT r.document FROM runs r WHERE r.id = s.run) IS DISTINCT FROM $4::bytea THEN s.run ELSE s.run_before END
        WHERE name = $1 AND (run IS NULL OR $3)`,
      values: [stack, run.id, isRestacked || audited.length > 0, document],
    })
  const { impersonator } = submitterOf(run)
  const actor = { pk: run.submitterPk, username: actorName, impersonator }
  const row = auditValues({ actor, action: 'apply', changes: audited, requestId: run.requestId, runId: run.id })
  tx.send({
    text: `WITH ended AS (${end}) INSERT INTO audit_rows (${row.columns})
      VALUES ($14, $15, $16, $17, $18, $19::jsonb, $20::text[], $21, $22::uuid)`,
    values: [...values, ...row.values],
  })
}

const end = `UPDATE runs SET state = $2::run_state, applied = $3, reason = $4, generated = $5,
  generated_until = CASE WHEN $5::text IS NULL THEN NULL ELSE now() + make_interval(hours => $6::integer) END,
  started_at = coalesce(started_at, now()), finished_at = clock_timestamp(), document = $7::bytea, entry_digests = $8::text[], plan_tag = $9,
  cause = $10, logs = $11::text[], changes = $12::jsonb, errors = $13::jsonb WHERE id = $1::uuid`

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

/** A cancel may have waited for the end of the attempt. */
const isOpen = "state IN ('queued', 'cancelled')"

/**
 * Records that the present attempt of a run failed. The first cause of an attempt stays, but for a lock that was not given: that is
 * tried again within the attempt.
 */
const recordedFailure = `INSERT INTO run_attempts (run_id, attempt, cause) SELECT id, attempts, $2 FROM runs
  WHERE id = $1::uuid AND ${isOpen} ON CONFLICT (run_id, attempt) DO UPDATE SET cause = excluded.cause, at = excluded.at
    WHERE run_attempts.cause LIKE '%(SQLSTATE 55P03)'`

/** @property workedMs how long the worker had the run @property afterMs when its job comes back; absent when it failed */
export type Interruption = { readonly workedMs: number; readonly afterMs?: number | undefined }

/**
 * Records that a worker had the run, and could not finish it: the time since then is work. A run that another worker has locked by
 * now keeps its times.
 */
export const interruption = (id: string, cause: string, { workedMs, afterMs }: Interruption): Statement => ({
  text: `WITH begun AS (
      UPDATE runs SET started_at = coalesce(started_at, clock_timestamp() - make_interval(secs => $3::float8 / 1000)),
        enqueued_at = coalesce(now() + make_interval(secs => $4::float8 / 1000), enqueued_at)
      WHERE id = (SELECT id FROM runs WHERE id = $1::uuid AND ${isOpen} FOR UPDATE SKIP LOCKED)
    ) ${recordedFailure}`,
  values: [id, cause, workedMs, afterMs ?? null],
})
