import pg from 'pg'
import { migrate } from '../../src/db/migrate.ts'
import type { PostgresServer } from './postgres.ts'

/** Makes the database that test files copy: migrated once. */
export async function fillTemplate(server: PostgresServer, name: string): Promise<void> {
  await within(server.url(), (client) => client.query(`CREATE DATABASE ${pg.escapeIdentifier(name)}`))
  await migrate(server.url(name))
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
