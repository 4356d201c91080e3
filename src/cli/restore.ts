import { existsSync, lstatSync, realpathSync, renameSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { readConfig } from '../config.ts'
import { type Backup, inWords, openBackup, type RowsOfTables } from '../db/backup-file.ts'
import { failureCode } from '../db/errors.ts'
import { migrate } from '../db/migrate.ts'
import { load } from '../db/restore.ts'
import { inSession } from '../db/session.ts'
import { readOrCreateSecret } from '../secret-file.ts'
import { report } from '../standalone/banner.ts'
import { keptKey, openDataDir, secretKeyFile } from '../standalone/data-dir.ts'
import { clusterFolder } from '../standalone/embedded/account.ts'
import { stopOrphanedServer } from '../standalone/embedded/orphaned-server.ts'
import { isFull } from '../standalone/embedded/server.ts'
import { startEmbedded } from '../standalone/embedded.ts'
import { lock } from '../standalone/lock.ts'
import { leaveRoot } from '../standalone/ordinary-user.ts'
import { endedBySignal, requireEmbedded } from '../standalone/with-database.ts'
import { runProgram, StartError } from '../start-error.ts'

const usage = `npm run restore -- FILE

Makes the database of npm start out of a file of npm run backup, also of an older version. DATA_DIR, else .data, must have no
database yet. The service starts afterwards, with npm start.
`

await runProgram(main, usage)
process.exit()

async function main(): Promise<void> {
  const [name, ...others] = process.argv.slice(2)
  if (name === undefined || name.startsWith('-') || others.length > 0)
    throw new StartError(`It takes one file:\n${usage}`)
  const config = readConfig()
  requireEmbedded(config)
  const { dataDir } = config
  // The file is opened before the rights of root are dropped.
  const backup = await openBackup(resolve(name))
  leaveRoot(config)
  openDataDir(dataDir)
  lock(dataDir)
  if (lstatSync(join(dataDir, 'postgres'), { throwIfNoEntry: false }) !== undefined)
    throw new StartError(`${join(dataDir, 'postgres')} is there already: choose another DATA_DIR, or move it away.`)
  const kept = keptKey(config)
  if (backup.secretKey !== null && kept !== null && kept !== backup.secretKey)
    throw new StartError(
      `The backup has another secret key than SECRET_KEY or ${secretKeyFile(dataDir)}: take that away first.`,
    )
  const rows = await restore(dataDir, backup)
  const aboutKey =
    backup.secretKey === null
      ? `The secret key was not in the backup: put it into ${secretKeyFile(dataDir)} before npm start. If it is lost: npm run secrets -- forget.`
      : 'The secret key was in the backup, and is there too. npm start starts the service.'
  process.stdout.write(`
  ${dataDir} has ${inWords(rows)}, of ${backup.header.madeAt} and version ${backup.header.version}.
  ${aboutKey}

`)
}

/**
 * Restores into a folder of its own, whose database is moved when it is whole: a restore that is killed leaves none. What it leaves
 * is removed by the next one.
 */
async function restore(dataDir: string, backup: Backup): Promise<RowsOfTables> {
  const interrupted = endedBySignal()
  const unfinished = join(dataDir, 'restore.unfinished')
  await remove(unfinished)
  openDataDir(unfinished)
  try {
    const server = await startEmbedded(unfinished, report)
    const rows = await Promise.race([fill(server.url, backup), interrupted]).finally(server.stop)
    const { secretKey } = backup
    if (secretKey !== null) readOrCreateSecret(secretKeyFile(dataDir), () => secretKey)
    for (const name of ['postgres.log', 'postgres-password', 'postgres'])
      renameSync(join(unfinished, name), join(dataDir, name))
    return rows
  } catch (error) {
    const noRoom = failureCode(Object(error).cause) === '53100' || isFull(dataDir)
    if (noRoom) throw new StartError(`The disk of ${dataDir} is full: nothing was kept.`, { cause: error })
    throw error
  } finally {
    await remove(unfinished)
  }
}

async function fill(url: string, backup: Backup): Promise<RowsOfTables> {
  await report('Making the tables of the backup', () => migrate(url, undefined, undefined, backup.header.migrations))
  const rows = await report('Loading rows', () => load(url, backup))
  await report('Applying later migrations', () => migrate(url))
  // The checkpoint of a stop would take longer than a stop may.
  await inSession({ connectionString: url }, (client) => client.query('ANALYZE').then(() => client.query('CHECKPOINT')))
  return rows
}

/** Removes an unfinished restore, with the server that a killed one left running. */
async function remove(unfinished: string): Promise<void> {
  const folder = clusterFolder(unfinished)
  if (existsSync(folder)) {
    await stopOrphanedServer(realpathSync(folder))
    rmSync(folder, { recursive: true, force: true })
  }
  rmSync(unfinished, { recursive: true, force: true })
}
