import { connect, type Queryable } from '../db/client.ts'
import { isMigrated } from '../db/migrate.ts'
import type { Keyring } from '../db/seal.ts'
import { sql } from '../db/sql.ts'
import { StartError } from '../start-error.ts'

/** @throws {StartError} for a database that is no installation of this version, or is sealed under another key */
export async function refuseUnready(url: string, keyring: Keyring): Promise<void> {
  const db = connect(url, { applicationName: 'gatewright-seed', max: 1 })
  try {
    await refuseStranger(db)
    await refuseOtherKey(db, keyring)
  } finally {
    await db.close()
  }
}

async function refuseStranger(q: Queryable): Promise<void> {
  if (!(await isMigrated(q)))
    throw new StartError('The database is no installation of this version yet: start it once first (npm start).')
  const done = await q.query(sql`SELECT FROM installation WHERE bootstrapped_at IS NOT NULL`)
  if (done.length === 0)
    throw new StartError('The database has its tables, but nothing was ever started on it: start it once first.')
}

/** What is sealed under another key would be there, and never open. */
async function refuseOtherKey(q: Queryable, keyring: Keyring): Promise<void> {
  const [pair] = await q.query<{ pk: string; sealed_key: string }>(sql`
    SELECT pk, sealed_key FROM certificate_key_pairs WHERE sealed_key IS NOT NULL LIMIT 1`)
  if (pair === undefined) return
  try {
    keyring.open(pair.sealed_key, { table: 'certificate_key_pairs', row: pair.pk, column: 'sealed_key' })
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new StartError(`SECRET_KEY is not the one of this installation: what is there was ${reason}.`, {
      cause: error,
    })
  }
}
