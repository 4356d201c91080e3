import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig } from '../config.ts'
import { connect } from '../db/client.ts'
import { isMigrated } from '../db/migrate.ts'
import { keyring } from '../db/seal.ts'
import { judgeSecretKey } from '../db/sealed-check.ts'
import { loadRegistry } from '../models/registry.ts'
import { reseal } from '../runs/reseal.ts'
import { installationUrl } from '../standalone/embedded/running.ts'
import { runProgram, StartError } from '../start-error.ts'

/** `npm run secrets -- rotate`: seals all secrets under SECRET_KEY that are sealed under SECRET_KEY_PREVIOUS. */

const usage = `npm run secrets -- rotate

Seals everything under SECRET_KEY that is sealed under SECRET_KEY_PREVIOUS, while the service runs with both. Stop it and
run it again as you like: what is done is not done again. When it has ended, remove SECRET_KEY_PREVIOUS.

It needs the settings of the service: DATABASE_URL, or the DATA_DIR of a running npm start.
`

await runProgram(main)
process.exit()

async function main(): Promise<void> {
  const [command, ...others] = process.argv.slice(2)
  if (command === '--help' || command === '-h') {
    process.stdout.write(usage)
    return
  }
  if (command !== 'rotate' || others.length > 0) throw new StartError(`The command is rotate:\n${usage}`)
  const config = readConfig()
  const secretKey = config.secretKey ?? readKey(config.dataDir)
  const ring = keyring(secretKey, config.secretKeyPrevious)
  const { db } = connect(installationUrl(config), {
    applicationName: 'gatewright-secrets',
    max: 1,
  })
  try {
    if (!(await isMigrated(db)))
      throw new StartError('The database lacks migrations of this version: start the API once first.')
    const why = await judgeSecretKey(db, ring)
    if (why !== null)
      throw new StartError(
        `Neither SECRET_KEY nor SECRET_KEY_PREVIOUS is the key of this database: what it holds was ${why}.`,
      )
    await rotate(db, ring)
  } finally {
    await db.$disconnect()
  }
}

async function rotate(db: Parameters<typeof reseal>[0], ring: ReturnType<typeof keyring>): Promise<void> {
  let total = 0
  let lost = 0
  await reseal(db, await loadRegistry(), ring, (done) => {
    total += done.sealed
    lost += done.lost
    process.stdout.write(`${done.place}: ${done.sealed} sealed anew\n`)
  })
  process.stdout.write(`Done: ${total} sealed anew. SECRET_KEY_PREVIOUS is no longer needed.\n`)
  if (lost === 0) return
  process.exitCode = 1
  process.stderr.write(`${lost} values can be opened with neither key. They were left as they are.\n`)
}

/** The key that `npm start` generated. */
function readKey(dataDir: string): string {
  const file = join(dataDir, 'secret-key')
  if (existsSync(file)) return readFileSync(file, 'utf8').trim()
  throw new StartError(`SECRET_KEY is not set, and there is no ${file}.`)
}
