import { execFileSync, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, lstatSync, mkdirSync, readlinkSync, statSync, symlinkSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { reasonOf, StartError } from '../../start-error.ts'

/** Another user to run as; null: as this process does. */
export type Account = { readonly uid: number; readonly gid: number } | null

/** Where things live that a closed folder hides from PostgreSQL's user. Only root ever comes here. */
export const systemFolder = '/var/lib/gatewright'

/**
 * PostgreSQL refuses to run as root: then it runs as whoever owns its data, at first as user `postgres`.
 *
 * @param folder the cluster's, which need not exist yet
 */
export function serverAccount(folder: string): Account {
  if (process.getuid?.() !== 0) return null
  const owner = existsSync(folder) ? statSync(folder) : undefined
  return owner !== undefined && owner.uid !== 0 ? { uid: owner.uid, gid: owner.gid } : postgresAccount()
}

function postgresAccount(): { uid: number; gid: number } {
  const id = (flag: string) => spawnSync('id', [flag, 'postgres'], { encoding: 'utf8' })
  if (id('-u').status !== 0) makePostgresAccount()
  return { uid: Number(id('-u').stdout), gid: Number(id('-g').stdout) }
}

/** Most systems have useradd; small ones have BusyBox's adduser. */
function makePostgresAccount(): void {
  const commands = [
    ['useradd', '--system', '--user-group', '--no-create-home', '--shell', '/bin/false', 'postgres'],
    ['adduser', '-S', '-D', '-H', 'postgres'],
  ]
  for (const [command = '', ...args] of commands) if (spawnSync(command, args).status === 0) return
  throw new StartError(
    'PostgreSQL does not run as root, and a user "postgres" could not be made: make one, or start as an ordinary user.',
  )
}

/** Whether the account may enter a folder. */
export const mayEnter = (account: Account, folder: string): boolean =>
  account === null || spawnSync('/bin/sh', ['-c', 'test -x "$1"', 'sh', folder], { ...account, cwd: '/' }).status === 0

/**
 * Where the cluster of a `DATA_DIR` is or will be. Below a folder that PostgreSQL's user may not enter, such as
 * root's home, it is elsewhere and `DATA_DIR/postgres` is a link to it, so that every later start finds it.
 */
export function clusterFolder(dataDir: string): string {
  const here = join(dataDir, 'postgres')
  const linked = lstatSync(here, { throwIfNoEntry: false })?.isSymbolicLink() ?? false
  return linked ? resolve(dataDir, readlinkSync(here)) : here
}

/** @returns where to make the cluster of a `DATA_DIR` that has none yet */
export function placeCluster(dataDir: string, account: Account): string {
  const found = clusterFolder(dataDir)
  const here = join(dataDir, 'postgres')
  if (found !== here || mayEnter(account, dataDir)) return found
  const place = join(systemFolder, `${basename(dirname(dataDir))}-${randomBytes(4).toString('hex')}`)
  try {
    openFolder(place)
    symlinkSync(join(place, 'postgres'), here)
  } catch (error) {
    throw new StartError(
      `PostgreSQL runs as another user than root, who may not enter ${dataDir}, and ${place} cannot be made instead (${reasonOf(error)}): choose a DATA_DIR that every user may enter.`,
      { cause: error },
    )
  }
  return join(place, 'postgres')
}

/** A folder of root's that everybody may enter, whatever the umask is. */
export function openFolder(folder: string): void {
  for (const path of [systemFolder, folder]) {
    if (existsSync(path)) continue
    mkdirSync(path)
    execFileSync('chmod', ['755', path])
  }
}
