import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import pg from 'pg'
import { type CopyToStreamQuery, to } from 'pg-copy-streams'
import manifest from '../../package.json' with { type: 'json' }
import { StartError } from '../start-error.ts'
import { type BackupHeader, backupFormat, endOfRows, type RowsOfTables } from './backup-file.ts'
import { databaseProblem } from './errors.ts'
import { standingMigrations } from './migrate.ts'

/**
 * What processes say of themselves, the pause of a queue that is not in the backup, and sessions and tokens of jobs: an old
 * backup must not bring back one that was ended. Changes for consumers are known since the restore.
 */
const leftOut = [
  ...['_prisma_migrations', 'servers', 'workers', 'worker_formats', 'queue_heartbeats', 'queue_pauses'],
  ...['dashboard_sessions', 'exchanged_tokens', 'consumer_changes'],
]

/**
 * The columns of all tables, but for those that the database computes. Numbers of transactions count in one PostgreSQL alone: in
 * another, rows get that of the restore.
 */
const columnsOfTables = `
  SELECT c.relname::text AS table, array_agg(a.attname::text ORDER BY a.attnum) AS columns
  FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
  WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname <> ALL($1)
    AND coalesce(pg_get_expr(d.adbin, d.adrelid), '') !~ 'pg_current_(xact_id|snapshot)'
  GROUP BY c.relname ORDER BY c.relname`

const sequences = `SELECT sequencename::text AS name, last_value::text AS value FROM pg_sequences
  WHERE schemaname = 'public' AND last_value IS NOT NULL`

/**
 * Writes all rows of a database as one snapshot sees them, while the service goes on. Only a part of them is in memory at a time.
 *
 * @param url the database, with the login of a superuser
 * @throws {MigrationError} for a database of another version whose backup this version could not restore
 */
export async function backUp(
  url: string,
  secretKey: string | null,
  write: (part: Buffer) => Promise<void>,
): Promise<RowsOfTables> {
  const client = new pg.Client({ connectionString: url, application_name: 'gatewright-backup' })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    const rows: RowsOfTables = {}
    const parts = contents(client, secretKey, rows)
    await pipeline(Readable.from(parts), createGzip(), async (compressed: AsyncIterable<Buffer>) => {
      for await (const part of compressed) await write(part)
    })
    return rows
  } catch (error) {
    throw databaseProblem(error)
  } finally {
    // This waits for nothing: a COPY that is broken off does not end by itself.
    client.end().catch(() => {})
  }
}

/** @param rows gets the number of rows of each table */
async function* contents(
  client: pg.Client,
  secretKey: string | null,
  rows: RowsOfTables,
): AsyncGenerator<string | Buffer> {
  const migrations = await standingMigrations(client)
  if (migrations.length === 0) throw new StartError('The database has no tables yet: there is nothing to back up.')
  yield line({
    gatewrightBackup: backupFormat,
    version: manifest.version,
    madeAt: new Date().toISOString(),
    migrations,
    hasKey: secretKey !== null,
  } satisfies BackupHeader)
  if (secretKey !== null) yield line({ secretKey })
  const { rows: tables } = await client.query<{ table: string; columns: string[] }>(columnsOfTables, [leftOut])
  const copies = new Map<string, CopyToStreamQuery>()
  for (const { table, columns } of tables) {
    yield line({ table, columns })
    const copy = client.query(to(`COPY ${quoted(table, columns)} TO STDOUT`))
    copies.set(table, copy)
    yield* copy
    yield endOfRows
  }
  // The answer to this comes after the end of each COPY. A sequence is never behind the rows of the snapshot.
  const found = await client.query<{ name: string; value: string }>(sequences)
  for (const [table, { rowCount }] of copies) rows[table] = rowCount
  yield line({ rows, sequences: Object.fromEntries(found.rows.map(({ name, value }) => [name, value])) })
}

const line = (value: object): string => `${JSON.stringify(value)}\n`

/** A table with columns, for COPY. */
export const quoted = (table: string, columns: readonly string[]): string =>
  `public.${pg.escapeIdentifier(table)} (${columns.map((column) => pg.escapeIdentifier(column)).join(', ')})`
