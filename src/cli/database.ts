import { readDatabaseConfig } from '../config.ts'
import { type Login, prepareLogins } from '../db/roles.ts'
import { prepareDatabase } from '../prepare.ts'
import { runProgram, StartError } from '../start-error.ts'

const usage = `npm run database

Prepares a PostgreSQL database for API and worker with a login that cannot change tables: makes the logins, migrates, and
lets the login of the service use the tables. Run it before each start of a new version; it may run again at any time.

  MIGRATION_DATABASE_URL  the database with the login that owns the tables
  DATABASE_URL            the same database with the login of API and worker
  ADMIN_DATABASE_URL      the same database with a login that may make others. With it, both logins are made, get the
                          passwords in their URLs, and all that is in the database goes to the owner. Without it, both
                          must exist
  REDIS_URL               set: the queue is in Redis, and the database gets no tables for it

Each may be the contents of a file: <NAME>_FILE names it.
`

await runProgram(main, usage)
process.exit()

async function main(): Promise<void> {
  if (process.argv.length > 2) throw new StartError(`It takes no arguments:\n${usage}`)
  const { databaseUrl, migrationDatabaseUrl, adminDatabaseUrl, redisUrl } = readDatabaseConfig()
  const logins = {
    owner: loginOf('MIGRATION_DATABASE_URL', migrationDatabaseUrl),
    service: loginOf('DATABASE_URL', databaseUrl),
  }
  if (logins.owner.user === logins.service.user)
    throw new StartError(
      'DATABASE_URL and MIGRATION_DATABASE_URL have the same login: give the service one of its own.',
    )
  if (adminDatabaseUrl !== null) {
    await prepareLogins(adminDatabaseUrl, logins)
    process.stdout.write(`The logins ${logins.owner.user} and ${logins.service.user} are ready.\n`)
  }
  const applied = await prepareDatabase({
    ownerUrl: migrationDatabaseUrl,
    service: logins.service,
    withQueue: redisUrl === null,
  })
  process.stdout.write(`${applied.length} migrations were applied. The database is ready.\n`)
}

function loginOf(variable: string, url: string): Login {
  const { username, password } = new URL(url)
  if (username !== '' && password !== '')
    return { user: decodeURIComponent(username), password: decodeURIComponent(password) }
  throw new StartError(`${variable} lacks a user or a password: postgresql://user:password@host/database.`)
}
