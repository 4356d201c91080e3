import { once } from 'node:events'
import type { SchemaEngine } from '@prisma/schema-engine-wasm'
import pg from 'pg'
import { migrationsList, noFilter } from './migrations.ts'
import { loadSchemaEngine } from './schema-engine.ts'

/** The process in which `migrate.ts`, which holds the lock meanwhile, has migrations applied. It answers with what failed. */

export type Migrations = { readonly url: string; readonly folder: string; readonly missing: string[] }
export type Migrated = { readonly failure: { readonly migration: string; readonly reason: string } | null }

// The lock is gone with whoever holds it: nothing may go on without him. When all is done, this is the end, too.
process.once('disconnect', () => process.exit())
const [asked]: Migrations[] = await once(process, 'message')
if (asked === undefined) throw new Error('nothing was asked for')
const { url, folder, missing } = asked

// The engine works on a pool; with one connection in it, that is always inside the transaction.
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
  // The engine applies whatever it is shown, so it is shown one more each time.
  const shown = list.migrationDirectories.filter(({ path }) => path <= name)
  await pool.query('BEGIN')
  const session = await sessionOf(pool)
  try {
    await engine.applyMigrations({ migrationsList: { ...list, migrationDirectories: shown }, filters: noFilter })
    // A pool parts with a connection on which anything failed, and what came after would stand outside.
    if ((await sessionOf(pool)) !== session) throw new Error('the connection was lost')
    await pool.query('COMMIT')
  } catch (error) {
    // A connection that is gone has rolled back already.
    await pool.query('ROLLBACK').catch(() => {})
    throw error
  }
}

async function sessionOf(pool: pg.Pool): Promise<number | undefined> {
  const { rows } = await pool.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  return rows[0]?.pid
}
