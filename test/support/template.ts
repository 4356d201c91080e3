import pg from 'pg'
import { bootstrap } from '../../src/apply/bootstrap.ts'
import { connect } from '../../src/db/client.ts'
import { type Logins, prepareLogins, withLogin } from '../../src/db/roles.ts'
import { prepareDatabase } from '../../src/prepare.ts'
import { adminToken, loadEngine } from './engine.ts'
import type { PostgresServer } from './postgres.ts'

/** The logins of a test server, as `npm start` makes them. */
export const logins: Logins = {
  owner: { user: 'gatewright_owner', password: 'owner' },
  service: { user: 'gatewright_service', password: 'service' },
}

/** Makes the database that test files copy: migrated once, with the queue's tables. */
export async function fillTemplate(server: PostgresServer, name: string): Promise<void> {
  await within(server.url(), (client) => client.query(`CREATE DATABASE ${pg.escapeIdentifier(name)}`))
  await prepareLogins(server.url(name), logins)
  await prepareDatabase({
    ownerUrl: withLogin(server.url(name), logins.owner),
    service: logins.service,
    withQueue: true,
  })
}

/** Makes a copy of `template` that is bootstrapped, with `adminToken`: test files need not do so one by one. */
export async function fillInstalled(server: PostgresServer, name: string, template: string): Promise<void> {
  const [copy, from] = [pg.escapeIdentifier(name), pg.escapeIdentifier(template)]
  await within(server.url(), (client) => client.query(`CREATE DATABASE ${copy} TEMPLATE ${from}`))
  const { db } = connect(withLogin(server.url(name), logins.service), { applicationName: 'gatewright-test', max: 1 })
  await bootstrap(db, await loadEngine(), () => adminToken)
  await db.$disconnect()
}

/** Runs `work` on a connection of its own. */
export async function within<Result>(url: string, work: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}
