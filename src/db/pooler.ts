import type { ServiceConfig } from '../config.ts'
import { uuid7 } from '../ids.ts'
import type { Logger } from '../log.ts'
import { StartError, sentence } from '../start-error.ts'
import { databaseProblem, failureCode, throwProblem } from './errors.ts'
import { inSession } from './session.ts'

/** A pooler in transaction mode, such as PgBouncer, between this process and PostgreSQL. */
export type Pooler = {
  /** Whether it keeps statements that were prepared under a name. */
  readonly keepsNames: boolean
}

type DatabaseUrls = Pick<ServiceConfig, 'databaseUrl' | 'directDatabaseUrl'>

/** The URL for work that needs a session: LISTEN, migrations, the queue. */
export const sessionUrl = ({ databaseUrl, directDatabaseUrl }: DatabaseUrls): string => directDatabaseUrl ?? databaseUrl

/** A start-up setting. A pooler in transaction mode refuses it, or drops it. */
export const sessionMark = '-c gatewright.session=kept'

/** SQLSTATE of PgBouncer when it refuses a start-up setting. */
const protocolViolation = '08P01'

/** Advice to the operator, by the setting from which a program takes its sessions. */
const advice = {
  DIRECT_DATABASE_URL: 'set DIRECT_DATABASE_URL to the address of PostgreSQL itself, beside DATABASE_URL',
  MIGRATION_DATABASE_URL: 'set MIGRATION_DATABASE_URL to the address of PostgreSQL itself',
} as const

export type SessionSetting = keyof typeof advice

const page = '(docs/operations.md#pgbouncer).'

/** The reason why a connection with `sessionMark` could not be opened. */
export const sessionProblem = (error: unknown, setting: SessionSetting): unknown =>
  failureCode(error) === protocolViolation && error instanceof Error
    ? new StartError(`A pooler before PostgreSQL refuses sessions (${error.message}): ${advice[setting]} ${page}`, {
        cause: error,
      })
    : databaseProblem(error)

/** @throws {StartError} when the session of a connection that was opened with `sessionMark` does not last */
export async function requireSession(
  client: { query(text: string): Promise<{ rows: { kept?: unknown }[] }> },
  setting: SessionSetting,
): Promise<void> {
  const { rows } = await client.query(`SELECT current_setting('gatewright.session', true) AS kept`)
  if (rows[0]?.kept !== 'kept')
    throw new StartError(`A pooler before PostgreSQL drops the settings of sessions: ${advice[setting]} ${page}`)
}

/** Identifies a database of a server, as long as the server runs. */
const place = `(SELECT format('%s %s', extract(epoch FROM pg_postmaster_start_time()), oid)
  FROM pg_database WHERE datname = current_database()) AS place`

const slow =
  'The pooler at DATABASE_URL keeps no prepared statements, so PostgreSQL plans each statement anew: PgBouncer 1.21 or newer with max_prepared_statements keeps them (docs/operations.md#pgbouncer).'

/**
 * Finds out whether a pooler is between this process and PostgreSQL, for `connect`.
 *
 * @returns null: sessions last
 * @throws {StartError} when there is no session for the work that needs one, and when both URLs lead to different databases;
 * {Problem} `unavailable` when the database is away; the database's own errors when it refuses the login
 */
export async function findPooler(urls: DatabaseUrls, log: Pick<Logger, 'warn'>): Promise<Pooler | null> {
  const direct = await placeOfSessions(sessionUrl(urls)).catch((error: unknown) => {
    const problem = sessionProblem(error, 'DIRECT_DATABASE_URL')
    if (urls.directDatabaseUrl === null || problem instanceof StartError) throw problem
    throw new StartError(sentence(problem, 'The database of DIRECT_DATABASE_URL'), { cause: error })
  })
  if (urls.directDatabaseUrl === null) return null
  const pooled = await lookThrough(urls.databaseUrl).catch(throwProblem)
  if (pooled.place !== direct)
    throw new StartError('DATABASE_URL and DIRECT_DATABASE_URL lead to different databases: both must be the same one.')
  if (!pooled.keepsNames) log.warn(slow)
  return { keepsNames: pooled.keepsNames }
}

const application = { application_name: 'gatewright-start', connectionTimeoutMillis: 5_000 }

const placeOfSessions = (url: string): Promise<string> =>
  inSession({ ...application, connectionString: url, options: sessionMark }, async (client) => {
    await requireSession(client, 'DIRECT_DATABASE_URL')
    const { rows } = await client.query<{ place: string }>(`SELECT ${place}`)
    return rows[0]?.place ?? ''
  })

type SessionRow = { readonly place: string; readonly isVisible: boolean; readonly pid: number }

/**
 * Asks through the pooler. One that keeps statements gives them names of its own: PostgreSQL knows no statement of the client's
 * name. One that passes the name on cannot keep it, since the next transaction has another session.
 */
const lookThrough = (url: string) =>
  inSession({ ...application, connectionString: url }, async (client) => {
    const name = `gatewright_${uuid7()}`
    await client.query('BEGIN')
    await client.query({ name, text: 'SELECT 1' })
    const { rows } = await client.query<SessionRow>(`SELECT ${place}, pg_backend_pid() AS pid,
      EXISTS (SELECT FROM pg_prepared_statements WHERE name = '${name}') AS "isVisible"`)
    const [found] = rows
    if (found === undefined) throw new Error('no answer about the pooler')
    if (found.isVisible) await client.query(`DEALLOCATE "${name}"`)
    await client.query('COMMIT')
    // A pooler has process ids of its own. Connections without a pooler keep names as well.
    return { place: found.place, keepsNames: !found.isVisible || Reflect.get(client, 'processID') === found.pid }
  })
