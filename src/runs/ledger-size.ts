import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { query } from '../db/raw.ts'

/** Tables that grow with each apply. */
const tables = ['runs', 'run_attempts', 'audit_rows'] as const

/** The bytes of each table of the ledger with its indexes, from the catalogue of PostgreSQL: no table is read. */
export const readLedgerSize = (db: Db) =>
  query(db, z.object({ table: z.string(), bytes: z.number() }), {
    text: `SELECT relname::text AS table, pg_total_relation_size(oid)::float8 AS bytes FROM pg_class
      WHERE relnamespace = current_schema()::regnamespace AND relname = ANY($1::text[])`,
    values: [tables],
  })
