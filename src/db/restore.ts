import { pipeline } from 'node:stream/promises'
import { isDeepStrictEqual } from 'node:util'
import { from } from 'pg-copy-streams'
import { causeOf } from '../log.ts'
import { quoted } from './backup.ts'
import type { Backup, RowsOfTables } from './backup-file.ts'
import { databaseProblem, failureCode } from './errors.ts'
import { inSession } from './session.ts'

const tables = `SELECT string_agg(format('public.%I', relname), ', ') AS list FROM pg_class
  WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> '_prisma_migrations'`

/**
 * Loads the rows of a backup in one transaction, which commits when the file is whole and every row is there. Triggers and foreign
 * keys are off: the rows of one snapshot hold what they would write and check.
 *
 * @param url a database with the migrations of the backup, with the login of a superuser
 * @throws {StartError} when the backup is damaged
 */
export async function load(url: string, backup: Backup): Promise<RowsOfTables> {
  const config = { connectionString: url, application_name: 'gatewright-restore' }
  try {
    return await inSession(config, async (client) => {
      await client.query("BEGIN; SET LOCAL session_replication_role = 'replica'")
      // Some migrations insert rows.
      const { rows: all } = await client.query<{ list: string }>(tables)
      await client.query(`TRUNCATE ${all[0]?.list}`)
      const loaded: Record<string, number> = {}
      let part = await backup.next()
      for (; 'table' in part; part = await backup.next()) {
        const copy = client.query(from(`COPY ${quoted(part.table, part.columns)} FROM STDIN`))
        await pipeline(backup.rows(), copy)
        loaded[part.table] = copy.rowCount
      }
      await backup.end()
      if (!isDeepStrictEqual(loaded, part.rows)) throw backup.damaged('rows are missing')
      await client.query('SELECT setval(format($2, key)::regclass, value::bigint) FROM jsonb_each_text($1)', [
        JSON.stringify(part.sequences),
        'public.%I',
      ])
      await client.query('COMMIT')
      return loaded
    })
  } catch (error) {
    throw isOfData(error) ? backup.damaged(causeOf(error)) : databaseProblem(error)
  }
}

/** SQLSTATE of a value, a constraint, or a table or column that is not there: bytes that changed come here before the checksum. */
const isOfData = (error: unknown): boolean => /^(22|23|42)/.test(failureCode(error) ?? '')
