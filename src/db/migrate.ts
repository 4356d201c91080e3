import { hash, randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { z } from 'zod'
import { StartError } from '../start-error.ts'
import { retrying } from './backoff.ts'
import type { Db } from './client.ts'
import { failureCode, isLockTimeout } from './errors.ts'
import { locks } from './locks.ts'
import {
  isOutside,
  migrationNames,
  migrationScript,
  migrationsFolder,
  outsideStatements,
  replacedNames,
} from './migrations.ts'
import { requireSession, type SessionSetting, sessionMark, sessionProblem } from './pooler.ts'
import { query } from './raw.ts'
import { inSession } from './session.ts'

/** The database cannot be migrated to this version. The message says why, and what to do. */
export class MigrationError extends StartError {
  override readonly name = 'MigrationError'
}

/** How long to wait for another process that migrates. */
const lockMs = 120_000
const lockEveryMs = 200
/** The oldest that the PostgreSQL project still mends; `npm run oldest` tests with it. */
const oldestPostgres = 15

/**
 * Applies the missing migrations, as `prisma migrate deploy` does and with the same table `_prisma_migrations`. But each
 * migration and its record are one transaction: when it is killed or fails, it leaves nothing behind. Those of large tables
 * run outside of a transaction, and are repeated after they were killed. Processes that start at once wait for each other.
 *
 * A migration whose replaced ones are all in the database is recorded, and not run. Their rows stay: a process that knows
 * only them stays ready.
 *
 * @param setting that has the URL
 * @param only the migrations of this version that are applied, for the rows of an older one
 * @returns the names of the migrations that were applied now
 * @throws {MigrationError} for a database of a newer version, or of one before 0.2.0, one that has only some of the migrations that
 *   one replaces, one that a migration failed in, or a foreign one
 * @throws {StartError} for a database behind a pooler in transaction mode: there, no session could keep the lock
 * @throws {Problem} `unavailable` when the database is away; the database's own errors when it refuses the login
 */
export async function migrate(
  url: string,
  folder: URL = migrationsFolder,
  setting: SessionSetting = 'DIRECT_DATABASE_URL',
  only?: readonly string[],
): Promise<string[]> {
  const config = {
    connectionString: url,
    application_name: 'gatewright-migrate',
    options: sessionMark,
    connectionTimeoutMillis: 5_000,
    statement_timeout: 0,
    idle_in_transaction_session_timeout: 0,
  }
  try {
    // The session's end frees the lock.
    return await inSession(config, async (client) => {
      await requireSession(client, setting)
      await checkVersion(client)
      const known = (await knownMigrations(folder)).filter(({ name }) => only?.includes(name) ?? true)
      await lock(client)
      const history = await readHistory(client)
      const { missing, replacements } = missingMigrations(known, history)
      if (missing.length > 0) await checkRights(client, missing)
      if (history.length === 0) await createHistory(client)
      for (const name of missing) {
        const script = await migrationScript(name, folder)
        await (replacements.has(name) ? record(client, name, script) : apply(client, name, script))
      }
      return missing.filter((name) => !replacements.has(name))
    })
  } catch (error) {
    throw error instanceof MigrationError ? error : sessionProblem(error, setting)
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

/** One migration of `_prisma_migrations`. */
type Recorded = {
  migration_name: string
  finished_at: Date | null
  rolled_back_at: Date | null
  logs: string | null
}

/** @property replaces ways to the same state */
type Known = { readonly name: string; readonly replaces: readonly (readonly string[])[] }

const knownMigrations = async (folder: URL): Promise<Known[]> =>
  Promise.all(
    (await migrationNames(folder)).map(async (name) => ({ name, replaces: await replacedNames(name, folder) })),
  )

/** The last one of version 0.2.0, whose start sealed what 0.1.0 had stored in the open. No migration could: it has no key. */
const lastOfRelease = '20261129100000_kinds_of_deployers'

/**
 * The migrations that a database lacks, and those of them that replace what it has.
 *
 * @throws {MigrationError} when it has one that this version does not know, one that failed, or a part of what one replaces; and
 *   when it is of a version before 0.2.0
 */
function missingMigrations(known: readonly Known[], history: readonly Recorded[]) {
  const standing = history.filter((row) => row.rolled_back_at === null)
  const names = new Set(known.flatMap(({ name, replaces }) => [name, ...replaces.flat()]))
  const strangers = standing.map((row) => row.migration_name).filter((name) => !names.has(name))
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
  if (
    done.size > 0 &&
    !done.has(lastOfRelease) &&
    names.has(lastOfRelease) &&
    known.some(({ name }) => name > lastOfRelease)
  )
    throw new MigrationError(
      'The database is of a version before 0.2.0: start version 0.2.0 (commit 8bc233f) once, and then this one.',
    )
  const missing = known.filter(({ name }) => !done.has(name))
  const replacing = missing.filter(({ replaces }) => replaces.flat().some((name) => done.has(name)))
  for (const { name, replaces } of replacing) {
    const lacking = replaces
      .map((way) => way.filter((each) => !done.has(each)))
      .reduce((least, way) => (way.length < least.length ? way : least))
    if (lacking.length > 0)
      throw new MigrationError(
        `The database has some of the migrations that ${name} replaces, and lacks ${lacking[0]}: first start the last commit that has it, which \`git log -1 --format=%H^ -- prisma/migrations/${lacking[0]}\` names.`,
      )
  }
  return { missing: missing.map(({ name }) => name), replacements: new Set(replacing.map(({ name }) => name)) }
}

/**
 * The migrations of this version that a database has: an empty one with the same has the same tables.
 *
 * @throws {MigrationError} when this version could not migrate it, or has not recorded yet what replaces its migrations
 */
export async function standingMigrations(client: pg.Client): Promise<string[]> {
  const known = await knownMigrations(migrationsFolder)
  const { missing, replacements } = missingMigrations(known, await readHistory(client))
  if (replacements.size === 0) return known.map(({ name }) => name).filter((name) => !missing.includes(name))
  throw new MigrationError('The database is of a state between two versions: start this version once, and try again.')
}

/** Whether every migration of this version is in the database. Cheap, for readiness. */
export async function isMigrated(db: Db): Promise<boolean> {
  const known = await migrationNames()
  const [row] = await query(db, z.object({ done: z.int() }), {
    text: `SELECT count(DISTINCT migration_name)::integer AS done FROM _prisma_migrations
      WHERE migration_name = ANY($1::text[]) AND finished_at IS NOT NULL AND rolled_back_at IS NULL`,
    values: [known],
  }).catch(noneWithoutTable)
  return row?.done === known.length
}

/** @returns no rows, when the table does not exist */
function noneWithoutTable(error: unknown): never[] {
  if (failureCode(error) === '42P01') return []
  throw error
}

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

const readHistory = (client: pg.Client): Promise<Recorded[]> =>
  client
    .query<Recorded>('SELECT migration_name, finished_at, rolled_back_at, logs FROM _prisma_migrations')
    .then(({ rows }) => rows, noneWithoutTable)

/** Makes the table as Prisma does. @throws {MigrationError} for a database that another program uses */
async function createHistory(client: pg.Client): Promise<void> {
  const { rows } = await client.query(
    `SELECT 1 FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
      AND relname <> '_prisma_migrations' LIMIT 1`,
  )
  if (rows.length > 0)
    throw new MigrationError('The database has tables of another program: give Gatewright a database of its own.')
  await client.query(`CREATE TABLE IF NOT EXISTS _prisma_migrations (
    id VARCHAR(36) PRIMARY KEY NOT NULL,
    checksum VARCHAR(64) NOT NULL,
    finished_at TIMESTAMPTZ,
    migration_name VARCHAR(255) NOT NULL,
    logs TEXT,
    rolled_back_at TIMESTAMPTZ,
    started_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    applied_steps_count INTEGER NOT NULL DEFAULT 0
  )`)
}

/**
 * A statement that waits for a table's lock makes all later ones wait behind it: it gives up, and is tried again. It does so
 * before PostgreSQL looks for a deadlock, after a second, and ends another's transaction.
 */
const lockTimeoutMs = 500
const lockTries = 120

async function apply(client: pg.Client, name: string, script: string): Promise<void> {
  try {
    if (isOutside(script)) await applyOutside(client, name, script)
    else
      await retrying(() => applyInside(client, name, script), {
        max: lockTries,
        stepMs: lockTimeoutMs,
        canRetry: isLockTimeout,
        pause: () => delay(lockTimeoutMs),
      })
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    const rest = isOutside(script) ? 'the next start goes on with it' : 'nothing of it was kept'
    throw new MigrationError(`The migration ${name} failed, and ${rest}: ${reason}`, { cause: error })
  }
}

async function applyInside(client: pg.Client, name: string, script: string): Promise<void> {
  await client.query(`BEGIN; SET LOCAL lock_timeout = ${lockTimeoutMs}`)
  try {
    await client.query(script)
    await record(client, name, script)
    await client.query('COMMIT')
  } catch (error) {
    // A lost connection has rolled back already.
    await client.query('ROLLBACK').catch(() => {})
    throw error
  }
}

/** Records the migration at its end alone: what a killed start has left is done again. */
async function applyOutside(client: pg.Client, name: string, script: string): Promise<void> {
  // An index that was not built to its end is invalid, and stands in the way of the next try.
  const { rows } = await client.query<{ index: string }>(
    `SELECT quote_ident(c.relname) AS index FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
      WHERE NOT i.indisvalid AND c.relnamespace = current_schema()::regnamespace
        AND strpos($1, '"' || c.relname || '"') > 0`,
    [script],
  )
  for (const { index } of rows) await client.query(`DROP INDEX CONCURRENTLY ${index}`)
  for (const statement of outsideStatements(script)) await client.query(statement)
  await record(client, name, script)
}

const record = (client: pg.Client, name: string, script: string) =>
  client.query(
    `INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at, applied_steps_count)
      VALUES ($1, $2, $3, clock_timestamp(), 1)`,
    [randomUUID(), hash('sha256', script), name],
  )
