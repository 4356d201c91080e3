import { readPlaceOfDatabase } from '../config.ts'
import { runningUrl } from '../standalone/embedded/running.ts'
import { runProgram } from '../start-error.ts'

/** `npm run -s url`: the URL of the database of this installation, with its password, for psql and pg_dump. */

await runProgram(async () => {
  const { databaseUrl, directDatabaseUrl, dataDir } = readPlaceOfDatabase()
  process.stdout.write(`${directDatabaseUrl ?? databaseUrl ?? runningUrl(dataDir)}\n`)
})
