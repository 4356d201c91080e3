import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { StartError } from '../../start-error.ts'
import type { Account } from './account.ts'
import type { Binaries } from './binaries.ts'

export const superuser = 'gatewright'

/** What PostgreSQL's programs get of the environment: none of the secrets in ours. */
export const bareEnvironment =
  process.platform === 'win32' ? {} : { env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' } }

/**
 * @returns false when there is no cluster yet, and one may be made
 * @throws {StartError} for a folder that is something else, or of another PostgreSQL
 */
export function hasCluster(folder: string, major: number): boolean {
  if (!existsSync(folder)) return false
  if (readdirSync(folder).length === 0) return false
  const complete = ['PG_VERSION', 'global/pg_control', 'postgresql.conf'].every((file) =>
    existsSync(join(folder, file)),
  )
  if (!complete) {
    throw new StartError(
      `${folder} is not a whole PostgreSQL data folder: its initialisation was broken off. Move it away, then start again.`,
    )
  }
  const version = readFileSync(join(folder, 'PG_VERSION'), 'utf8').trim()
  if (Number(version) === major) return true
  throw new StartError(
    `${folder} was made by PostgreSQL ${version}, but this version of Gatewright brings PostgreSQL ${major}: move the data with pg_dump or pg_upgrade, or start the version that made it.`,
  )
}

const unfinished = '.unfinished-'

/**
 * Makes a cluster beside its place and moves it there when it is whole: one that is broken off is recognised, and
 * removed by the next start.
 */
export async function makeCluster(
  folder: string,
  { initdb }: Binaries,
  account: Account,
  password: string,
): Promise<void> {
  const parent = dirname(folder)
  mkdirSync(parent, { recursive: true })
  for (const name of readdirSync(parent)) {
    if (name.startsWith(basename(folder) + unfinished)) rmSync(join(parent, name), { recursive: true, force: true })
  }
  const workshop = mkdtempSync(folder + unfinished)
  const passwordFile = join(workshop, 'password')
  writeFileSync(passwordFile, password, { mode: 0o600 })
  if (account !== null) for (const path of [workshop, passwordFile]) chownSync(path, account.uid, account.gid)
  const made = join(workshop, 'cluster')
  // The builtin locale sorts and folds alike on every platform.
  const locale = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']
  const access = [`--username=${superuser}`, `--pwfile=${passwordFile}`, '--auth=scram-sha-256']
  const child = spawn(initdb, [`--pgdata=${made}`, ...locale, ...access, '--no-instructions'], {
    ...account,
    ...bareEnvironment,
    cwd: workshop,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const end = () => void child.kill('SIGTERM')
  process.once('exit', end)
  const [complaints, [code]] = await Promise.all([text(child.stderr), once(child, 'close')])
  process.off('exit', end)
  if (code === 0) {
    // An empty folder may stand in its place.
    if (existsSync(folder)) rmdirSync(folder)
    renameSync(made, folder)
  }
  rmSync(workshop, { recursive: true, force: true })
  if (code !== 0)
    throw new StartError(
      `PostgreSQL could not make its data folder ${folder}: ${complaints.trim() || `exit code ${code}`}`,
    )
}
