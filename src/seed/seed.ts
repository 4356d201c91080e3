import pg from 'pg'
import { databaseProblem, failureCode } from '../db/failures.ts'
import { keyring } from '../db/seal.ts'
import { loadRegistry, permissionNames } from '../models/index.ts'
import { StartError } from '../start-error.ts'
import { assemble } from './applications.ts'
import { copyTable } from './copy.ts'
import { organise, prefixOf, type Size } from './organisation.ts'
import { refuseUnready } from './ready.ts'
import { tables } from './rows.ts'
import type { Engine, Table } from './table.ts'
import { readTemplates } from './templates.ts'

/** Any number; it names the lock that lets one process at a time seed. */
const lockNumber = 7_201_455_303

export type Seeding = { readonly seed: number; readonly size: Size; readonly url: string; readonly secretKey: string }

/** Hears of each step: its name, how far it is, and in the end the rows that it wrote, if that is what it does. */
export type Watcher = {
  begin(step: string): void
  progress(done: number, of: number): void
  end(rows?: number): void
}

/** Rows that were written, by table; null: the seed was there already, and nothing was. */
export type Seeded = ReadonlyMap<string, number> | null

/**
 * Fills an installation, in one transaction: broken off, it leaves nothing behind. What is there stays as it is.
 *
 * @throws {StartError} for a database that is no installation of this version, is sealed under another key, or has
 * something under a name that is to be used
 * @throws {Problem} `unavailable` when the database is away
 */
export async function seed({ seed, size, url, secretKey }: Seeding, watcher: Watcher): Promise<Seeded> {
  const engine: Engine = { registry: await loadRegistry(), keyring: keyring(secretKey) }
  const limits = { connectionTimeoutMillis: 5_000, application_name: 'gatewright-seed' }
  const client = new pg.Client({ connectionString: url, ...limits })
  // A connection that breaks while it is idle fails the next query, which says it.
  client.on('error', () => {})
  try {
    await refuseUnready(url, engine.keyring)
    await client.connect()
    await client.query(session)
    const written = await write(client, engine, { seed, size }, watcher)
    if (written !== null) await settle(client, [...written.keys()], watcher)
    return written
  } catch (error) {
    throw databaseProblem(error)
  } finally {
    // What is not committed is rolled back with it.
    await client.end().catch(() => {})
  }
}

/** The search indexes keep what is new in a list until this much of it is there: sorting it in at once is quicker. */
const session = `SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET lock_timeout = '30s';
  SET gin_pending_list_limit = '256MB'`

async function write(
  client: pg.Client,
  engine: Engine,
  { seed, size }: Pick<Seeding, 'seed' | 'size'>,
  watcher: Watcher,
): Promise<Seeded> {
  await client.query('BEGIN')
  await client.query('SELECT pg_advisory_xact_lock($1)', [lockNumber]).catch(refused)
  if (await isThere(client, seed)) return null
  const today = await readToday(client)
  const organisation = organise(seed, size, today, permissionNames(engine.registry))
  const portfolio = assemble(organisation, await readTemplates(engine.registry))
  const keys = {
    users: await drawKeys(client, 'users', size.users),
    providers: await drawKeys(client, 'providers', portfolio.providers.length),
  }
  const written = new Map<string, number>()
  for (const table of tables(organisation, engine, portfolio, keys)) {
    watcher.begin(table.name)
    const rows = await copyTable(client, table, (done) => watcher.progress(done, table.pieces)).catch(refused)
    written.set(table.name, rows)
    watcher.end(rows)
  }
  await audit(client, organisation.prefix, written)
  await client.query('COMMIT')
  return written
}

/** Whoever takes a part of a seed away has not taken away all of it. */
async function isThere(client: pg.Client, seed: number): Promise<boolean> {
  const { rowCount } = await client.query('SELECT FROM users WHERE starts_with(username, $1) LIMIT 1', [
    `${prefixOf(seed)}-`,
  ])
  return rowCount !== 0
}

async function readToday(client: pg.Client): Promise<Date> {
  const { rows } = await client.query<{ today: Date }>("SELECT date_trunc('day', now(), 'UTC') AS today")
  return rows[0]?.today ?? new Date(0)
}

/** One by one, because others draw from the same sequence meanwhile. */
async function drawKeys(client: pg.Client, table: 'users' | 'providers', count: number): Promise<number[]> {
  const { rows } = await client.query<[number]>({
    text: "SELECT nextval(pg_get_serial_sequence($1, 'pk'))::integer FROM generate_series(1, $2)",
    values: [table, count],
    rowMode: 'array',
  })
  return rows.map(([key]) => key)
}

function refused(error: unknown): never {
  const [code, reason] = [failureCode(error), error instanceof Error ? error.message : String(error)]
  if (code === '23505')
    throw new StartError(
      `Something of this seed is there already, and nothing was written (${reason}): choose another --seed.`,
      { cause: error },
    )
  if (code === '23503')
    throw new StartError(
      `Something that this version ships was deleted from the installation, and nothing was written (${reason}).`,
      { cause: error },
    )
  if (code === '55P03')
    throw new StartError('Another process seeds this database, or moves its groups: wait for it, then try again.', {
      cause: error,
    })
  throw error
}

async function audit(client: pg.Client, prefix: string, written: ReadonlyMap<string, number>): Promise<void> {
  const changes = [...written].map(([table, rows]) => ({
    model: table,
    key: `${prefix}, ${rows} rows`,
    action: 'create',
  }))
  await client.query(`INSERT INTO audit_rows (actor_name, action, changes) VALUES ('gatewright', 'seed', $1::jsonb)`, [
    JSON.stringify(changes.map((change) => ({ ...change, members: [] }))),
  ])
}

/** So that the first plan is as good as those that come later, and searches have no list to go through. */
async function settle(client: pg.Client, written: readonly Table['name'][], watcher: Watcher): Promise<void> {
  const names = [...written, 'group_ancestors', 'row_counts']
  watcher.begin('vacuum, analyze')
  for (const [index, name] of names.entries()) {
    await client.query(`VACUUM (ANALYZE) ${pg.escapeIdentifier(name)}`)
    watcher.progress(index + 1, names.length)
  }
  watcher.end()
}
