import type { Db } from '../../src/db/client.ts'
import { sql, unprepared } from '../../src/db/sql.ts'

/** What a database holds, as a test compares it before and after. */

/** Every table of the product; the queue's own are in another schema. */
async function tables(db: Db): Promise<string[]> {
  const found = await db.query<{ table: string }>(sql`
    SELECT table_name::text AS table FROM information_schema.tables
    WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND table_name NOT IN ('_prisma_migrations', 'queue_heartbeats')`)
  return found.map(({ table }) => table).sort()
}

/** Tables that an apply writes whether or not an object changes. */
const ledger = ['runs', 'audit_rows']

async function each<Row>(
  db: Db,
  names: readonly string[],
  select: (quoted: string) => string,
): Promise<Record<string, Row[]>> {
  const rows = await Promise.all(names.map((name) => db.query<Row>(unprepared(select(`"${name}"`), []))))
  return Object.fromEntries(names.map((name, index) => [name, rows[index] ?? []]))
}

/** How many rows each table has, the ledger included. */
export async function counts(db: Db): Promise<Record<string, number>> {
  const rows = await each<{ count: number }>(db, await tables(db), (table) => `SELECT count(*) FROM ${table}`)
  return Object.fromEntries(Object.entries(rows).map(([table, [row]]) => [table, row?.count ?? 0]))
}

/** The version of every row of every object: a row that is written, even with equal values, gets another. */
export async function versions(db: Db): Promise<Record<string, { version: string }[]>> {
  const objects = (await tables(db)).filter((name) => !ledger.includes(name))
  return each(db, objects, (table) => `SELECT ctid::text || '/' || xmin::text AS version FROM ${table} ORDER BY 1`)
}

/** Everything in every table, the queue's too, as one text. */
export async function everything(db: Db): Promise<string> {
  const found = await db.query<{ table: string }>(sql`
    SELECT quote_ident(table_schema) || '.' || quote_ident(table_name) AS table FROM information_schema.tables
    WHERE table_schema IN ('public', 'bullmq') AND table_type = 'BASE TABLE'`)
  const texts = await Promise.all(
    found.map(({ table }) => db.query<{ row: string }>(unprepared(`SELECT t::text AS row FROM ${table} t`, []))),
  )
  return texts
    .flat()
    .map(({ row }) => row)
    .join('\n')
}
