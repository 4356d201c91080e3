import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { SchemaEngine } from '@prisma/schema-engine-wasm'
import pg from 'pg'
import { isOutside, migrationScript, migrationsList, noFilter } from './migrations.ts'
import { loadSchemaEngine } from './schema-engine.ts'

/** Applies migrations, as a child process of `migrate.ts`, which holds the lock. It answers with the failure, or null. */

export type Migrations = { readonly url: string; readonly folder: string; readonly missing: string[] }
/** `isKept`: what it has done so far stays, and the next start goes on. */
export type Migrated = {
  readonly failure: { readonly migration: string; readonly reason: string; readonly isKept?: boolean } | null
}

/** A statement that waits for a table's lock makes all later ones wait behind it: it gives up, and is tried again. */
const lockMs = 1_000
const lockPauseMs = 1_000
const lockTries = 60
/** SQLSTATE. */
const lockNotAvailable = '55P03'

// When the parent is gone, so is its lock: this process must end. The parent also disconnects when all is done.
process.once('disconnect', () => process.exit())
const [asked]: Migrations[] = await once(process, 'message')
if (asked === undefined) throw new Error('nothing was asked for')
const { url, folder, missing } = asked

// The engine needs a pool. With one connection, all its statements are inside the transaction.
const pool = new pg.Pool({
  connectionString: url,
  max: 1,
  idleTimeoutMillis: 0,
  statement_timeout: 0,
  application_name: 'gatewright-migrate',
})
pool.on('error', () => {})
let scriptFailure: string | undefined
const loadEngine = () =>
  loadSchemaEngine(pool, (code) => {
    scriptFailure = code
  })
process.send?.({ failure: await applyAll() } satisfies Migrated)

async function applyAll(): Promise<Migrated['failure']> {
  let engine: SchemaEngine | undefined
  for (const migration of missing) {
    const script = await migrationScript(migration, new URL(folder))
    try {
      engine ??= await loadEngine()
      if (isOutside(script)) await applyOutside(engine, migration, script)
      else await applyInside(engine, migration)
    } catch (error) {
      return { migration, reason: error instanceof Error ? error.message : String(error), isKept: isOutside(script) }
    }
  }
  return null
}

/** The engine applies all migrations of its list, so the list grows by one each time. */
async function applyUpTo(engine: SchemaEngine, name: string): Promise<void> {
  const list = await migrationsList(new URL(folder))
  const shown = list.migrationDirectories.filter(({ path }) => path <= name)
  await engine.applyMigrations({ migrationsList: { ...list, migrationDirectories: shown }, filters: noFilter })
}

async function applyInside(engine: SchemaEngine, name: string): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      scriptFailure = undefined
      return await inTransaction(() => applyUpTo(engine, name))
    } catch (error) {
      if (tries >= lockTries || scriptFailure !== lockNotAvailable) throw error
      await delay(lockPauseMs)
    }
  }
}

async function inTransaction(work: () => Promise<void>): Promise<void> {
  await pool.query('BEGIN')
  await pool.query(`SET LOCAL lock_timeout = ${lockMs}`)
  const session = await sessionOf(pool)
  try {
    await work()
    // A pool replaces a broken connection: later statements would be outside of the transaction.
    if ((await sessionOf(pool)) !== session) throw new Error('the connection was lost')
    await pool.query('COMMIT')
  } catch (error) {
    // A lost connection has rolled back already.
    await pool.query('ROLLBACK').catch(() => {})
    throw error
  }
}

/** What a killed start has left is done again: `migrate.ts` has marked its record. */
async function applyOutside(engine: SchemaEngine, name: string, script: string): Promise<void> {
  await dropHalfBuilt(script)
  await applyUpTo(engine, name)
}

/** An index that was not built to its end is invalid, and stands in the way of the next try. */
async function dropHalfBuilt(script: string): Promise<void> {
  const { rows } = await pool.query<{ name: string }>(
    `SELECT quote_ident(c.relname) AS name FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
      WHERE NOT i.indisvalid AND c.relnamespace = current_schema()::regnamespace
        AND strpos($1, '"' || c.relname || '"') > 0`,
    [script],
  )
  for (const { name } of rows) await pool.query(`DROP INDEX CONCURRENTLY ${name}`)
}

async function sessionOf(pool: pg.Pool): Promise<number | undefined> {
  const { rows } = await pool.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  return rows[0]?.pid
}
