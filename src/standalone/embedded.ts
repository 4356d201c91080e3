import { randomBytes } from 'node:crypto'
import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { inSession } from '../db/session.ts'
import { readOrCreateSecret } from '../secret-file.ts'
import { type Report, StartError } from '../start-error.ts'
import { clusterFolder, clusterLocation, may, serverAccount } from './embedded/account.ts'
import { findBinaries } from './embedded/binaries.ts'
import { hasCluster, makeCluster } from './embedded/cluster.ts'
import { stopOrphanedServer } from './embedded/orphaned-server.ts'
import { type RunningServer, startPostgres } from './embedded/server.ts'

/** The PostgreSQL of this installation, with the programs that npm brings. */
export type Embedded = Omit<RunningServer, 'url'> & {
  /** The URL of the database `gatewright`, with the superuser's login. */
  readonly url: string
  /** The folder of the data: in `DATA_DIR`, or where a link in it points. */
  readonly folder: string
}

const database = 'gatewright'

export const hasEmbedded = (dataDir: string): boolean => existsSync(join(clusterFolder(dataDir), 'PG_VERSION'))

/**
 * Starts PostgreSQL on the data in `DATA_DIR`, which the first start makes. The caller holds the lock of `DATA_DIR`.
 *
 * @throws {StartError} when it cannot, with the data as it was
 */
export async function startEmbedded(dataDir: string, report: Report): Promise<Embedded> {
  const account = serverAccount(clusterFolder(dataDir))
  const binaries = findBinaries(account)
  const exists = hasCluster(clusterFolder(dataDir), binaries.major)
  const password = readPassword(dataDir, exists)
  if (!exists) {
    const location = clusterLocation(dataDir, account)
    await report(`Making a PostgreSQL ${binaries.major} database in ${location}`, () =>
      makeCluster(location, binaries, account, password),
    )
  }
  const linked = clusterFolder(dataDir)
  if (!may(account, 'x', linked))
    throw new StartError(
      `The user who owns ${linked} may not enter it (user number ${account?.uid}): one of the folders above is closed to that user.`,
    )
  const folder = realpathSync(linked)
  const server = await report('Starting PostgreSQL', async () => {
    await stopOrphanedServer(folder)
    const started = await startPostgres({ folder, account, binaries, password }, join(dataDir, 'postgres.log'))
    await inSession({ connectionString: started.url('postgres') }, async (client) => {
      const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [database])
      if (rowCount === 0) await client.query(`CREATE DATABASE ${database}`)
    })
    return started
  })
  return { ...server, url: server.url(database), folder }
}

function readPassword(dataDir: string, clusterExists: boolean): string {
  const file = join(dataDir, 'postgres-password')
  if (clusterExists && !existsSync(file))
    throw new StartError(
      `${file} is missing: without it the database beside it does not open. Put it back from a backup.`,
    )
  return readOrCreateSecret(file, () => randomBytes(24).toString('base64url'))
}
