import { readPlaceOfDatabase } from '../config.ts'
import { installationUrl } from '../standalone/embedded/running.ts'
import { runProgram } from '../start-error.ts'

/** `npm run -s url`: the URL of the database of this installation, with its password, for psql and pg_dump. */

await runProgram(async () => {
  process.stdout.write(`${installationUrl(readPlaceOfDatabase())}\n`)
})
