import pg from 'pg'
import { StartError } from '../start-error.ts'
import { locks } from './locks.ts'
import { inSessionTransaction } from './session.ts'

/**
 * The logins of a database (docs/adr/0036-two-logins-without-superuser-rights.md). The owner of the tables migrates. API
 * and worker read and write rows, cannot change tables, and can only add audit rows.
 */

export type Login = { readonly user: string; readonly password: string }

export type Logins = { readonly owner: Login; readonly service: Login }

/** The URL of the same database with another login. */
export const withLogin = (url: string, { user, password }: Login): string =>
  Object.assign(new URL(url), { username: user, password }).href

/** Runs `work` in one transaction. Others wait for it: PostgreSQL fails what changes the same login or rights at the same time. */
const oneAtATime = <Result>(url: string, work: (client: pg.Client) => Promise<Result>): Promise<Result> =>
  inSessionTransaction(url, 'gatewright-logins', async (client) => {
    await client.query('SELECT pg_advisory_xact_lock($1)', [locks.logins])
    return work(client)
  })

/** The schemas of Gatewright and of BullMQ. */
const schemas = ['public', 'bullmq']

/**
 * Makes both logins, or gives them these passwords, and gives the database with all that is in it to the owner.
 *
 * @param adminUrl the database, with a login that may make others
 * @throws {StartError} when one of them is a superuser
 */
export function prepareLogins(adminUrl: string, { owner, service }: Logins): Promise<void> {
  return oneAtATime(adminUrl, async (client) => {
    for (const login of [owner, service]) await makeLogin(client, login)
    const name = pg.escapeIdentifier(owner.user)
    // An administrator without superuser rights gives only to a role that it is a member of.
    await client.query(`GRANT ${name} TO CURRENT_USER`)
    const { rows } = await client.query<{ change: string }>(othersObjects, [schemas, owner.user])
    for (const { change } of rows) await client.query(`ALTER ${change} OWNER TO ${name}`)
  })
}

/**
 * Lets the service report which session blocks a run, whatever its login is. The service can then read the statements of all
 * sessions of the server: `npm start` does this on its own server, and an operator decides it for another.
 *
 * @param adminUrl the database, with the login of a superuser
 * @param service the name of the login of API and worker
 */
export const letSeeSessions = (adminUrl: string, service: string): Promise<void> =>
  oneAtATime(adminUrl, async (client) => {
    await client.query(`GRANT pg_read_all_stats TO ${pg.escapeIdentifier(service)}`)
  })

async function makeLogin(client: pg.Client, { user, password }: Login): Promise<void> {
  const { rows } = await client.query<{ rolsuper: boolean }>('SELECT rolsuper FROM pg_roles WHERE rolname = $1', [user])
  const [found] = rows
  if (found?.rolsuper)
    throw new StartError(`${user} is a superuser of PostgreSQL: choose another login for Gatewright.`)
  const verb = found === undefined ? 'CREATE' : 'ALTER'
  await client.query(`${verb} ROLE ${pg.escapeIdentifier(user)} LOGIN PASSWORD ${pg.escapeLiteral(password)}`)
}

/** Objects of other owners. Those of an extension stay with it, and sequences follow their table. */
const othersObjects = `
  WITH owner AS (SELECT oid FROM pg_roles WHERE rolname = $2),
  spaces AS (SELECT oid, nspname FROM pg_namespace WHERE nspname = ANY($1::text[])),
  dependent AS (SELECT classid, objid FROM pg_depend WHERE deptype IN ('e', 'a', 'i') AND objsubid = 0)
  SELECT format('DATABASE %I', datname) AS change, 1 AS turn
  FROM pg_database, owner WHERE datname = current_database() AND datdba <> owner.oid
  UNION ALL
  SELECT format('SCHEMA %I', nspname), 2
  FROM pg_namespace n, owner WHERE nspname = ANY($1::text[]) AND nspname <> 'public' AND nspowner <> owner.oid
  UNION ALL
  SELECT format('%s %I.%I', CASE relkind WHEN 'S' THEN 'SEQUENCE' WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END, nspname, relname), 3
  FROM pg_class c JOIN spaces ON spaces.oid = relnamespace, owner
  WHERE relkind IN ('r', 'p', 'v', 'S') AND relowner <> owner.oid
    AND ('pg_class'::regclass, c.oid) NOT IN (SELECT * FROM dependent)
  UNION ALL
  SELECT format('TYPE %I.%I', nspname, typname), 4
  FROM pg_type t JOIN spaces ON spaces.oid = typnamespace, owner
  WHERE typtype IN ('e', 'd') AND typowner <> owner.oid AND ('pg_type'::regclass, t.oid) NOT IN (SELECT * FROM dependent)
  UNION ALL
  SELECT format('FUNCTION %s', p.oid::regprocedure), 5
  FROM pg_proc p JOIN spaces ON spaces.oid = pronamespace, owner
  WHERE proowner <> owner.oid AND ('pg_proc'::regclass, p.oid) NOT IN (SELECT * FROM dependent)
  ORDER BY turn`

/**
 * Lets API and worker use the tables as they are after the migrations.
 *
 * @param ownerUrl the database, with the owner's login
 * @param service the name of the login of API and worker
 */
export function grantToService(ownerUrl: string, service: string): Promise<void> {
  return oneAtATime(ownerUrl, async (client) => {
    const { rows } = await client.query<{ nspname: string }>(
      'SELECT nspname FROM pg_namespace WHERE nspname = ANY($1::text[])',
      [schemas],
    )
    const name = pg.escapeIdentifier(service)
    const database = pg.escapeIdentifier(client.database ?? '')
    for (const { nspname } of rows) await client.query(grantsIn(nspname, name))
    // Every login that can connect can notify, and the API takes the end of a run from a notification (runs/subscribe.ts).
    await client.query(`
      REVOKE CONNECT ON DATABASE ${database} FROM PUBLIC;
      GRANT CONNECT ON DATABASE ${database} TO ${name};
      REVOKE CREATE ON SCHEMA public FROM PUBLIC;
      REVOKE INSERT, UPDATE, DELETE ON _prisma_migrations FROM ${name};
      REVOKE UPDATE, DELETE ON audit_rows FROM ${name};
      GRANT EXECUTE ON FUNCTION delete_old_audit_rows(integer, integer) TO ${name}`)
  })
}

const grantsIn = (schema: string, name: string) => `
  GRANT USAGE ON SCHEMA ${schema} TO ${name};
  GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO ${name};
  GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA ${schema} TO ${name}`
