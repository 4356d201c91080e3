import { assertSchemaCompatibility, LATEST_SCHEMA_VERSION, runMigrations, SchemaMigrationRequiredError } from 'bullmq'
import type pg from 'pg'
import { failureCode, throwProblem } from '../db/errors.ts'
import { locks } from '../db/locks.ts'
import { MigrationError } from '../db/migrate.ts'
import { inSession } from '../db/session.ts'

/**
 * Brings BullMQ's tables in PostgreSQL up to date.
 *
 * @throws {MigrationError} when the login may not do that; {Problem} `unavailable` when the database is away
 */
export async function migrateQueue(url: string): Promise<void> {
  const config = { connectionString: url, application_name: 'gatewright-queue-migrations' }
  await inSession(config, (client) => bringUpToDate(client).catch(explained(client))).catch(throwProblem)
}

async function bringUpToDate(client: pg.Client): Promise<void> {
  // BullMQ's own check needs a right that the login of the service lacks.
  if (!(await isCurrent(client))) await runMigrations(client)
  const { rows } = await client.query<{ source: string }>(
    "SELECT prosrc AS source FROM pg_proc WHERE oid = 'bullmq.publish_event(text, text, jsonb)'::regprocedure",
  )
  if (rows[0]?.source !== nothing) await client.query(withoutEvents)
}

const nothing = 'SELECT 0::bigint'

/**
 * BullMQ records up to five events of each job and notifies of each, for readers that Gatewright does not have: a third
 * of what a job costs. Its functions call one that does nothing instead (docs/adr/0056-bullmq-records-no-events.md).
 */
const withoutEvents = `SELECT pg_advisory_xact_lock(${locks.queue});
  CREATE OR REPLACE FUNCTION bullmq.publish_event(p_queue text, p_event text, p_data jsonb)
  RETURNS bigint LANGUAGE sql AS '${nothing}'`

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
