import { spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { StartError } from '../../start-error.ts'
import type { Account } from './account.ts'
import type { Binaries } from './binaries.ts'

export const superuser = 'gatewright'

/** The environment of PostgreSQL's programs: it has none of this process's secrets. */
export const bareEnvironment =
  process.platform === 'win32' ? {} : { env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' } }

/**
 * @returns false when there is no cluster, and one can be made there
 * @throws {StartError} for a folder that holds something else, or the data of another PostgreSQL
 */
export function hasCluster(folder: string, major: number): boolean {
  if (!fs.existsSync(folder) || fs.readdirSync(folder).length === 0) return false
  if (!['PG_VERSION', 'global/pg_control', 'postgresql.conf'].every((file) => fs.existsSync(join(folder, file))))
    throw new StartError(
      `${folder} is not a whole PostgreSQL data folder: its initialisation was broken off. Move it away, then start again.`,
    )
  const version = fs.readFileSync(join(folder, 'PG_VERSION'), 'utf8').trim()
  if (Number(version) === major) return true
  throw new StartError(
    `${folder} was made by PostgreSQL ${version}, but this version of Gatewright brings PostgreSQL ${major}: move the data with pg_dump or pg_upgrade, or start the version that made it.`,
  )
}

const unfinished = '.unfinished-'

/** Makes a cluster under another name and renames it when it is complete. Removes the files of an interrupted start. */
export async function makeCluster(
  folder: string,
  { initdb }: Binaries,
  account: Account,
  password: string,
): Promise<void> {
  const parent = dirname(folder)
  fs.mkdirSync(parent, { recursive: true })
  for (const name of fs.readdirSync(parent))
    if (name.startsWith(basename(folder) + unfinished)) fs.rmSync(join(parent, name), { recursive: true, force: true })

  const temporary = fs.mkdtempSync(folder + unfinished)
  const passwordFile = join(temporary, 'password')
  fs.writeFileSync(passwordFile, password, { mode: 0o600 })
  if (account !== null) for (const path of [temporary, passwordFile]) fs.chownSync(path, account.uid, account.gid)
  const cluster = join(temporary, 'cluster')
  const flags = [
    // The builtin locale sorts and folds case alike on every platform.
    ...['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'],
    ...[`--username=${superuser}`, `--pwfile=${passwordFile}`, '--auth=scram-sha-256', '--no-instructions'],
  ]
  const child = spawn(initdb, [`--pgdata=${cluster}`, ...flags], {
    ...account,
    ...bareEnvironment,
    cwd: temporary,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const kill = () => void child.kill('SIGTERM')
  process.once('exit', kill)
  const [errors, [code]] = await Promise.all([text(child.stderr), once(child, 'close')])
  process.off('exit', kill)
  if (code === 0) {
    // An empty folder may have that name.
    if (fs.existsSync(folder)) fs.rmdirSync(folder)
    fs.renameSync(cluster, folder)
  }
  fs.rmSync(temporary, { recursive: true, force: true })
  if (code !== 0)
    throw new StartError(`PostgreSQL could not make its data folder ${folder}: ${errors.trim() || `exit code ${code}`}`)
}
