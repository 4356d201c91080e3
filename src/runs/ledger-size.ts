import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { query } from '../db/raw.ts'

const sizeRow = z.object({
  table: z.string(),
  rows: z.number(),
  bytes: z.number(),
  /** The time of the oldest run. */
  oldestAt: z.date().nullable(),
})

/** A table of the ledger. @property rows an estimate of PostgreSQL @property bytes the size with its indexes */
export type LedgerSize = z.output<typeof sizeRow>

/** Tables that grow with each apply. */
const tables = ['runs', 'run_attempts', 'run_objects', 'audit_rows'] as const

/** The sizes of the ledger's tables, from the catalogue of PostgreSQL: no table is read. */
export const readLedgerSize = (db: Db): Promise<LedgerSize[]> =>
  query(db, sizeRow, {
    text: `SELECT c.relname::text AS table,
      CASE WHEN c.reltuples < 0 THEN pg_stat_get_live_tuples(c.oid)::float8 ELSE c.reltuples::float8 END AS rows,
      pg_total_relation_size(c.oid)::float8 AS bytes, (SELECT min(created_at) FROM runs) AS "oldestAt"
      FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = ANY($1::text[])
      ORDER BY c.relname`,
    values: [tables],
  })
