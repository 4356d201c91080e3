import { z } from 'zod'
import { oncePerDb } from './once.ts'
import { query } from './raw.ts'

const tableRow = z.object({
  name: z.string(),
  columns: z.array(z.string()),
  /** Whether triggers count its rows in `row_counts`, at each INSERT, DELETE and TRUNCATE. */
  isCounted: z.boolean(),
})

export type TableInfo = z.output<typeof tableRow>

/** The bits of `pg_trigger.tgtype`. */
const events = 4 | 8 | 32

/** PostgreSQL's catalogues have no Prisma model. */
const text = `SELECT c.relname::text AS name,
    ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0) AS columns,
    coalesce((SELECT bit_or(t.tgtype) & ${events} = ${events} FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
      WHERE t.tgrelid = c.oid AND p.proname = 'keep_row_count' AND t.tgenabled <> 'D'), false) AS "isCounted"
  FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'`

export const readTables = oncePerDb(async (db): Promise<ReadonlyMap<string, TableInfo>> => {
  const rows = await query(db, tableRow, { text, values: [] })
  return new Map(rows.map((row) => [row.name, row]))
})
