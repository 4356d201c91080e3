import { appendFileSync, cpSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { beforeAll, expect, test } from 'vitest'
import { backUp } from '../../src/db/backup.ts'
import { migrate } from '../../src/db/migrate.ts'
import { migrationNames, migrationsFolder } from '../../src/db/migrations.ts'
import { withLogin } from '../../src/db/roles.ts'
import { keyring } from '../../src/db/seal.ts'
import { sealedCheck } from '../../src/db/sealed-check.ts'
import { startEmbedded } from '../../src/standalone/embedded.ts'
import { applyPath, atEnd, emptyDatabase, freePort, freshFolder, run, until, within } from '../support/kit.ts'

/**
 * An installation of version 0.1.0 (`0.1.0.sql`), as version 0.2.0 left it, is started by this version: API and worker as
 * processes.
 */

const token = 'gw_a_upgradeupgradeupgradeupgrade000000'
const queued = '01a2035e-4bc5-77e0-a80c-4b141300ef8e'
const secretKey = 'the secret key of the kept installation'

let databaseUrl: string
let origin: string

const query = async <Row extends object>(text: string): Promise<Row[]> =>
  (await within(databaseUrl, (client) => client.query<Row>(text))).rows

const serviceUrl = () => withLogin(databaseUrl, { user: 'upgrade_service', password: 'service' })

type Stored = { table: string; row: Record<string, unknown> }

async function storedRows(url = databaseUrl): Promise<Stored[]> {
  const query = async <Row extends object>(text: string): Promise<Row[]> =>
    (await within(url, (client) => client.query<Row>(text))).rows
  const tables = await query<{ name: string }>(`SELECT c.relname AS name FROM pg_class c
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname <> '_prisma_migrations' ORDER BY 1`)
  const found = await Promise.all(
    tables.map(async ({ name }) => {
      // A row of `row_counts` has no key any more: nothing used it.
      const row = name === 'row_counts' ? "to_jsonb(t) - 'pk'" : 'to_jsonb(t)'
      const rows = await query<{ row: Record<string, unknown> }>(`SELECT ${row} AS row FROM "${name}" t`)
      return rows.map(({ row }) => ({ table: name, row: name === 'audit_rows' ? withoutHistories(row) : row }))
    }),
  )
  return found.flat()
}

const ask = async (
  path: string,
  init: RequestInit = {},
): Promise<{ status: number; json: Record<string, unknown> }> => {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
  const answer = await fetch(`${origin}${path}`, { ...init, headers })
  return { status: answer.status, json: (await answer.json()) as Record<string, unknown> }
}

/** A migration gives the changes of audit rows the names of the objects. */
const withoutHistories = (row: Stored['row']): Stored['row'] => ({
  ...row,
  changes: (row.changes as object[]).map((change) =>
    Object.fromEntries(Object.entries(change).filter(([name]) => name !== 'object')),
  ),
})

let before: Stored[]
/** A backup of the installation of 0.2.0, with its key. */
const backup = join(freshFolder(), 'backup.gz')

beforeAll(async () => {
  databaseUrl = await emptyDatabase()
  const [first = '', ...others] = await migrationNames()
  const folder = freshFolder()
  const migrateBy = async (names: readonly string[]) => {
    for (const name of names)
      cpSync(fileURLToPath(new URL(name, migrationsFolder)), join(folder, name), { recursive: true })
    await migrate(databaseUrl, pathToFileURL(`${folder}/`))
  }
  await migrateBy([first])
  const dump = readFileSync(new URL('0.1.0.sql', import.meta.url), 'utf8')
  // No trigger acts: the dump holds the rows that they write.
  await query(`SET session_replication_role = replica; ${dump}`)
  // What is kept for hours or for a while was made just now.
  await query(`UPDATE runs SET created_at = now(), rung_at = now(), generated_until = now() + interval '1 hour'
      WHERE state = 'queued' OR generated IS NOT NULL;
    UPDATE tokens SET created_at = now(); UPDATE tokens SET expires = now() + interval '1 day' WHERE expires IS NOT NULL`)
  await expect(migrate(databaseUrl)).rejects.toThrow(/of a version before 0\.2\.0: start version 0\.2\.0/)
  await migrateBy(others.filter((name) => name <= '20261129100000_kinds_of_deployers'))
  await sealAsRelease()
  before = await storedRows()
  await backUp(databaseUrl, secretKey, async (part) => appendFileSync(backup, part))
  expect(before.length).toBeGreaterThan(100)

  // All of it belongs to the superuser, whom API and worker of 0.1.0 used.
  const command = run('src/cli/database.ts', {
    env: {
      ADMIN_DATABASE_URL: databaseUrl,
      MIGRATION_DATABASE_URL: withLogin(databaseUrl, { user: 'upgrade_owner', password: 'owner' }),
      DATABASE_URL: serviceUrl(),
    },
  })
  expect(await command.exited, command.output()).toEqual({ code: 0, signal: null })
  const env = { DATABASE_URL: serviceUrl(), SECRET_KEY: secretKey }
  const port = await freePort()
  origin = `http://127.0.0.1:${port}`
  const api = run('src/server.ts', { env: { ...env, PORT: String(port), LOG_LEVEL: 'info' } })
  atEnd(async () => void (await api.stop()))
  await api.line(/"msg":"serving"/, { withinMs: 30_000 })
}, 60_000)

/** The start of 0.2.0 sealed the settings of RAC providers, which were no secret in 0.1.0, and a check of the key. */
async function sealAsRelease(): Promise<void> {
  const keys = keyring(secretKey)
  const [installation] = await query<{ id: string }>('SELECT id FROM installation')
  if (installation === undefined) throw new Error('the dump has no installation')
  await query(`UPDATE installation SET sealed_check = '${sealedCheck(keys, installation.id)}'`)
  for (const { pk, uuid, settings } of await query<{ pk: number; uuid: string; settings: unknown }>(
    "SELECT pk, uuid, settings->'settings' AS settings FROM providers WHERE kind = 'rac'",
  )) {
    const sealed = keys.seal(JSON.stringify(settings), { table: 'providers', row: uuid, column: 'secrets.settings' })
    await query(`UPDATE providers SET settings = settings - 'settings',
      secrets = secrets || '${JSON.stringify({ settings: sealed })}' WHERE pk = ${pk}`)
  }
}

/** @param left tables whose rows are not kept */
async function expectKept(rows: readonly Stored[], left: readonly string[] = []): Promise<void> {
  const after = Map.groupBy(rows, ({ table }) => table)
  for (const { table, row: kept } of before.filter((each) => !left.includes(each.table))) {
    expect(after.get(table)?.map((each) => each.row)).toContainEqual(expect.objectContaining(kept))
  }
}

test('all rows are as they were', async () => {
  await expectKept(await storedRows())
  const scopes = await query(`SELECT scope_name FROM property_mappings WHERE managed = 'gatewright/oauth2/scope-email'`)
  expect(scopes).toEqual([{ scope_name: 'email' }])
})

test('tokens authenticate, and a key that was not viewed can be viewed', async () => {
  expect(await ask('/api/v3/core/users/me/')).toMatchObject({ status: 200, json: { user: { is_superuser: true } } })
  expect(await ask('/api/v3/core/tokens/kept/view_key/')).toMatchObject({
    status: 200,
    json: { key: expect.stringMatching(/^gw_a_/) },
  })
})

test('a queued run is applied, and sealed secrets are opened: what is sent again is unchanged', async () => {
  const worker = run('workers/blueprint.ts', {
    env: { DATABASE_URL: serviceUrl(), SECRET_KEY: secretKey },
  })
  atEnd(async () => void (await worker.stop()))
  const path = `/api/v3/blueprints/runs/${queued}/`
  await until('the queued run', async () => (await ask(path)).json.state === 'done', { withinMs: 30_000 })
  expect((await ask(path)).json).toMatchObject({
    applied: true,
    generated: { provider: { client_id: expect.any(String) } },
  })
  const examples = new URL('../../examples/', import.meta.url)
  for (const name of readdirSync(examples).filter((each) => each.endsWith('.json'))) {
    const body = JSON.parse(readFileSync(new URL(name, examples), 'utf8'))
    // The example of this version has another pattern.
    delete body.provider.redirect_uris
    const { json } = await ask(applyPath, { method: 'PUT', body: JSON.stringify(body) })
    expect(json, name).toEqual({
      applied: true,
      logs: [expect.stringMatching(/unchanged$/), expect.stringMatching(/unchanged$/)],
    })
  }
}, 60_000)

test('a backup of it is upgraded by its restore: all rows are as they were, and its token and its key work', async () => {
  const dataDir = join(freshFolder(), 'data')
  const restoring = run('src/cli/restore.ts', { env: { DATA_DIR: dataDir }, args: [backup] })
  expect(await restoring.exited, restoring.output()).toEqual({ code: 0, signal: null })
  const server = await startEmbedded(dataDir, (_, step) => step())
  await storedRows(server.url)
    .then((rows) => expectKept(rows, ['queue_heartbeats', 'worker_formats']))
    .finally(server.stop)

  const port = await freePort()
  origin = `http://127.0.0.1:${port}`
  const service = run('src/standalone/main.ts', { env: { DATA_DIR: dataDir, PORT: String(port) } })
  atEnd(async () => void (await service.stop()))
  await service.line(/Ctrl-C stops everything/)
  expect(await ask('/api/v3/core/users/me/')).toMatchObject({ status: 200, json: { user: { is_superuser: true } } })
  const body = readFileSync(new URL('../../examples/radius.json', import.meta.url), 'utf8')
  const { json } = await ask(applyPath, { method: 'PUT', body })
  expect(json).toEqual({
    applied: true,
    logs: [expect.stringMatching(/unchanged$/), expect.stringMatching(/unchanged$/)],
  })
}, 120_000)
