import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, minLengths, readConfig } from '../config.ts'
import { connect, type Db } from '../db/client.ts'
import { isMigrated } from '../db/migrate.ts'
import { isSilent, readProcesses } from '../db/presence.ts'
import { keyring } from '../db/seal.ts'
import { judgeSecretKey } from '../db/sealed-check.ts'
import { randomBytes } from '../ids.ts'
import { loadRegistry } from '../models/registry.ts'
import { findLost, forget, type Lost } from '../runs/forget.ts'
import { reseal } from '../runs/reseal.ts'
import { readOrCreateSecret } from '../secret-file.ts'
import { keptKey, secretKeyFile } from '../standalone/data-dir.ts'
import { installationUrl } from '../standalone/embedded/running.ts'
import { leaveRoot } from '../standalone/ordinary-user.ts'
import { withDatabase } from '../standalone/with-database.ts'
import { runProgram, StartError } from '../start-error.ts'

const usage = `npm run secrets -- rotate

Seals everything under SECRET_KEY that is sealed under SECRET_KEY_PREVIOUS, while the service runs with both. Stop it and
run it again as you like: what is done is not done again. When it has ended, remove SECRET_KEY_PREVIOUS.

npm run secrets -- forget [--yes]

The way back when SECRET_KEY is lost, while the service does not run: lists what only the lost key opens, and with --yes
clears that, so that the service starts with the key that is set, or with a new one. Everything else stays. It makes another
token for an administrator.

Both need the settings of the service: DATABASE_URL, or the DATA_DIR of npm start.
`

/** What is said of each place, with what to do about it. */
const words: Readonly<Record<string, readonly [what: string, remedy: string]>> = {
  'providers.secrets': ['Providers that lose secrets', 'Send each again with new ones, and give these to its clients.'],
  'certificate_key_pairs.sealed_key': [
    'Key pairs that lose the private key',
    'Send each with another key and certificate.',
  ],
  'totp_devices.sealed_key': ['Authenticators that are deleted', 'Their users register others.'],
  'tokens.sealed_key': ['Tokens whose key was not viewed yet', 'Delete each, and make another.'],
  'runs.blueprint': ['Runs that lose their document', 'Nothing rolls back to them.'],
  'runs.generated': ['Runs that lose what they generated', 'Set it again where it was not taken.'],
}

await runProgram(main, usage)
process.exit()

async function main(): Promise<void> {
  const [command, ...others] = process.argv.slice(2)
  const isConfirmed = others[0] === '--yes'
  if (command === 'rotate' && others.length === 0) return rotate(readConfig())
  if (command === 'forget' && others.length === (isConfirmed ? 1 : 0)) return forgetLost(readConfig(), isConfirmed)
  throw new StartError(`The command is rotate, or forget:\n${usage}`)
}

async function rotate(config: Config): Promise<void> {
  const secretKey = keptKey(config)
  if (secretKey === null)
    throw new StartError(`SECRET_KEY is not set, and there is no ${secretKeyFile(config.dataDir)}.`)
  const ring = keyring(secretKey, config.secretKeyPrevious)
  await withMigrated(installationUrl(config), async (db) => {
    const why = await judgeSecretKey(db, ring)
    if (why !== null)
      throw new StartError(
        `Neither SECRET_KEY nor SECRET_KEY_PREVIOUS is the key of this database: what it holds was ${why}.`,
      )
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
    process.stderr.write(
      `${lost} values can be opened with neither key. They were left as they are; npm run secrets -- forget clears them.\n`,
    )
  })
}

function forgetLost(config: Config, isConfirmed: boolean): Promise<void> {
  // The files that it makes belong to the user of the service.
  if (config.databaseUrl === null) leaveRoot(config)
  return withDatabase(config, async (url) => {
    const registry = await loadRegistry()
    const kept = keptKey(config)
    const ids = kept === null ? [] : keyring(kept, config.secretKeyPrevious).ids
    const lost = await withMigrated(url, async (db) => {
      const found = await findLost(url, registry, ids)
      if (found.length === 0) throw new StartError('Nothing is lost: the key that is set opens everything.')
      await requireStopped(db)
      return found
    })
    process.stdout.write(`Sealed under a key that is not here:\n\n${lost.map(describe).join('')}
Runs that wait are cancelled. Sessions of the dashboard end. Access tokens go on to work. Everything else stays.
`)
    if (!isConfirmed) {
      process.exitCode = 1
      process.stdout.write('\nNothing was changed. When the key is certainly lost: npm run secrets -- forget --yes\n')
      return
    }
    const { dataDir } = config
    const rules = { minLength: minLengths.secretKey, remedy: 'remove it, and this makes another' }
    const secretKey =
      config.secretKey ?? readOrCreateSecret(secretKeyFile(dataDir), () => randomBytes(32).toString('base64url'), rules)
    const identifier = `recovery-${new Date().toISOString().replaceAll(/\D/g, '').slice(0, 14)}`
    const usual = join(dataDir, 'admin-token')
    const file = existsSync(usual) ? join(dataDir, identifier) : usual
    const keep = (secret: string) => void readOrCreateSecret(file, () => secret)
    const hasSuperuser = await forget(url, registry, keyring(secretKey, config.secretKeyPrevious), { identifier, keep })
    process.stdout.write(`
This is cleared. Start the service, and set again what is listed.
${hasSuperuser ? `The token "${identifier}" of an administrator is in ${file}.` : 'No active superuser is left to get a token.'}
${config.secretKey === null ? `The key is in ${secretKeyFile(dataDir)}: keep` : 'Keep'} SECRET_KEY in a store of secrets.
`)
  })
}

function describe({ place, count, names }: Lost): string {
  const [what, remedy] = words[place] ?? []
  return what === undefined ? '' : `${what}: ${count}. ${remedy}\n${names.map((name) => `  ${name}\n`).join('')}`
}

/** @throws {StartError} while a process runs, which may have the key that is lost here */
async function requireStopped(db: Db): Promise<void> {
  const all = await Promise.all([readProcesses(db, 'workers'), readProcesses(db, 'servers')])
  const running = all.flat().find((each) => !isSilent(each))
  if (running === undefined) return
  const { processId, host } = running
  throw new StartError(
    `Gatewright runs (process ${processId} on ${host}), and may know the key: on Linux, tr '\\0' '\\n' < /proc/${processId}/environ | grep ^SECRET_KEY= shows it. Else stop Gatewright first.`,
  )
}

async function withMigrated<Result>(url: string, work: (db: Db) => Promise<Result>): Promise<Result> {
  const { db } = connect(url, { applicationName: 'gatewright-secrets', max: 1 })
  try {
    if (await isMigrated(db)) return await work(db)
    throw new StartError(
      'The database lacks migrations of this version: start the API once first. With another key than its own, it migrates, and ends then.',
    )
  } finally {
    await db.$disconnect()
  }
}
