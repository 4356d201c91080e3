import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, ConfigError, readConfig } from '../config.ts'
import { runningUrl } from '../db/embedded/running.ts'
import { keyring } from '../db/seal.ts'
import { Problem } from '../errors.ts'
import { type Flags, parseFlags, usage } from '../seed/flags.ts'
import { prefixOf } from '../seed/organisation.ts'
import { seed } from '../seed/seed.ts'
import { seededSecrets } from '../seed/token.ts'
import { reasonOf, StartError } from '../start-error.ts'
import { grouped, progressBar } from './progress.ts'

/** `npm run seed -- --users 100000`: fills an installation with an organisation, for trying and for measuring. */

try {
  const flags = parseFlags(process.argv.slice(2))
  if (flags === null) process.stdout.write(usage)
  else await main(flags, readConfig())
  process.exit(0)
} catch (error) {
  process.stderr.write(`\n${sentence(error)}\n`)
  process.exit(1)
}

async function main({ seed: number, size, database }: Flags, config: Config): Promise<void> {
  const startedMs = performance.now()
  const url = database ?? config.databaseUrl ?? runningUrl(config.dataDir)
  const secretKey = config.secretKey ?? keptKey(config.dataDir)
  const prefix = prefixOf(number)
  process.stdout.write(`\n  Seed ${number}: ${grouped(size.users)} users\n\n`)
  const written = await seed({ seed: number, size, url, secretKey }, progressBar(process.stdout))
  if (written === null) {
    process.stdout.write(
      `  They are there already: there are users whose names begin with ${prefix}-. Nothing was written; another --seed adds others.\n\n`,
    )
    return
  }
  const seconds = (performance.now() - startedMs) / 1000
  const rows = [...written.values()].reduce((sum, count) => sum + count, 0)
  const token = seededSecrets(keyring(secretKey))(`${prefix}-reader`)
  process.stdout.write(`
  ${grouped(rows)} rows in ${seconds.toFixed(1)} s: ${grouped(Math.round(rows / seconds))} a second.

  Names begin with ${prefix}. Two users to try them with:
  ${prefix}-reader may view everything; its token, for a year: ${token}
  ${prefix}-member is in many groups, one of them below 49 others.

`)
}

/** The key that `npm start` made; one is never made here, because what is there is sealed under another. */
function keptKey(dataDir: string): string {
  const file = join(dataDir, 'secret-key')
  if (existsSync(file)) return readFileSync(file, 'utf8').trim()
  throw new StartError(
    `SECRET_KEY is not set, and there is no ${file}: authenticators and providers are sealed under the installation's key.`,
  )
}

function sentence(error: unknown): string {
  if (error instanceof StartError || error instanceof ConfigError) return error.message
  if (error instanceof Problem) return `${error.message} (${reasonOf(error.cause)})`
  // PostgreSQL refuses a login: classes 28 and 3D.
  if (/^(28|3D)/.test(reasonOf(error))) return `The database refuses: ${(error as Error).message}.`
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
