import type { Db } from '../../src/db/client.ts'
import { raw, rows, sql } from './sql.ts'
import { within } from './template.ts'

/** The contents of a database, to compare before and after. */

/** Every table of the product; the queue's own are in another schema. */
async function tables(db: Db): Promise<string[]> {
  const found = await rows<{ table: string }>(
    db,
    sql`
    SELECT table_name::text AS table FROM information_schema.tables
    WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND table_name NOT IN ('_prisma_migrations', 'queue_heartbeats', 'worker_formats', 'metric_sums', 'refusals', 'application_states')`,
  )
  return found.map(({ table }) => table).sort()
}

/** Tables that an apply writes whether or not an object changes. */
const ledger = ['runs', 'audit_rows']

async function each<Row>(
  db: Db,
  names: readonly string[],
  select: (quoted: string) => string,
): Promise<Record<string, Row[]>> {
  const found = await Promise.all(names.map((name) => rows<Row>(db, sql`${raw(select(`"${name}"`))}`)))
  return Object.fromEntries(names.map((name, index) => [name, found[index] ?? []]))
}

/** How many rows each table has, the ledger included. */
export async function counts(db: Db): Promise<Record<string, number>> {
  const found = await each<{ count: number }>(db, await tables(db), (table) => `SELECT count(*) FROM ${table}`)
  return Object.fromEntries(Object.entries(found).map(([table, [row]]) => [table, row?.count ?? 0]))
}

/** The version of every row of every object: a row that is written, even with equal values, gets another. */
export async function versions(db: Db): Promise<Record<string, { version: string }[]>> {
  const objects = (await tables(db)).filter((name) => !ledger.includes(name))
  return each(db, objects, (table) => `SELECT ctid::text || '/' || xmin::text AS version FROM ${table} ORDER BY 1`)
}

/** Written at any time, by maintenance and probes, and the runs of applies. */
const restless = ['runs', 'row_counts']

/** Every row of every table but runs, audit rows included, and how far each sequence has come. */
export async function objects(db: Db): Promise<unknown> {
  const names = (await tables(db)).filter((name) => !restless.includes(name))
  const sequences = await rows(
    db,
    sql`
    SELECT sequencename::text AS name, last_value::text AS value FROM pg_sequences
    WHERE schemaname = 'public' AND sequencename <> 'refusals_pk_seq' ORDER BY 1`,
  )
  return [
    sequences,
    await each(db, names, (table) => `SELECT xmin::text AS version, t::text AS row FROM ${table} t ORDER BY 2`),
  ]
}

/** Everything in every table, the queue's too, as one text. */
export async function everything(db: Db): Promise<string> {
  const found = await rows<{ table: string }>(
    db,
    sql`
    SELECT quote_ident(table_schema) || '.' || quote_ident(table_name) AS table FROM information_schema.tables
    WHERE table_schema IN ('public', 'bullmq') AND table_type = 'BASE TABLE'`,
  )
  const texts = await Promise.all(
    found.map(({ table }) => rows<{ row: string }>(db, sql`SELECT t::text AS row FROM ${raw(table)} t`)),
  )
  return texts
    .flat()
    .map(({ row }) => row)
    .join('\n')
}

/** Every row of every table as JSON, but for the numbers of transactions, which count in one PostgreSQL alone. */
export const tablesOf = (url: string): Promise<Record<string, string[]>> =>
  within(url, async (client) => {
    const { rows: names } = await client.query<{ name: string }>(
      `SELECT relname::text AS name FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> '_prisma_migrations' ORDER BY 1`,
    )
    const all: Record<string, string[]> = {}
    for (const { name } of names) {
      const found = await client.query<{ row: string }>(
        `SELECT (to_jsonb(t) - '{changed_in,recorded_in,changes_since}'::text[])::text AS row FROM "${name}" t ORDER BY 1`,
      )
      all[name] = found.rows.map(({ row }) => row)
    }
    return all
  })
