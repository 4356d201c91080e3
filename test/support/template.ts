import { readdir, readFile } from 'node:fs/promises'
import pg from 'pg'
import type { PostgresServer } from './postgres.ts'

const migrations = new URL('../../prisma/migrations/', import.meta.url)

/** Makes the database that test files copy: migrated once. */
export async function fillTemplate(server: PostgresServer, name: string): Promise<void> {
  await within(server.url(), (client) => client.query(`CREATE DATABASE ${pg.escapeIdentifier(name)}`))
  const folders = (await readdir(migrations, { withFileTypes: true })).filter((entry) => entry.isDirectory())
  await within(server.url(name), async (client) => {
    for (const folder of folders.map((entry) => entry.name).sort()) {
      await client.query(await readFile(new URL(`${folder}/migration.sql`, migrations), 'utf8'))
    }
  })
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
