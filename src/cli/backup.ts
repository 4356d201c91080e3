import { existsSync } from 'node:fs'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type Config, readConfig } from '../config.ts'
import { backUp } from '../db/backup.ts'
import { inWords, type RowsOfTables } from '../db/backup-file.ts'
import { connect } from '../db/client.ts'
import { keyring } from '../db/seal.ts'
import { judgeSecretKey } from '../db/sealed-check.ts'
import { report } from '../standalone/banner.ts'
import { keptKey, secretKeyFile } from '../standalone/data-dir.ts'
import { requireEmbedded, withDatabase } from '../standalone/with-database.ts'
import { reasonOf, runProgram, StartError } from '../start-error.ts'

const usage = `npm run backup -- FILE [--with-key]

Writes all rows of the database of npm start into a new file, while it runs or not. npm run restore makes an installation
of it. DATA_DIR names another installation than .data.

  --with-key  the secret key is in the file, too. Without it, keep DATA_DIR/secret-key elsewhere: what is secret in the
              file opens under that key alone
`

await runProgram(main, usage)
process.exit()

async function main(): Promise<void> {
  const args = process.argv.slice(2)
  const withKey = args.includes('--with-key')
  const [name, ...others] = args.filter((arg) => arg !== '--with-key')
  if (name === undefined || name.startsWith('-') || others.length > 0)
    throw new StartError(`It takes one file, and --with-key:\n${usage}`)
  const config = readConfig()
  requireEmbedded(config)
  const file = resolve(name)
  const { rows, bytes } = await writeWhole(file, (handle) =>
    withDatabase(config, async (url) => {
      const secretKey = withKey ? await rightKey(url, config) : null
      return report(`Writing ${file}`, () => backUp(url, secretKey, (part) => handle.appendFile(part)))
    }),
  )
  process.stdout.write(`
  ${file} has ${inWords(rows)}, in ${bytes.toLocaleString('en-US')} bytes.
  ${withKey ? `The secret key is in it: who has the file reads every secret. Keep it where passwords are kept.` : `The secret key is not in it: keep ${config.secretKey === null ? secretKeyFile(config.dataDir) : 'SECRET_KEY'} in a store of secrets. What is secret in the file is lost without it.`}

`)
}

/** @throws {StartError} without the key under which this database is sealed: a backup with another one would be no backup */
async function rightKey(url: string, config: Config): Promise<string> {
  const secretKey = keptKey(config)
  if (secretKey === null)
    throw new StartError(
      `SECRET_KEY is not set, and there is no ${secretKeyFile(config.dataDir)}: back up without --with-key.`,
    )
  const { db } = connect(url, { applicationName: 'gatewright-backup', max: 1 })
  const why = await judgeSecretKey(db, keyring(secretKey)).finally(() => db.$disconnect())
  if (why === null) return secretKey
  throw new StartError(
    `The secret key here is not the one of this database (what it holds was ${why}): set the right SECRET_KEY, or back up without --with-key.`,
  )
}

/** Writes a file that only its owner may read. It gets its name when it is whole. */
async function writeWhole(file: string, write: (handle: FileHandle) => Promise<RowsOfTables>) {
  if (existsSync(file)) throw new StartError(`${file} exists: choose another name.`)
  const part = `${file}.part`
  const handle = await open(part, 'wx', 0o600).catch((error: unknown) => {
    const why =
      reasonOf(error) === 'EEXIST' ? 'a backup writes it now, or one was killed: remove it then' : reasonOf(error)
    throw new StartError(`${part} cannot be made (${why}).`, { cause: error })
  })
  try {
    const rows = await write(handle)
    await handle.sync()
    const { size: bytes } = await handle.stat()
    await rename(part, file)
    return { rows, bytes }
  } catch (error) {
    await rm(part, { force: true })
    if (!['ENOSPC', 'EDQUOT', 'EFBIG'].includes(reasonOf(error))) throw error
    throw new StartError(`${part} has no room on its disk (${reasonOf(error)}): nothing was kept.`, { cause: error })
  } finally {
    await handle.close()
  }
}
