import { assertSchemaCompatibility, LATEST_SCHEMA_VERSION, runMigrations, SchemaMigrationRequiredError } from 'bullmq'
import pg from 'pg'
import { databaseProblem, failureCode } from '../db/errors.ts'
import { MigrationError } from '../db/migrate.ts'

/**
 * Brings BullMQ's tables in PostgreSQL up to date.
 *
 * @throws {MigrationError} when the login may not do that; {Problem} `unavailable` when the database is away
 */
export async function migrateQueue(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, application_name: 'gatewright-queue-migrations' })
  client.on('error', () => {})
  try {
    await client.connect()
    // BullMQ's own check takes a right that the login of the service lacks.
    if (!(await isCurrent(client))) await runMigrations(client)
  } catch (error) {
    if (failureCode(error) !== insufficientPrivilege) throw databaseProblem(error)
    throw new MigrationError(
      `The database lacks the tables of the queue, and ${client.user} may not make them: run npm run database first (docs/operations.md).`,
      { cause: error },
    )
  } finally {
    await client.end()
  }
}

const insufficientPrivilege = '42501'

async function isCurrent(client: pg.Client): Promise<boolean> {
  try {
    return (await assertSchemaCompatibility(client)) >= LATEST_SCHEMA_VERSION
  } catch (error) {
    if (error instanceof SchemaMigrationRequiredError) return false
    throw error
  }
}
