import { migrate } from './db/migrate.ts'
import { grantToService, type Login } from './db/roles.ts'
import { migrateQueue } from './queue/migrate.ts'

type Database = {
  /** The URL with the login that owns the tables. */
  readonly ownerUrl: string
  /** The login of API and worker. */
  readonly service: Pick<Login, 'user'>
  /** Whether the queue is in this database, too. */
  readonly withQueue: boolean
}

/**
 * Migrates a database whose tables belong to another login than that of API and worker, and grants that login their use.
 *
 * @returns the names of the migrations that were applied now
 */
export async function prepareDatabase({ ownerUrl, service, withQueue }: Database): Promise<string[]> {
  const applied = await migrate(ownerUrl, undefined, 'MIGRATION_DATABASE_URL')
  if (withQueue) await migrateQueue(ownerUrl)
  await grantToService(ownerUrl, service.user)
  return applied
}
