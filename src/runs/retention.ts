import { z } from 'zod'
import { keyViewHours } from '../apply/token-key.ts'
import type { Db } from '../db/client.ts'
import { execute, query } from '../db/raw.ts'
import { repeat } from '../db/rounds.ts'
import type { Logger } from '../log.ts'
import { expiresOf, previousOf } from '../models/overlap.ts'
import type { Registry } from '../models/registry.ts'
import { ownRows, quoted } from '../plan/statements.ts'
import { notifyEnded } from './ended.ts'
import { keyHours } from './idempotency.ts'
import { cancelledSet } from './ledger.ts'
import { staleAfterS } from './life.ts'
import type { Tally } from './tally.ts'
import { stale } from './why.ts'

/** Days that runs and audit rows are kept. */
export type Retention = { readonly runDays: number; readonly auditDays: number }

/**
 * Rows of one statement. Other work waits for its locks and its writes no longer than for an apply. Each statement finds its keys
 * first, as a list: the generic plan of a join expects that LIMIT leaves a tenth of the table, and reads all of it.
 */
const portion = 1_000
/** Portions of one round, so that a backlog of years does not keep the disk busy. */
const portionsAtOnce = 20
const everyMs = 60_000

/** A condition on a key: it is among those of a table that come first. @param from the table and a condition */
const amongOldest = (key: string, from: string, order: string) =>
  `= ANY (ARRAY(SELECT ${key} FROM ${from} ORDER BY ${order} LIMIT ${portion} FOR UPDATE SKIP LOCKED))`

const isOld = 'created_at < now() - make_interval(hours => $1::integer)'

const countRow = z.object({ count: z.int() })

/**
 * Deletes finished runs and audit rows that are too old, the oldest first, but for the runs to which a stack goes back. Several
 * workers may do it at once.
 */
export async function deleteOld(db: Db, { runDays, auditDays }: Retention): Promise<{ runs: number; audit: number }> {
  const runs = await inPortions(() =>
    execute(db, {
      text: `WITH old AS (
          SELECT id FROM runs WHERE created_at < now() - make_interval(days => $1::integer) AND state <> 'queued'
            AND NOT EXISTS (SELECT FROM stacks s WHERE runs.id IN (s.run, s.run_before))
          ORDER BY created_at LIMIT ${portion} FOR UPDATE SKIP LOCKED
        ), attempts AS (DELETE FROM run_attempts WHERE run_id = ANY (ARRAY(SELECT id FROM old)))
        DELETE FROM runs WHERE id = ANY (ARRAY(SELECT id FROM old))`,
      values: [runDays],
    }),
  )
  const audit = await inPortions(async () => {
    const [row] = await query(db, countRow, {
      text: 'SELECT delete_old_audit_rows($1::integer, $2::integer) AS count',
      values: [auditDays, portion],
    })
    return row?.count ?? 0
  })
  return { runs, audit }
}

/** Tables that grow with each apply. */
const ledgerTables = ['runs', 'run_attempts', 'audit_rows'] as const

/** The bytes of each table of the ledger with its indexes, from the catalogue of PostgreSQL: no table is read. */
export const readLedgerSize = (db: Db) =>
  query(db, z.object({ table: z.string(), bytes: z.number() }), {
    text: `SELECT relname::text AS table, pg_total_relation_size(oid)::float8 AS bytes FROM pg_class
      WHERE relnamespace = current_schema()::regnamespace AND relname = ANY($1::text[])`,
    values: [ledgerTables],
  })

/** @property next when the next one goes; null: there is none @property due how many go within a day */
const dueRow = z.object({ next: z.date().nullable(), due: z.int() })
export type Due = z.output<typeof dueRow>

/** The most audit rows that are counted: the oldest. */
export const mostDue = 100_000

/** What will be deleted within a day. */
export async function readDue(db: Db, { models }: Registry, { runDays, auditDays }: Retention) {
  const one = async (from: string, end: string, values: readonly unknown[] = []) => {
    const text = `SELECT min(${end}) AS next, (count(*) FILTER (WHERE ${end} < now() + interval '1 day'))::integer AS due FROM ${from}`
    return (await query(db, dueRow, { text, values }))[0] ?? { next: null, due: 0 }
  }
  const after = (column: string, unit: 'days' | 'hours') => `${column} + make_interval(${unit} => $1::integer)`
  const finished = `SELECT (SELECT ${after('created_at', 'days')} FROM runs WHERE state <> 'queued' ORDER BY created_at LIMIT 1) AS next,
    (SELECT count(*) FROM runs WHERE created_at < now() - make_interval(days => $1::integer - 1) AND state <> 'queued')::integer AS due`
  const [runs, audit, secrets, keys, retries, ...overlaps] = await Promise.all([
    query(db, dueRow, { text: finished, values: [runDays] }).then(([first]) => first ?? { next: null, due: 0 }),
    one(`(SELECT at FROM audit_rows ORDER BY pk LIMIT ${mostDue}) first`, after('at', 'days'), [auditDays]),
    one('runs WHERE generated IS NOT NULL', 'generated_until'),
    one('tokens WHERE sealed_key IS NOT NULL', after('created_at', 'hours'), [keyViewHours]),
    one('idempotency_keys', after('created_at', 'hours'), [keyHours]),
    ...overlapsOf(models).map(({ table, expires, holds }) =>
      one(`${table} t WHERE ${holds}`, `(settings->>${expires})::timestamptz`),
    ),
  ])
  const next = overlaps.flatMap((each) => each.next ?? []).toSorted((one, other) => Number(one) - Number(other))
  const former = { next: next[0] ?? null, due: overlaps.reduce((sum, { due }) => sum + due, 0) }
  return { runs, audit, secrets, keys, retries, former }
}

/** The fields whose former value ends, in SQL. */
const overlapsOf = (models: Registry['models']) =>
  models.flatMap((model) =>
    [...model.fields.values()]
      .filter(({ overlap }) => overlap)
      .map(({ name }) => {
        const expires = `'${expiresOf(name)}'`
        const holds = [`jsonb_exists(settings, ${expires})`, ...ownRows(model)].join(' AND ')
        return { table: quoted(model.table), expires, previous: `'${previousOf(name)}'`, holds }
      }),
  )

/** The days that consumers have to read changes. Those who come later read all configurations. */
const changeDays = 8

/** Deletes changes for consumers that are too old, and remembers that they are not known any more. */
export const deleteOldChanges = (db: Db): Promise<number> =>
  inPortions(() =>
    execute(db, {
      text: `WITH old AS (SELECT ctid, changed_in FROM (
            SELECT ctid, changed_in, at FROM consumer_changes ORDER BY changed_in LIMIT ${portion} FOR UPDATE SKIP LOCKED) first
            WHERE at < now() - make_interval(days => $1::integer)),
          since AS (UPDATE installation SET changes_since = greatest(changes_since, (SELECT max(changed_in) FROM old))
            WHERE EXISTS (SELECT FROM old))
        DELETE FROM consumer_changes WHERE ctid = ANY (ARRAY(SELECT ctid FROM old))`,
      values: [changeDays],
    }),
  )

async function inPortions(deleteOne: () => Promise<number>): Promise<number> {
  let total = 0
  for (let done = 0; done < portionsAtOnce; done += 1) {
    const count = await deleteOne()
    total += count
    if (count < portion) break
  }
  return total
}

/**
 * Erases expired secrets, idempotency keys and access tokens of jobs, the oldest first and a limited number at once. PostgreSQL
 * uses the indexes of secrets for this order even without statistics about the tables.
 */
export async function eraseExpired(db: Db): Promise<void> {
  await execute(db, {
    text: `UPDATE runs SET generated = NULL, generated_until = NULL
      WHERE id ${amongOldest('id', 'runs WHERE generated IS NOT NULL AND generated_until < now()', 'generated_until')}`,
    values: [],
  })
  await execute(db, {
    text: `UPDATE tokens SET sealed_key = NULL
      WHERE pk ${amongOldest('pk', `tokens WHERE sealed_key IS NOT NULL AND ${isOld}`, 'created_at')}`,
    values: [keyViewHours],
  })
  await execute(db, {
    text: `DELETE FROM idempotency_keys WHERE ctid ${amongOldest('ctid', `idempotency_keys WHERE ${isOld}`, 'created_at')}`,
    values: [keyHours],
  })
  await execute(db, {
    text: `DELETE FROM exchanged_tokens WHERE pk ${amongOldest('pk', `exchanged_tokens WHERE ${isOld}`, 'created_at')}`,
    values: [identityHours],
  })
}

/** Hours that the access tokens of jobs are kept: no identity token is accepted longer. */
export const identityHours = 25

/** Deletes secrets whose overlap has ended. An index has the rows that hold one; other writers of a row go first. */
export async function deleteOverlaps(db: Db, { models }: Registry): Promise<number> {
  let deleted = 0
  for (const { table, expires, previous, holds } of overlapsOf(models))
    deleted += await inPortions(() =>
      execute(db, {
        text: `UPDATE ${table} SET settings = settings - ${expires}, secrets = secrets - ${previous}
          WHERE pk ${amongOldest('pk', `${table} t WHERE ${holds} AND (settings->>${expires})::timestamptz < now()`, 'pk')}`,
        values: [],
      }),
    )
  return deleted
}

/**
 * Cancels runs that have been queued for too long: nothing waits for them, and they no longer fit the state. A restored dump
 * holds such runs. A run that a worker has locked stays as it is.
 */
export async function cancelStale(db: Db, { log, tally }: { log: Logger; tally: Tally }): Promise<void> {
  for (;;) {
    const rows = await query(db, staleRow, {
      text: `UPDATE runs SET ${cancelledSet('$2::text')}
        WHERE id ${amongOldest('id', "runs WHERE state = 'queued' AND created_at < now() - make_interval(secs => $1)", 'created_at')}
        RETURNING id, kind, mode::text AS mode`,
      values: [staleAfterS, stale.sentence],
    })
    for (const { id, kind, mode } of rows) {
      log.warn({ run: id }, 'a run was cancelled: it was queued for more than an hour')
      tally.ended({ kind, mode, outcome: 'cancelled', reason: stale.code })
      notifyEnded(db, id)
    }
    if (rows.length < portion) return
  }
}

const staleRow = z.object({ id: z.guid(), kind: z.string(), mode: z.enum(['apply', 'plan']) })

/** Deletes rows that are too old, at once and then every minute, until it is stopped. */
export const startRetention = (
  db: Db,
  registry: Registry,
  retention: Retention,
  log: Logger,
): { stop(): Promise<void> } =>
  repeat(
    async () => {
      const overlaps = await deleteOverlaps(db, registry)
      if (overlaps > 0) log.info({ overlaps }, 'secrets whose overlap had ended were deleted')
      const deleted = await deleteOld(db, retention)
      if (deleted.runs + deleted.audit > 0) log.info(deleted, 'old runs and audit rows were deleted')
      await deleteOldChanges(db)
      return everyMs
    },
    (error) => {
      log.warn({ err: error }, 'what is too old could not be deleted; trying again in a minute')
      return everyMs
    },
  )
