import { type Statement, statement } from '../../db/sql.ts'
import { activeUser } from '../../models/actor.ts'
import type { Change } from '../perform.ts'
import type { Rights } from '../rights.ts'
import type { RunState } from './life.ts'
import { freeRun, impersonatorOf, type WorkerRun } from './record.ts'

/**
 * The end of a run: its result and its audit row, in one statement, so that they are in the database together or not at
 * all.
 */

export type End = {
  readonly state: RunState
  readonly applied: boolean
  readonly reason: string | null
  readonly logs: readonly string[]
  readonly changes: readonly Change[]
  /** Sealed. */
  readonly generated: string | null
  readonly runSecretsHours: number
}

const end = `state = $2::run_state, applied = $3, reason = $4, logs = $5, generated = $6,
  generated_until = CASE WHEN $6::text IS NULL THEN NULL ELSE now() + make_interval(hours => $7) END,
  started_at = now(), finished_at = clock_timestamp()`

const audit = 'INSERT INTO audit_rows (run_id, request_id, actor_pk, action, changes, actor_name, real_pk, real_name)'
const audited = "$1, $8, $9::integer, 'apply', $10::jsonb"

const values = (run: WorkerRun, { state, applied, reason, logs, generated, runSecretsHours, changes }: End) => [
  ...[run.id, state, applied, reason, logs, generated, runSecretsHours],
  ...[run.requestId, run.submitterPk, JSON.stringify(changes)],
]

const locked = `WITH finished AS (UPDATE runs SET ${end} WHERE id = $1)
  ${audit} SELECT ${audited}, $11, $12::integer, $13 WHERE $3`

/** Of a run that the transaction has locked. Only one that was applied has an audit row. */
export function endLocked(run: WorkerRun, ending: End, actorName: string): Statement {
  const real = impersonatorOf(run)
  return statement(locked, [...values(run, ending), actorName, real?.pk ?? null, real?.username ?? null])
}

// By its place, not by its key: a row that somebody changed between this statement's snapshot and its lock is not found.
const free = `WITH finished AS (
    UPDATE runs SET ${end} FROM (${activeUser('pk', '$9::integer')}) submitter
    WHERE runs.ctid = (${freeRun('$1', ' AND submitter_pk = $9')})
      AND (submitter.superuser OR NOT $11) AND submitter.permissions @> $12::text[]
    RETURNING submitter.username)
  ${audit} SELECT ${audited}, (SELECT username FROM finished), NULL, NULL`

/**
 * Of a run that was applied and that nobody may have locked or ended meanwhile, by a submitter who still has the rights
 * that he was judged by. Otherwise the statement fails: the database refuses an audit row of nobody.
 */
export const endFree = (run: WorkerRun, ending: End, { superuser, permissions }: Rights): Statement =>
  statement(free, [...values(run, ending), superuser, permissions])

/** The column by which `endFree` fails. */
export const refusedColumn = { table: 'audit_rows', column: 'actor_name' } as const
