import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { keepSecret } from '../kept-secret.ts'
import { type Report, StartError } from '../start-error.ts'
import { type Account, clusterFolder, mayEnter, placeCluster, serverAccount } from './embedded/account.ts'
import { findBinaries } from './embedded/binaries.ts'
import { hasCluster, makeCluster } from './embedded/cluster.ts'
import { stopLeftover } from './embedded/leftover.ts'
import { type RunningServer, startPostgres } from './embedded/server.ts'

/** A real PostgreSQL of this installation's own, from the programs that npm brings. */
export type Embedded = {
  /** The URL of the database `gatewright`. */
  readonly url: string
  /** Where the data is: in `DATA_DIR`, or where a link in it leads. */
  readonly folder: string
  /** Resolves when the server has ended, asked to or not. */
  readonly ended: Promise<void>
  stop(): Promise<void>
}

const database = 'gatewright'

/** Whether a `DATA_DIR` has had its database made. */
export const hasEmbedded = (dataDir: string): boolean => existsSync(join(clusterFolder(dataDir), 'PG_VERSION'))

/**
 * Starts PostgreSQL in `DATA_DIR`, at the first start making its cluster. The caller holds the lock of `DATA_DIR`.
 *
 * @throws {StartError} with one sentence for whatever stands in the way; nothing is damaged then
 */
export async function startEmbedded(dataDir: string, report: Report): Promise<Embedded> {
  const account = serverAccount(clusterFolder(dataDir))
  const binaries = findBinaries(account)
  const existed = hasCluster(clusterFolder(dataDir), binaries.major)
  const password = keepPassword(dataDir, existed)
  if (!existed) {
    const place = placeCluster(dataDir, account)
    await report(`Making a PostgreSQL ${binaries.major} database in ${place}`, () =>
      makeCluster(place, binaries, account, password),
    )
  }
  const folder = reachable(account, clusterFolder(dataDir))
  const running = await report('Starting PostgreSQL', async () => {
    await stopLeftover(folder)
    const server = await startPostgres({ folder, account, binaries, password }, join(dataDir, 'postgres.log'))
    await makeDatabase(server)
    return server
  })
  return { url: running.url(database), folder, ended: running.ended, stop: running.stop }
}

function keepPassword(dataDir: string, existed: boolean): string {
  const file = join(dataDir, 'postgres-password')
  if (!existed) return keepSecret(file, () => randomBytes(24).toString('base64url'))
  if (existsSync(file)) return readFileSync(file, 'utf8').trim()
  throw new StartError(
    `${file} is missing: without it the database beside it does not open. Put it back from a backup.`,
  )
}

function reachable(account: Account, folder: string): string {
  if (mayEnter(account, folder)) return realpathSync(folder)
  throw new StartError(
    `The user who owns ${folder} may not enter it (user number ${account?.uid}): one of the folders above is closed to that user.`,
  )
}

async function makeDatabase(server: RunningServer): Promise<void> {
  const client = new pg.Client({ connectionString: server.url('postgres') })
  await client.connect()
  try {
    const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [database])
    if (rowCount === 0) await client.query(`CREATE DATABASE ${database}`)
  } finally {
    await client.end()
  }
}
