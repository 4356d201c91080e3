import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { query, type Statement } from '../db/raw.ts'
import { traceHeaders } from '../tracing.ts'
import { lostCause } from './cause.ts'
import { notifyEnded } from './ended.ts'
import { idRow, isAtSet } from './ledger.ts'
import { type Life, maxAttempts, notItsTurnMs, patienceS } from './life.ts'

/** The interface of the ledger for the reconciler. The simulation of runs has a second one, in memory (test/simulation/). */
export type ReconcilerLedger = {
  /**
   * Queued runs that have waited for longer than `patienceS`, the oldest first; none that a worker has locked. Several workers may
   * read them at once: `save` lets one of them decide.
   */
  overdue(): Promise<Overdue[]>
  /**
   * Writes the decisions, and starts the waiting time again. A run that a worker has locked or finished by now, or that another
   * reconciler has changed, stays as it is.
   *
   * @returns the ids of the runs that were written
   */
  save(runs: readonly Decided[]): Promise<ReadonlySet<string>>
  /** Runs that waited for their turn, and have it now: their jobs are to be taken again. */
  due(): Promise<Pick<Overdue, 'id' | 'attempts'>[]>
  /** Notifies the clients that wait for a run, in the background. */
  notifyEnded(id: string): void
}

const overdueRow = z.object({
  id: z.guid(),
  title: z.string(),
  kind: z.string(),
  mode: z.enum(['apply', 'plan']),
  attempts: z.int(),
  request: z.string(),
  user: z.string().nullable(),
  realUser: z.string().nullable(),
  /** The trace of its submission; null when that was not traced. */
  trace: traceHeaders.nullish(),
  /** Whether its worker recorded why the present attempt failed. */
  isExplained: z.boolean(),
})

export type Overdue = z.output<typeof overdueRow>
/** A run as it was read, and its life after the answer of the queue. */
export type Decided = Overdue & { readonly next: Life }

const batch = 100

/** Seconds by the number of attempts. SQL compares them, so that runs that must wait longer do not fill the batch. */
const patience = Array.from({ length: maxAttempts + 1 }, (_, attempts) => patienceS(attempts))

export const reconcilerLedger = (db: Db): ReconcilerLedger => ({
  overdue: () => query(db, overdueRow, { text: overdueText, values: [patience, batch] }),
  save: async (runs) => new Set((await query(db, idRow, saving(runs))).map(({ id }) => id)),
  due: () => query(db, dueRow, { text: dueText, values: [batch, `${notItsTurnMs - leftForMs} milliseconds`] }),
  notifyEnded: (id) => notifyEnded(db, id),
})

/** A run that was left in the queue can be woken only after its job has been delayed, too. */
const leftForMs = 500

const dueRow = overdueRow.pick({ id: true, attempts: true })

/**
 * Finds runs whose turn has come, as `takeTurn` decides. Only a worker knows whether a slot is free, so the first set of each
 * submitter is due.
 */
const dueText = `WITH waiting AS MATERIALIZED (
    SELECT id, submitter_pk, enqueued_at, options->'entries' IS NOT NULL AS is_set,
      count(*) FILTER (WHERE options->'entries' IS NOT NULL) OVER (PARTITION BY submitter_pk ORDER BY created_at, id
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS sets FROM runs WHERE state = 'queued'
  ), due AS (
    SELECT runs.id FROM runs JOIN waiting r USING (id) WHERE r.enqueued_at BETWEEN now() AND now() + $2::interval AND runs.state = 'queued'
      AND runs.options->>'lane' >= '4' AND (r.sets = 0 OR (NOT r.is_set AND r.sets = 1 AND ${isAtSet}))
    ORDER BY runs.created_at LIMIT $1 FOR UPDATE OF runs SKIP LOCKED
  ) UPDATE runs SET enqueued_at = now() FROM due WHERE runs.id = due.id RETURNING runs.id, runs.attempts`

/** SKIP LOCKED: a worker works on a locked run. */
const overdueText = `SELECT id, title, kind, mode::text AS mode, attempts, request_id AS request,
    (SELECT username FROM users WHERE pk = submitter_pk) AS "user",
    options -> 'impersonator' ->> 'username' AS "realUser", options -> 'trace' AS trace,
    EXISTS (SELECT 1 FROM run_attempts a WHERE a.run_id = runs.id AND a.attempt = runs.attempts) AS "isExplained" FROM runs
  WHERE state = 'queued' AND enqueued_at < now() - make_interval(
    secs => ($1::float8[])[greatest(0, least(attempts, cardinality($1::float8[]) - 1)) + 1])
  ORDER BY enqueued_at LIMIT $2 FOR UPDATE SKIP LOCKED`

/**
 * The cause of a run that fails is the last one that was recorded before: the statement does not see the rows that it inserts.
 */
const saving = (runs: readonly Decided[]): Statement => ({
  text: `WITH still AS (
      SELECT r.id, r.attempts, decided.next, decided.fails FROM runs r
      JOIN unnest($1::uuid[], $2::integer[], $3::integer[], $4::boolean[]) AS decided(id, attempts, next, fails) USING (id)
      WHERE r.state = 'queued' AND r.attempts = decided.attempts FOR UPDATE OF r SKIP LOCKED
    ), lost AS (
      INSERT INTO run_attempts (run_id, attempt, cause) SELECT id, attempts, $5 FROM still WHERE fails OR next > attempts
      ON CONFLICT DO NOTHING
    ), counted AS (
      UPDATE runs SET attempts = still.next, enqueued_at = now() FROM still WHERE runs.id = still.id AND NOT fails
      RETURNING runs.id
    ), failed AS (
      UPDATE runs SET state = 'failed', applied = false, reason = 'unavailable', finished_at = now(),
        logs = ARRAY['not applied: enqueued ' || runs.attempts || ' times, and no worker finished it'],
        cause = coalesce((SELECT a.cause FROM run_attempts a WHERE a.run_id = runs.id ORDER BY a.attempt DESC LIMIT 1), $5)
      FROM still WHERE runs.id = still.id AND fails RETURNING runs.id
    ) SELECT id FROM counted UNION ALL SELECT id FROM failed`,
  values: [
    ...[runs.map(({ id }) => id), runs.map(({ attempts }) => attempts)],
    ...[runs.map(({ next }) => next.attempts), runs.map(({ next }) => next.state === 'failed'), lostCause],
  ],
})
