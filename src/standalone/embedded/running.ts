import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../../config.ts'
import { reasonOf, StartError } from '../../start-error.ts'
import { clusterFolder } from './account.ts'
import { superuser } from './cluster.ts'

/**
 * The URL of the database of an installation, for a program beside it: past a pooler, or that of a running `npm start`.
 *
 * @throws {StartError} when no `npm start` runs, or this user may not read its password
 */
export function installationUrl(config: Pick<Config, 'directDatabaseUrl' | 'databaseUrl' | 'dataDir'>): string {
  const { directDatabaseUrl, databaseUrl, dataDir } = config
  const url = directDatabaseUrl ?? databaseUrl
  if (url !== null) return url
  // The fourth line of postmaster.pid is the port (https://www.postgresql.org/docs/current/storage-file-layout.html).
  const port = read(join(clusterFolder(dataDir), 'postmaster.pid'))?.split('\n')[3]
  const password = read(join(dataDir, 'postgres-password'))?.trim()
  if (port === undefined || !/^\d+$/.test(port) || password === undefined)
    throw new StartError(
      `Nothing runs on DATA_DIR ${dataDir}: run npm start in another terminal, or name a database with DATABASE_URL or --database.`,
    )
  return `postgresql://${superuser}:${password}@127.0.0.1:${port}/gatewright?sslmode=disable`
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(reasonOf(error))) return undefined
    throw new StartError(`${file} cannot be read (${reasonOf(error)}): run this as the user who started Gatewright.`, {
      cause: error,
    })
  }
}
