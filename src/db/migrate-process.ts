import { once } from 'node:events'
import type { SchemaEngine } from '@prisma/schema-engine-wasm'
import pg from 'pg'
import { migrationsList, noFilter } from './migrations.ts'
import { loadSchemaEngine } from './schema-engine.ts'

/** Applies migrations, as a child process of `migrate.ts`, which holds the lock. It answers with the failure, or null. */

export type Migrations = { readonly url: string; readonly folder: string; readonly missing: string[] }
export type Migrated = { readonly failure: { readonly migration: string; readonly reason: string } | null }

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
process.send?.({ failure: await applyAll() } satisfies Migrated)

async function applyAll(): Promise<Migrated['failure']> {
  let engine: SchemaEngine | undefined
  for (const migration of missing) {
    try {
      engine ??= await loadSchemaEngine(pool)
      await applyOne(engine, migration)
    } catch (error) {
      return { migration, reason: error instanceof Error ? error.message : String(error) }
    }
  }
  return null
}

async function applyOne(engine: SchemaEngine, name: string): Promise<void> {
  const list = await migrationsList(new URL(folder))
  // The engine applies all migrations of its list, so the list grows by one each time.
  const shown = list.migrationDirectories.filter(({ path }) => path <= name)
  await pool.query('BEGIN')
  const session = await sessionOf(pool)
  try {
    await engine.applyMigrations({ migrationsList: { ...list, migrationDirectories: shown }, filters: noFilter })
    // A pool replaces a broken connection: later statements would be outside of the transaction.
    if ((await sessionOf(pool)) !== session) throw new Error('the connection was lost')
    await pool.query('COMMIT')
  } catch (error) {
    // A lost connection has rolled back already.
    await pool.query('ROLLBACK').catch(() => {})
    throw error
  }
}

async function sessionOf(pool: pg.Pool): Promise<number | undefined> {
  const { rows } = await pool.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  return rows[0]?.pid
}
