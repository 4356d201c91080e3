import { z } from 'zod'
import type { Announcement } from '../../db/announce.ts'
import type { Db, Queryable } from '../../db/client.ts'
import type { Keyring, SealedPlace } from '../../db/seal.ts'
import { sql, statement } from '../../db/sql.ts'
import type { Actor } from '../../permissions.ts'
import type { Conditions } from '../apply.ts'
import type { Draw, Drawn, Outright } from '../outright.ts'
import type { Rights } from '../rights.ts'
import { nextKey } from '../statements.ts'
import { live, type RunState } from './life.ts'

/** The run ledger: one row for each submission, and the truth about it. BullMQ only rings. */

/** Where finished runs are announced: `LISTEN` on it. */
export const runChannel = 'gatewright_run'

/** Tells whoever waits for a run to look at it. */
export const runFinished = (id: string): Announcement => ({ channel: runChannel, text: id })

/** A run as its readers see it. Times are the database's. */
export type Run = {
  readonly id: string
  readonly state: RunState
  readonly title: string
  readonly submitterPk: number | null
  readonly applied: boolean | null
  readonly reason: string | null
  readonly logs: readonly string[]
  /** Seconds from its record to the start of the transaction that finished it; null when no worker did. */
  readonly waitedS: number | null
}

export type NewRun = {
  readonly id: string
  /** What the job is called: `apply oauth2 grafana`. */
  readonly title: string
  readonly submitterPk: number | null
  /** Who really submits, while he does so as somebody else. */
  readonly impersonator?: Pick<Actor, 'pk' | 'username'> | undefined
  readonly requestId: string
  /** YAML text. */
  readonly blueprint: string
  readonly conditions: Conditions
  readonly outright?: Outright | undefined
}

export const sealedColumn = (id: string, column: 'blueprint' | 'generated'): SealedPlace => ({
  table: 'runs',
  row: id,
  column,
})

/**
 * Writes the run's row before anything is queued. The commit does not wait for the disk: a row that a crash of
 * PostgreSQL takes away was not applied either, and the applying transaction flushes all that came before it.
 */
export async function record(db: Pick<Db, 'writeUnflushed'>, keyring: Keyring, run: NewRun): Promise<void> {
  const { id, title, submitterPk, requestId } = run
  const draws = run.outright?.draws
  const values = [id, title, submitterPk, requestId, sealed(keyring, run), toOptions(run)]
  const text = `INSERT INTO runs (id, title, submitter_pk, request_id, blueprint, options)
    VALUES ($1, $2, $3::integer, $4, $5, $6::jsonb${drawn(draws, values.length)})`
  await db.writeUnflushed(statement(text, [...values, ...(draws ?? []).map(({ entry }) => entry)]))
}

/** Keys are drawn with the record and kept in it: of one that is refused before, none is used up. */
function drawn(draws: readonly Draw[] | undefined, before: number): string {
  if (draws === undefined) return ''
  const keys = draws.map(({ table }, index) => `$${before + 1 + index}::text, ${nextKey(table)}`)
  return ` || jsonb_build_object('drawn', jsonb_build_object(${keys.join(', ')}))`
}

const toOptions = ({ conditions, impersonator, outright }: NewRun) =>
  JSON.stringify({
    ...conditions,
    ...(outright !== undefined && { rights: outright.rights }),
    ...(impersonator !== undefined && { impersonator: { pk: impersonator.pk, username: impersonator.username } }),
  })

const sealed = (keyring: Keyring, { id, blueprint }: NewRun) => keyring.seal(blueprint, sealedColumn(id, 'blueprint'))

const runs = `SELECT id, state, title, submitter_pk AS "submitterPk", applied, reason, logs, extract(epoch FROM started_at - created_at)::float8 AS "waitedS" FROM runs`

/** Those of the runs that are there. One that was recorded and is not was lost in a crash of PostgreSQL. */
export function readRuns(q: Queryable, ids: readonly string[]): Promise<Run[]> {
  // One key is by far the most frequent question, and for one the plan can only be the index.
  const [id] = ids
  return q.query<Run>(
    ids.length === 1
      ? statement(`${runs} WHERE id = $1`, [id])
      : statement(`${runs} WHERE id = ANY($1::uuid[])`, [ids]),
  )
}

/** What a worker needs of a run. */
export type WorkerRun = Pick<Run, 'id' | 'state' | 'submitterPk'> & {
  readonly rings: number
  readonly requestId: string
  readonly blueprint: string
  readonly options: unknown
}

const workerColumns = 'id, state, rings, submitter_pk AS "submitterPk", request_id AS "requestId", blueprint, options'

/** A run as it is, whoever may have it. */
export async function seeRun(q: Queryable, id: string): Promise<WorkerRun | undefined> {
  const [run] = await q.query<WorkerRun>(statement(`SELECT ${workerColumns} FROM runs WHERE id = $1`, [id]))
  return run
}

/** Locks the row for the rest of the transaction: the fence between a worker and its replacement. */
export async function lockRun(q: Queryable, id: string): Promise<WorkerRun | undefined> {
  const [run] = await q.query<WorkerRun>(statement(`SELECT ${workerColumns} FROM runs WHERE id = $1 FOR UPDATE`, [id]))
  return run
}

/**
 * The place of a run that nobody has, locked for the rest of the transaction, in SQL.
 *
 * @param id its placeholder
 * @param also a further condition: ` AND ...`
 */
export const freeRun = (id: string, also = '') =>
  `SELECT ctid FROM runs WHERE id = ${id} AND state = 'queued'${also} FOR UPDATE SKIP LOCKED`

/** As `lockRun`, without waiting. @returns false when somebody else has the run, or nobody needs to have it any more */
export async function claimRun(q: Queryable, id: string): Promise<boolean> {
  const rows = await q.query(statement(freeRun('$1'), [id]))
  return rows.length > 0
}

const optionsSchema = z.object({
  createOnly: z.boolean(),
  expectedKeys: z.record(z.string(), z.number()),
  drawn: z.record(z.string(), z.number()).optional(),
  rights: z.object({ superuser: z.boolean(), permissions: z.array(z.string()) }).optional(),
})

/** What was recorded beside the document. @returns `outright` when it can be written so */
export function readOptions({ options }: WorkerRun): {
  readonly conditions: Conditions
  readonly outright: { readonly drawn: Drawn; readonly rights: Rights } | undefined
} {
  const { drawn, rights, ...conditions } = optionsSchema.parse(options)
  return { conditions, outright: drawn && rights && { drawn, rights } }
}

const impersonatorSchema = z.object({
  impersonator: z.object({ pk: z.number(), username: z.string() }).optional(),
})

/** Who really submitted it, when he did so as somebody else. */
export const impersonatorOf = (run: { readonly options: unknown }): { pk: number; username: string } | undefined =>
  impersonatorSchema.parse(run.options).impersonator

const cancelled = (rings: number): RunState => live({ state: 'queued', rings }, 'cancel').state

/**
 * Takes a run back that nobody has begun. Waits for the row's lock: a run that is being worked on is not cancelled.
 *
 * @returns whether it was cancelled: then it certainly was not applied
 */
export async function cancel(q: Queryable, id: string, why: string): Promise<boolean> {
  const rows = await q.query(sql`
    UPDATE runs SET state = ${cancelled(1)}::run_state, reason = 'not_applied', logs = ARRAY[${why}], finished_at = clock_timestamp()
    WHERE id = ${id} AND state = 'queued' RETURNING id`)
  return rows.length > 0
}

/**
 * Takes a run back of which nobody knows whether it was recorded: its row is written as cancelled, so that a record
 * that is still on its way finds its place taken.
 *
 * @returns whether it is cancelled: then it certainly was not and will not be applied
 */
export async function recordCancelled(q: Queryable, keyring: Keyring, run: NewRun, why: string): Promise<boolean> {
  const { id, title, submitterPk, requestId } = run
  const rows = await q.query(sql`
    INSERT INTO runs (id, title, submitter_pk, request_id, blueprint, options, state, reason, logs, finished_at)
    VALUES (${id}, ${title}, ${submitterPk}::integer, ${requestId}, ${sealed(keyring, run)}, ${toOptions(run)}::jsonb,
      ${cancelled(0)}::run_state, 'not_applied', ARRAY[${why}], clock_timestamp())
    ON CONFLICT (id) DO UPDATE SET state = excluded.state, reason = excluded.reason, logs = excluded.logs, finished_at = excluded.finished_at
    WHERE runs.state = 'queued' RETURNING id`)
  return rows.length > 0
}
