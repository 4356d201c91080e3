import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, readConfig } from '../../src/config.ts'
import { keyring } from '../../src/db/seal.ts'
import { installationUrl } from '../../src/standalone/embedded/running.ts'
import { StartError, sentence } from '../../src/start-error.ts'
import { type Flags, parseFlags, usage } from './flags.ts'
import { prefixOf } from './organisation.ts'
import { grouped, progressBar } from './progress.ts'
import { seed } from './seed.ts'
import { seededSecrets } from './token.ts'

/** `npm run seed -- --users 100000`: fills an installation with an organisation, for trials and measurements. */

try {
  const flags = parseFlags(process.argv.slice(2))
  if (flags === null) process.stdout.write(usage)
  else await main(flags, readConfig())
  process.exit(0)
} catch (error) {
  process.stderr.write(`\n${sentence(error, 'The database')}\n`)
  process.exit(1)
}

async function main({ seed: number, size, database }: Flags, config: Config): Promise<void> {
  const startMs = performance.now()
  const url = database ?? installationUrl(config)
  const secretKey = config.secretKey ?? readKey(config.dataDir)
  const prefix = prefixOf(number)
  process.stdout.write(`\n  Seed ${number}: ${grouped(size.users)} users\n\n`)
  const written = await seed({ seed: number, size, url, secretKey }, progressBar(process.stdout))
  if (written === null) {
    process.stdout.write(
      `  They are there already: there are users whose names begin with ${prefix}-. Nothing was written; another --seed adds others.\n\n`,
    )
    return
  }
  const seconds = (performance.now() - startMs) / 1000
  const rows = [...written.values()].reduce((sum, count) => sum + count, 0)
  const token = seededSecrets(keyring(secretKey))(`${prefix}-reader`)
  process.stdout.write(`
  ${grouped(rows)} rows in ${seconds.toFixed(1)} s: ${grouped(Math.round(rows / seconds))} a second.

  Names begin with ${prefix}. Two users to try them with:
  ${prefix}-reader may view everything; its token, for a year: ${token}
  ${prefix}-member is in many groups, one of them below 49 others.

`)
}

/** The key that `npm start` generated. Another key could not open what is sealed already, so none is generated here. */
function readKey(dataDir: string): string {
  const file = join(dataDir, 'secret-key')
  if (existsSync(file)) return readFileSync(file, 'utf8').trim()
  throw new StartError(
    `SECRET_KEY is not set, and there is no ${file}: authenticators and providers are sealed under the installation's key.`,
  )
}
