import pg from 'pg'
import { databaseProblem, failureCode } from '../../src/db/errors.ts'
import { locks } from '../../src/db/locks.ts'
import { keyring } from '../../src/db/seal.ts'
import { loadRegistry, permissionNames } from '../../src/models/registry.ts'
import { StartError } from '../../src/start-error.ts'
import { assemble } from './applications.ts'
import { copyTable } from './copy.ts'
import { organise, prefixOf, type Size } from './organisation.ts'
import type { Progress } from './progress.ts'
import { checkInstallation } from './ready.ts'
import { tables } from './rows.ts'
import type { Engine, Table } from './table.ts'
import { readTemplates, type Template } from './templates.ts'

export type Seeding = { readonly seed: number; readonly size: Size; readonly url: string; readonly secretKey: string }

/** Rows written, by table; null: this seed was there already, and nothing was written. */
export type Seeded = ReadonlyMap<string, number> | null

/**
 * Fills an installation in one transaction, so an interrupted seed writes nothing. Existing rows stay as they are.
 *
 * @throws {StartError} for a database that is no installation of this version, is sealed under another key, or has
 * one of the names already; for a copy of the project without examples
 * @throws {Problem} `unavailable` when the database is away
 */
export async function seed({ seed, size, url, secretKey }: Seeding, progress: Progress): Promise<Seeded> {
  const engine: Engine = { registry: await loadRegistry(), keyring: keyring(secretKey) }
  const { templates, missing } = await readTemplates(engine.registry)
  for (const kind of missing)
    progress.note(`No ${kind} providers are seeded: examples/${kind}.json, which they are made from, is missing.`)
  const limits = { connectionTimeoutMillis: 5_000, application_name: 'gatewright-seed' }
  const client = new pg.Client({ connectionString: url, ...limits })
  // The next query reports a broken connection.
  client.on('error', () => {})
  try {
    await client.connect()
    await checkInstallation(url, engine.keyring)
    await client.query(session)
    const written = await write(client, engine, { seed, size, templates }, progress)
    if (written !== null) await vacuum(client, [...written.keys()], progress)
    return written
  } catch (error) {
    throw databaseProblem(error)
  } finally {
    // Rolls back an open transaction.
    await client.end().catch(() => {})
  }
}

/**
 * A long list of pending entries makes the search indexes faster to fill. It stays in each of them as unused room, so it is
 * not longer: with 256 MB, the indexes of a million users took four times the room of their table, and not twice.
 */
const session = `SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET lock_timeout = '30s';
  SET gin_pending_list_limit = '32MB'`

type Contents = { readonly seed: number; readonly size: Size; readonly templates: readonly Template[] }

async function write(
  client: pg.Client,
  engine: Engine,
  { seed, size, templates }: Contents,
  progress: Progress,
): Promise<Seeded> {
  await client.query('BEGIN')
  await client.query('SELECT pg_advisory_xact_lock($1)', [locks.seed]).catch(explain)
  if (await isSeeded(client, seed)) return null
  const today = await readToday(client)
  const organisation = organise(seed, size, today, permissionNames(engine.registry))
  const portfolio = assemble(organisation, templates)
  const keys = {
    users: await nextKeys(client, 'users', size.users),
    providers: await nextKeys(client, 'providers', portfolio.providers.length),
  }
  const written = new Map<string, number>()
  for (const table of tables(organisation, engine, portfolio, keys)) {
    progress.begin(table.name)
    const rows = await copyTable(client, table, (done) => progress.progress(done, table.items)).catch(explain)
    written.set(table.name, rows)
    progress.end(rows)
  }
  await audit(client, organisation.prefix, written)
  await client.query('COMMIT')
  return written
}

/** Any one user is enough: parts of a seed may have been deleted since. */
async function isSeeded(client: pg.Client, seed: number): Promise<boolean> {
  const { rowCount } = await client.query('SELECT FROM users WHERE starts_with(username, $1) LIMIT 1', [
    `${prefixOf(seed)}-`,
  ])
  return rowCount !== 0
}

async function readToday(client: pg.Client): Promise<Date> {
  const { rows } = await client.query<{ today: Date }>("SELECT date_trunc('day', now(), 'UTC') AS today")
  return rows[0]?.today ?? new Date(0)
}

/** One by one: other sessions take keys of the same sequence meanwhile. */
async function nextKeys(client: pg.Client, table: 'users' | 'providers', count: number): Promise<number[]> {
  const { rows } = await client.query<[number]>({
    text: "SELECT nextval(pg_get_serial_sequence($1, 'pk'))::integer FROM generate_series(1, $2)",
    values: [table, count],
    rowMode: 'array',
  })
  return rows.map(([key]) => key)
}

function explain(error: unknown): never {
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
    fields: [],
  }))
  await client.query(`INSERT INTO audit_rows (actor_name, action, changes) VALUES ('gatewright', 'seed', $1::jsonb)`, [
    JSON.stringify(changes),
  ])
}

/** Gives the planner its statistics, and empties the lists of pending entries that searches would read. */
async function vacuum(client: pg.Client, written: readonly Table['name'][], progress: Progress): Promise<void> {
  const names = [...written, 'group_ancestors', 'row_counts']
  progress.begin('vacuum, analyze')
  for (const [index, name] of names.entries()) {
    await client.query(`VACUUM (ANALYZE) ${pg.escapeIdentifier(name)}`)
    progress.progress(index + 1, names.length)
  }
  progress.end()
}
