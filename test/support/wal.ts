import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { within } from './template.ts'

/** What a piece of work wrote to PostgreSQL's log, of this database alone, by the extension pg_walinspect. */
export type Written = {
  /** Rows that were inserted, changed or deleted, of the tables of the product. */
  readonly rows: number
  /** Entries of indexes of these tables. */
  readonly entries: number
  /** Images of pages do not count: they depend on checkpoints. */
  readonly bytes: number
  /** `runs: 1 INSERT, 1 UPDATE, 18 entries, 1234 bytes` */
  readonly byTable: readonly string[]
}

/** What processes write about themselves, at intervals. */
const regular = ['workers', 'servers', 'queue_heartbeats', 'worker_formats', 'metric_sums']

const tableRow = z.object({
  table: z.string(),
  rows: z.int(),
  entries: z.int(),
  bytes: z.int(),
  kinds: z.string().nullable(),
})

/** @param url of a superuser */
export async function watchLog(url: string): Promise<{ during(work: () => Promise<unknown>): Promise<Written> }> {
  const ask = async (statement: string, values: unknown[] = []) =>
    (await within(url, (client) => client.query(statement, values))).rows
  await ask('CREATE EXTENSION IF NOT EXISTS pg_walinspect')
  // It is flushed: a log cannot be read beyond what is on the disk.
  const end = async () => (await ask("SELECT pg_logical_emit_message(false, 'test', 'here', true)::text AS at"))[0].at
  return {
    async during(work) {
      const slot = `reads_${randomUUID().replaceAll('-', '')}`
      // A checkpoint removes the log behind it, but not what a slot keeps.
      await ask('SELECT pg_create_physical_replication_slot($1, true)', [slot])
      const from = await end()
      const read = async () => {
        await work()
        return z.array(tableRow).parse(await ask(text, [from, await end(), regular]))
      }
      const tables = await read().finally(() => ask('SELECT pg_drop_replication_slot($1)', [slot]))
      const sum = (of: 'rows' | 'entries' | 'bytes') => tables.reduce((total, each) => total + each[of], 0)
      return {
        ...{ rows: sum('rows'), entries: sum('entries'), bytes: sum('bytes') },
        byTable: tables.map(
          ({ table, kinds, entries, bytes }) => `${table}: ${kinds}; ${entries} entries; ${bytes} bytes`,
        ),
      }
    },
  }
}

/** A record belongs to the relation of its first block. */
const text = `WITH records AS (
    SELECT resource_manager AS manager, split_part(record_type, '+', 1) AS type, record_length - fpi_length AS bytes,
      (regexp_match(block_ref, 'rel \\d+/(\\d+)/(\\d+)'))[1]::oid AS database,
      (regexp_match(block_ref, 'rel \\d+/(\\d+)/(\\d+)'))[2]::oid AS file
    FROM pg_get_wal_records_info($1::text::pg_lsn, $2::text::pg_lsn)
  ), own AS (
    SELECT r.*, coalesce(t.relname, c.relname)::text AS name, c.relkind = 'i' AS "isIndex"
    FROM records r JOIN pg_class c ON pg_relation_filenode(c.oid) = r.file
      LEFT JOIN pg_index i ON i.indexrelid = c.oid LEFT JOIN pg_class t ON t.oid = i.indrelid
    WHERE r.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND c.relnamespace = 'public'::regnamespace
  ), kinds AS (
    SELECT name, CASE WHEN "isIndex" THEN 'index' ELSE manager END AS manager, sum(bytes) AS bytes, type, count(*) AS times,
      bool_or("isIndex") AS "isIndex" FROM own GROUP BY 1, 2, 4
  )
  SELECT name AS table, sum(bytes)::integer AS bytes,
    coalesce(sum(times) FILTER (WHERE manager LIKE 'Heap%' AND type ~ '^(INSERT|UPDATE|HOT_UPDATE|DELETE|MULTI_INSERT)$'), 0)::integer AS rows,
    coalesce(sum(times) FILTER (WHERE "isIndex" AND type ~ '^(INSERT|INSERT_LEAF|INSERT_POST|SPLIT_[LR]|UPDATE_META_PAGE)$'), 0)::integer AS entries,
    string_agg(times || ' ' || type, ', ' ORDER BY type) FILTER (WHERE manager LIKE 'Heap%') AS kinds
  FROM kinds WHERE name <> ALL ($3::text[]) GROUP BY name ORDER BY name`
