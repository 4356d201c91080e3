import type pg from 'pg'

/** Rows by the million: their indexes and foreign keys are made anew at the end, which takes a fraction of the time. */

/**
 * Tables that get many rows. Not `tokens`, whose trigger counts those of each user by an index, and not those of groups,
 * whose trigger reads the ancestors.
 */
const tables = [
  ...['users', 'memberships', 'totp_devices', 'user_consents', 'applications', 'providers', 'provider_references'],
  ...['runs', 'audit_rows'],
]

/** Each with the statement that removes it, and the one that makes it again. */
const indexes = `SELECT format('DROP INDEX %s', i.indexrelid::regclass) AS remove, pg_get_indexdef(i.indexrelid) AS make
  FROM pg_index i WHERE i.indrelid = ANY($1::regclass[]) AND NOT i.indisprimary
    AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)`

const foreignKeys = `SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) AS remove,
    format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) AS make
  FROM pg_constraint WHERE contype = 'f' AND conrelid = ANY($1::regclass[])`

/**
 * Runs `write` on tables without indexes and foreign keys. When it fails, they are not made again: the database is of no
 * use then.
 */
export async function withoutIndexes(
  client: pg.Client,
  write: () => Promise<void>,
  say: (text: string) => void,
): Promise<void> {
  const read = async (text: string) => (await client.query<{ remove: string; make: string }>(text, [tables])).rows
  // Foreign keys go first and come last: they need the unique indexes.
  const found = [...(await read(foreignKeys)), ...(await read(indexes))]
  for (const { remove } of found) await client.query(remove)
  await write()
  say(`${found.length} indexes and foreign keys`)
  await client.query("SET maintenance_work_mem = '1GB'")
  for (const { make } of found.toReversed()) await client.query(make)
}
