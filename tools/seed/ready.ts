import { connect, type Db } from '../../src/db/client.ts'
import { isMigrated } from '../../src/db/migrate.ts'
import type { Keyring } from '../../src/db/seal.ts'
import { StartError } from '../../src/start-error.ts'

/** @throws {StartError} for a database that is no installation of this version, or is sealed under another key */
export async function checkInstallation(url: string, keyring: Keyring): Promise<void> {
  const { db } = connect(url, { applicationName: 'gatewright-seed', max: 1 })
  try {
    await checkBootstrapped(db)
    await checkKey(db, keyring)
  } finally {
    await db.$disconnect()
  }
}

async function checkBootstrapped(db: Db): Promise<void> {
  if (!(await isMigrated(db)))
    throw new StartError('The database is no installation of this version yet: start it once first (npm start).')
  const done = await db.installation.count({ where: { bootstrappedAt: { not: null } } })
  if (done === 0)
    throw new StartError('The database has its tables, but nothing was ever started on it: start it once first.')
}

/** The service could not open rows that are sealed under another key. */
async function checkKey(db: Db, keyring: Keyring): Promise<void> {
  const pair = await db.certificateKeyPair.findFirst({
    where: { sealedKey: { not: null } },
    select: { pk: true, sealedKey: true },
  })
  if (pair === null || pair.sealedKey === null) return
  try {
    keyring.open(pair.sealedKey, { table: 'certificate_key_pairs', row: pair.pk, column: 'sealed_key' })
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new StartError(`SECRET_KEY is not the one of this installation: what is there was ${reason}.`, {
      cause: error,
    })
  }
}
