import { describe, expect, test } from 'vitest'
import { withLogin } from '../../src/db/roles.ts'
import { adminToken, applyPath, atEnd, emptyDatabase, example, freePort, until, within } from '../support/kit.ts'
import { type Exit, run } from '../support/processes.ts'

/** `npm run database`, and what API and worker may do in a database that it has prepared. */

const owner = { user: 'tables owner', password: 'p@ss/owner' }
const service = { user: 'the "service"', password: 'p@ss:service' }
const SECRET_KEY = 'a secret key for tests, 32 or more'

type Ended = { exit: Exit; output: string }

async function prepare(env: Record<string, string>): Promise<Ended> {
  const command = run('src/cli/database.ts', { env })
  return { exit: await command.exited, output: command.output() }
}

const admin = await emptyDatabase()
const urls: { ADMIN_DATABASE_URL: string; MIGRATION_DATABASE_URL: string; DATABASE_URL: string } = {
  ADMIN_DATABASE_URL: admin,
  MIGRATION_DATABASE_URL: withLogin(admin, owner),
  DATABASE_URL: withLogin(admin, service),
}

const done = { code: 0, signal: null }
const asService = (statement: string) => within(urls.DATABASE_URL, (client) => client.query(statement))

test('a version is not started before its migrations: the sentence names the command', async () => {
  const { ADMIN_DATABASE_URL } = urls
  await within(admin, (client) => client.query(`CREATE ROLE "stranger" LOGIN`))
  const DATABASE_URL = withLogin(ADMIN_DATABASE_URL, { user: 'stranger', password: 'any' })
  const api = run('src/server.ts', { env: { DATABASE_URL, SECRET_KEY, PORT: String(await freePort()) } })
  expect(await api.exited).toEqual({ code: 1, signal: null })
  expect(api.output()).toMatch(
    /^The database lacks the migration \d{14}_first, and stranger may not change tables: run npm run database first/,
  )
})

test('it makes both logins and the tables, and does nothing when run again', async () => {
  const first = await prepare(urls)
  expect(first).toMatchObject({ exit: done, output: expect.stringMatching(/logins .* ready\.\n\d+ migrations were/) })
  const { ADMIN_DATABASE_URL: _, ...without } = urls
  expect(await prepare(without)).toEqual({ exit: done, output: '0 migrations were applied. The database is ready.\n' })
  expect(await prepare(urls)).toMatchObject({ exit: done, output: expect.stringContaining('\n0 migrations were') })
})

test('neither login is a superuser, and the owner owns everything', async () => {
  const { rows } = await within(admin, (client) =>
    client.query(
      `SELECT rolname FROM pg_roles WHERE rolname = ANY($1)
        AND (rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls)`,
      [[owner.user, service.user]],
    ),
  )
  expect(rows).toEqual([])
  const { rows: owners } = await within(admin, (client) =>
    client.query<{ owner: string }>(
      `SELECT DISTINCT relowner::regrole::text AS owner FROM pg_class
        WHERE relnamespace IN ('public'::regnamespace, 'bullmq'::regnamespace)`,
    ),
  )
  expect(owners).toEqual([{ owner: `"${owner.user}"` }])
})

test('another login cannot connect: who can connect can notify of the end of a run', async () => {
  await within(admin, (client) => client.query('CREATE ROLE "outsider" LOGIN'))
  const outsider = withLogin(admin, { user: 'outsider', password: 'any' })
  await expect(within(outsider, (client) => client.query('SELECT 1'))).rejects.toMatchObject({ code: '42501' })
})

test.each([
  'CREATE TABLE public.mine (a int)',
  'CREATE TABLE bullmq.mine (a int)',
  'ALTER TABLE users ADD COLUMN mine int',
  'DROP TABLE runs',
  'TRUNCATE audit_rows',
  'ALTER TABLE audit_rows DISABLE TRIGGER ALL',
  'UPDATE audit_rows SET actor_name = $$other$$',
  'DELETE FROM audit_rows',
  'DELETE FROM _prisma_migrations',
  'SELECT rolpassword FROM pg_authid',
  `SET ROLE "${owner.user}"`,
])('the login of the service may not %s', async (statement) => {
  await expect(asService(statement)).rejects.toMatchObject({ code: '42501' })
})

test('the login of the service adds audit rows, and deletes none that are younger than 30 days', async () => {
  const at = (days: number) => `INSERT INTO audit_rows (at, actor_name, action, changes)
    VALUES (now() - make_interval(days => ${days}), 'test', 'apply', '[]')`
  for (const days of [40, 20]) await asService(at(days))
  await expect(asService('SELECT delete_old_audit_rows(29, 10)')).rejects.toMatchObject({ code: '22023' })
  expect((await asService('SELECT delete_old_audit_rows(30, 10) AS deleted')).rows).toEqual([{ deleted: 1 }])
  expect((await asService('SELECT count(*)::integer AS left FROM audit_rows')).rows).toEqual([{ left: 1 }])
})

test('API and worker run with that login', async () => {
  const { DATABASE_URL } = urls
  const port = await freePort()
  const env = { DATABASE_URL, SECRET_KEY, PORT: String(port), BOOTSTRAP_TOKEN: adminToken, LOG_LEVEL: 'info' }
  const api = run('src/server.ts', { env })
  atEnd(async () => void (await api.stop()))
  await api.line(/"msg":"serving"/, { withinMs: 20_000 })
  const worker = run('workers/blueprint.ts', { env })
  atEnd(async () => void (await worker.stop()))
  await worker.line(/"msg":"worker ready"/, { withinMs: 20_000 })
  const origin = `http://127.0.0.1:${port}`
  const answer = await fetch(`${origin}${applyPath}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
    body: JSON.stringify(await example('oauth2')),
  })
  expect(await answer.json()).toMatchObject({ applied: true })
  await until('all parts to be healthy', async () => (await fetch(`${origin}/-/health/applies/`)).status === 200)
})

describe('refuses', () => {
  const failed = { code: 1, signal: null }

  test('what it lacks, all at once', async () => {
    expect(await prepare({ ADMIN_DATABASE_URL: 'mysql://x' })).toEqual({
      exit: failed,
      output: `The settings are not valid:
  DATABASE_URL is required.
  MIGRATION_DATABASE_URL is required.
  ADMIN_DATABASE_URL is not a URL that starts with postgresql:// or postgres://.
`,
    })
  })

  test('one login for both', async () => {
    const { MIGRATION_DATABASE_URL } = urls
    const { exit, output } = await prepare({ ...urls, DATABASE_URL: MIGRATION_DATABASE_URL })
    expect([exit, output]).toEqual([failed, expect.stringContaining('have the same login')])
  })

  test('a superuser as the login of the service', async () => {
    const superuser = { user: new URL(admin).username, password: 'any' }
    const { exit, output } = await prepare({ ...urls, DATABASE_URL: withLogin(admin, superuser) })
    expect([exit, output]).toEqual([failed, expect.stringContaining('is a superuser of PostgreSQL')])
  })

  test('a URL without a password', async () => {
    const { exit, output } = await prepare({ ...urls, DATABASE_URL: admin })
    expect([exit, output]).toEqual([failed, expect.stringContaining('DATABASE_URL lacks a user or a password')])
  })
})
