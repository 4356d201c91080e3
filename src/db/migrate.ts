import pg from 'pg'
import type { Queryable } from './client.ts'
import { databaseProblem, failureCode } from './failures.ts'
import { loadSchemaEngine, migrationNames, migrationsFolder, migrationsList, noFilter } from './schema-engine.ts'
import { sql } from './sql.ts'

/** The database cannot be brought to this version's tables; the message says why, and what to do. */
export class MigrationError extends Error {
  override readonly name = 'MigrationError'
}

/** Any number; it names the lock under which one process at a time migrates. */
const lockNumber = 7_201_455_302
/** How long others may migrate before this process gives up. */
const lockMs = 120_000
const oldestPostgres = 14

/**
 * Brings a database up to date, as `prisma migrate deploy` does and in the same books (`_prisma_migrations`), save
 * that each migration is one transaction together with its record: killed or failed, it has left nothing behind.
 * Starts that run at once wait for each other.
 *
 * @returns the names of the migrations that were applied now
 * @throws {MigrationError} for a database of a newer version, one that a migration failed in, or a foreign one
 * @throws {Problem} `unavailable` when the database is away; the database's own errors when it refuses the login
 */
export async function migrate(url: string, folder: URL = migrationsFolder): Promise<string[]> {
  // One connection: the lock, the transactions and the engine must all be on the same.
  const pool = new pg.Pool({
    connectionString: url,
    max: 1,
    idleTimeoutMillis: 0,
    connectionTimeoutMillis: 5_000,
    application_name: 'gatewright-migrate',
  })
  pool.on('error', () => {})
  try {
    await checkVersion(pool)
    const known = await migrationNames(folder)
    await pool.query(`SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET lock_timeout = ${lockMs}`)
    await pool.query('SELECT pg_advisory_lock($1)', [lockNumber]).catch((error: unknown) => {
      if (failureCode(error) !== '55P03') throw error
      throw new MigrationError('Another process has been migrating this database for two minutes: wait for it, or stop it.')
    })
    const missing = missingMigrations(known, await readHistory(pool))
    if (missing.length > 0) await applyAll(pool, folder, missing)
    return missing
  } catch (error) {
    throw databaseProblem(error)
  } finally {
    // The session's end frees the lock.
    await pool.end()
  }
}

/** One migration of `_prisma_migrations`. */
export type Recorded = { migration_name: string; finished_at: Date | null; rolled_back_at: Date | null; logs: string | null }

/**
 * Which of the migrations that this version knows a database lacks.
 *
 * @throws {MigrationError} when it has one that this version does not know, or one that failed
 */
export function missingMigrations(known: readonly string[], history: readonly Recorded[]): string[] {
  const standing = history.filter((row) => row.rolled_back_at === null)
  const strangers = standing.map((row) => row.migration_name).filter((name) => !known.includes(name))
  if (strangers.length > 0) {
    throw new MigrationError(
      `The database is of a newer version of Gatewright (this one does not know its migration ${strangers.join(', ')}): start that version, or restore a backup from before it.`,
    )
  }
  const failed = standing.find((row) => row.finished_at === null)
  if (failed !== undefined) {
    throw new MigrationError(
      `The migration ${failed.migration_name} once failed in this database and was left half done: mend it by hand, then say so with \`npx prisma migrate resolve\`.${failed.logs ? ` It had said: ${failed.logs}` : ''}`,
    )
  }
  const done = new Set(standing.map((row) => row.migration_name))
  return known.filter((name) => !done.has(name))
}

/** A cheap look, for readiness: whether every migration of this version is in the database. */
export async function isMigrated(db: Queryable): Promise<boolean> {
  const known = await migrationNames()
  try {
    const [row] = await db.query<{ done: number }>(sql`
      SELECT count(DISTINCT migration_name) AS done FROM _prisma_migrations
      WHERE migration_name = ANY(${known}) AND finished_at IS NOT NULL AND rolled_back_at IS NULL`)
    return row?.done === known.length
  } catch (error) {
    if (failureCode(error) === undefinedTable) return false
    throw error
  }
}

const undefinedTable = '42P01'

async function checkVersion(pool: pg.Pool): Promise<void> {
  const { rows } = await pool.query<{ server_version: string }>('SHOW server_version')
  const version = rows[0]?.server_version ?? ''
  if (Number.parseInt(version, 10) >= oldestPostgres) return
  throw new MigrationError(`The database is PostgreSQL ${version}: Gatewright needs ${oldestPostgres} or newer.`)
}

async function readHistory(pool: pg.Pool): Promise<Recorded[]> {
  try {
    const { rows } = await pool.query<Recorded>('SELECT migration_name, finished_at, rolled_back_at, logs FROM _prisma_migrations')
    return rows
  } catch (error) {
    if (failureCode(error) === undefinedTable) return []
    throw error
  }
}

async function applyAll(pool: pg.Pool, folder: URL, missing: string[]): Promise<void> {
  const list = await migrationsList(folder)
  const engine = await loadSchemaEngine(pool)
  try {
    for (const name of missing) {
      // The engine applies whatever it is shown, so it is shown one more each time.
      const shown = list.migrationDirectories.filter(({ path }) => path <= name)
      await applyOne(pool, name, () =>
        engine.applyMigrations({ migrationsList: { ...list, migrationDirectories: shown }, filters: noFilter }),
      )
    }
  } finally {
    engine.free()
  }
}

async function applyOne(pool: pg.Pool, name: string, apply: () => Promise<unknown>): Promise<void> {
  await pool.query('BEGIN')
  try {
    await apply()
    await pool.query('COMMIT')
  } catch (error) {
    // A connection that is gone has rolled back already.
    await pool.query('ROLLBACK').catch(() => {})
    const reason = error instanceof Error ? error.message : String(error)
    throw new MigrationError(`The migration ${name} failed, and nothing of it was kept: ${reason}`, { cause: error })
  }
}
