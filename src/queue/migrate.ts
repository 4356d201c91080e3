import { assertSchemaCompatibility, LATEST_SCHEMA_VERSION, runMigrations, SchemaMigrationRequiredError } from 'bullmq'
import type pg from 'pg'
import { databaseProblem, failureCode } from '../db/errors.ts'
import { MigrationError } from '../db/migrate.ts'
import { inSession } from '../db/session.ts'

/**
 * Brings BullMQ's tables in PostgreSQL up to date.
 *
 * @throws {MigrationError} when the login may not do that; {Problem} `unavailable` when the database is away
 */
export async function migrateQueue(url: string): Promise<void> {
  const config = { connectionString: url, application_name: 'gatewright-queue-migrations' }
  try {
    await inSession(config, (client) => bringUpToDate(client).catch(explained(client)))
  } catch (error) {
    throw databaseProblem(error)
  }
}

async function bringUpToDate(client: pg.Client): Promise<void> {
  // BullMQ's own check takes a right that the login of the service lacks.
  if (!(await isCurrent(client))) await runMigrations(client)
}

const insufficientPrivilege = '42501'

const explained =
  ({ user }: pg.Client) =>
  (error: unknown): never => {
    if (failureCode(error) !== insufficientPrivilege) throw error
    throw new MigrationError(
      `The database lacks the tables of the queue, and ${user} may not make them: run npm run database first (docs/operations.md).`,
      { cause: error },
    )
  }

async function isCurrent(client: pg.Client): Promise<boolean> {
  try {
    return (await assertSchemaCompatibility(client)) >= LATEST_SCHEMA_VERSION
  } catch (error) {
    if (error instanceof SchemaMigrationRequiredError) return false
    throw error
  }
}
