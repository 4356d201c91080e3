import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { z } from 'zod'
import type { Db } from './client.ts'
import { databaseProblem, failureCode } from './errors.ts'
import { locks } from './locks.ts'
import type { Migrated, Migrations } from './migrate-process.ts'
import { isOutside, migrationNames, migrationScript, migrationsFolder } from './migrations.ts'
import { query } from './raw.ts'

/** The database cannot be migrated to this version. The message says why, and what to do. */
export class MigrationError extends Error {
  override readonly name = 'MigrationError'
}

/** How long to wait for another process that migrates. */
const lockMs = 120_000
const lockEveryMs = 200
const oldestPostgres = 14

/**
 * Applies the missing migrations, as `prisma migrate deploy` does and with the same table `_prisma_migrations`. But each
 * migration and its record are one transaction: when it is killed or fails, it leaves nothing behind. Those of large tables
 * run outside of a transaction, and are repeated after they were killed. Processes that start at once wait for each other.
 *
 * @returns the names of the migrations that were applied now
 * @throws {MigrationError} for a database of a newer version, one that a migration failed in, or a foreign one
 * @throws {Problem} `unavailable` when the database is away; the database's own errors when it refuses the login
 */
export async function migrate(url: string, folder: URL = migrationsFolder): Promise<string[]> {
  const client = await open(url).catch((error: unknown) => {
    throw databaseProblem(error)
  })
  try {
    await checkVersion(client)
    const known = await migrationNames(folder)
    await lock(client)
    const history = await readHistory(client)
    const unfinished = await unfinishedOutside(history, known, folder)
    const missing = missingMigrations(
      known,
      history.filter((row) => !unfinished.includes(row)),
    )
    if (missing.length > 0) {
      await checkRights(client, missing)
      await forget(client, unfinished)
      await applyAll(url, folder, missing)
    }
    return missing
  } catch (error) {
    throw databaseProblem(error)
  } finally {
    // The session's end frees the lock.
    await client.end()
  }
}

/**
 * Asks again and again. A statement that waits for the lock would have a snapshot, and `CREATE INDEX CONCURRENTLY` of the
 * process that has the lock would wait for it.
 *
 * @throws {MigrationError} when another process keeps the lock
 */
async function lock(client: pg.Client): Promise<void> {
  const deadline = performance.now() + lockMs
  for (;;) {
    const text = 'SELECT pg_try_advisory_lock($1) AS locked'
    const { rows } = await client.query<{ locked: boolean }>(text, [locks.migration])
    if (rows[0]?.locked === true) return
    if (performance.now() > deadline)
      throw new MigrationError(
        'Another process has been migrating this database for two minutes: wait for it, or stop it.',
      )
    await delay(lockEveryMs)
  }
}

/** @throws as pg does */
async function open(url: string): Promise<pg.Client> {
  const limits = { connectionTimeoutMillis: 5_000, statement_timeout: 0, idle_in_transaction_session_timeout: 0 }
  const client = new pg.Client({ connectionString: url, application_name: 'gatewright-migrate', ...limits })
  // When an idle connection breaks, the next query fails with the error.
  client.on('error', () => {})
  await client.connect()
  return client
}

/** Migrations outside of a transaction can be repeated: an unfinished one is as good as missing. */
async function unfinishedOutside(
  history: readonly Recorded[],
  known: readonly string[],
  folder: URL,
): Promise<readonly Recorded[]> {
  const unfinished = history.filter(
    ({ migration_name: name, finished_at, rolled_back_at }) =>
      finished_at === null && rolled_back_at === null && known.includes(name),
  )
  const scripts = await Promise.all(unfinished.map(({ migration_name: name }) => migrationScript(name, folder)))
  return unfinished.filter((_, index) => isOutside(scripts[index] ?? ''))
}

async function forget(client: pg.Client, unfinished: readonly Recorded[]): Promise<void> {
  if (unfinished.length === 0) return
  const text = `UPDATE _prisma_migrations SET rolled_back_at = now()
    WHERE migration_name = ANY($1) AND finished_at IS NULL AND rolled_back_at IS NULL`
  await client.query(text, [unfinished.map(({ migration_name: name }) => name)])
}

/** One migration of `_prisma_migrations`. */
export type Recorded = {
  migration_name: string
  finished_at: Date | null
  rolled_back_at: Date | null
  logs: string | null
}

/**
 * The migrations that a database lacks.
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
      `The migration ${failed.migration_name} once failed in this database and was left half done: fix it by hand, then mark it with \`npx prisma migrate resolve\`.${failed.logs ? ` It reported: ${failed.logs}` : ''}`,
    )
  }
  const done = new Set(standing.map((row) => row.migration_name))
  return known.filter((name) => !done.has(name))
}

/** Whether every migration of this version is in the database. Cheap, for readiness. */
export async function isMigrated(db: Db): Promise<boolean> {
  const known = await migrationNames()
  try {
    const [row] = await query(db, z.object({ done: z.int() }), {
      text: `SELECT count(DISTINCT migration_name)::integer AS done FROM _prisma_migrations
        WHERE migration_name = ANY($1::text[]) AND finished_at IS NOT NULL AND rolled_back_at IS NULL`,
      values: [known],
    })
    return row?.done === known.length
  } catch (error) {
    if (failureCode(error) === undefinedTable) return false
    throw error
  }
}

const undefinedTable = '42P01'

async function checkVersion(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ server_version: string }>('SHOW server_version')
  const version = rows[0]?.server_version ?? ''
  if (Number.parseInt(version, 10) >= oldestPostgres) return
  throw new MigrationError(`The database is PostgreSQL ${version}: Gatewright needs ${oldestPostgres} or newer.`)
}

async function checkRights(client: pg.Client, [first]: string[]): Promise<void> {
  const { rows } = await client.query<{ may: boolean }>("SELECT has_schema_privilege('public', 'CREATE') AS may")
  if (rows[0]?.may) return
  throw new MigrationError(
    `The database lacks the migration ${first}, and ${client.user} may not change tables: run npm run database first (docs/operations.md).`,
  )
}

async function readHistory(client: pg.Client): Promise<Recorded[]> {
  try {
    const { rows } = await client.query<Recorded>(
      'SELECT migration_name, finished_at, rolled_back_at, logs FROM _prisma_migrations',
    )
    return rows
  } catch (error) {
    if (failureCode(error) === undefinedTable) return []
    throw error
  }
}

/** In a child process, whose end frees the memory of the engine: the caller may run for months. */
async function applyAll(url: string, folder: URL, missing: string[]): Promise<void> {
  const program = new URL('migrate-process.ts', import.meta.url)
  const child = fork(program, { execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const answered = once(child, 'message').then(([message]: Migrated[]) => message?.failure ?? null)
  const ended = once(child, 'exit').then(([code, signal]) => ({
    migration: missing[0],
    reason: `its process ended (${signal ?? code})`,
  }))
  child.send({ url, folder: folder.href, missing } satisfies Migrations)
  const failure = await Promise.race([answered, ended])
  if (child.connected) child.disconnect()
  await ended
  if (failure === null) return
  const rest = 'isKept' in failure && failure.isKept ? 'the next start goes on with it' : 'nothing of it was kept'
  throw new MigrationError(`The migration ${failure.migration} failed, and ${rest}: ${failure.reason}`)
}
