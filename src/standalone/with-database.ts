import type { Config } from '../config.ts'
import { StartError } from '../start-error.ts'
import { installationUrl } from './embedded/running.ts'
import { hasEmbedded, startEmbedded } from './embedded.ts'
import { tryLock } from './lock.ts'

/**
 * Runs `work` on the database of an installation, whether the service runs or not. An embedded PostgreSQL that does not run is
 * started for that time.
 *
 * @throws {StartError} when there is no database, or a signal ends the work
 */
export async function withDatabase<Result>(config: Config, work: (url: string) => Promise<Result>): Promise<Result> {
  const { databaseUrl, dataDir } = config
  const isEmbedded = databaseUrl === null
  if (isEmbedded && !hasEmbedded(dataDir))
    throw new StartError(`There is no database in DATA_DIR ${dataDir}: name the right folder with DATA_DIR=<folder>.`)
  const interrupted = endedBySignal()
  const release = isEmbedded ? tryLock(dataDir) : null
  if (release === null) return Promise.race([work(installationUrl(config)), interrupted])
  try {
    const server = await startEmbedded(dataDir, (_, start) => start())
    return await Promise.race([work(server.url), interrupted]).finally(server.stop)
  } finally {
    release()
  }
}

/** @throws {StartError} for an installation on a PostgreSQL of the operator */
export function requireEmbedded({ databaseUrl }: Pick<Config, 'databaseUrl'>): void {
  if (databaseUrl === null) return
  throw new StartError(
    'DATABASE_URL is set, and this is for the database of npm start: use pg_dump and pg_restore for yours (docs/operations.md).',
  )
}

/** Rejects when a signal asks the program to end: it cleans up then. */
export function endedBySignal(): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => reject(new StartError(`Ended by ${signal}: nothing was kept.`)))
  // A signal that comes before anything waits for one.
  promise.catch(() => {})
  return promise
}
