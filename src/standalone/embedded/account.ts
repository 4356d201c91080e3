import { execFileSync, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, lstatSync, mkdirSync, readlinkSync, statSync, symlinkSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { reasonOf, StartError } from '../../start-error.ts'

/** The system user that PostgreSQL runs as; null: the user of this process. */
export type Account = { readonly uid: number; readonly gid: number } | null

/** A folder for files that PostgreSQL's user cannot reach elsewhere. Only root uses it. */
export const systemFolder = '/var/lib/gatewright'

/**
 * Finds the account for the server. PostgreSQL refuses to run as root. Under root it runs as the owner of its data, which the
 * first start gives to the user `postgres`.
 *
 * @param folder the folder of the cluster, which need not exist yet
 */
export function serverAccount(folder: string): Account {
  if (process.getuid?.() !== 0) return null
  const owner = statSync(folder, { throwIfNoEntry: false })
  if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid }
  const account = findOrMakeAccount('postgres')
  if (account !== null) return account
  throw new StartError(
    'PostgreSQL does not run as root, and a user "postgres" could not be made: make one, or start as an ordinary user.',
  )
}

/**
 * Finds an account, or makes it: most systems have useradd; small ones have BusyBox's adduser. @returns null when it could not be
 * made
 */
export function findOrMakeAccount(name: string): Account {
  const commands = [
    ['useradd', '--system', '--user-group', '--no-create-home', '--shell', '/bin/false', name],
    ['adduser', '-S', '-D', '-H', name],
  ]
  const id = (flag: string) => spawnSync('id', [flag, name], { encoding: 'utf8' })
  const exists = () => id('-u').status === 0
  if (!exists() && !commands.some(([command = '', ...args]) => spawnSync(command, args).status === 0)) return null
  return { uid: Number(id('-u').stdout), gid: Number(id('-g').stdout) }
}

/** Whether this account has a right to each path, from the top of the file system: `r`, `w` or `x`. */
export function may(account: Account, right: 'r' | 'w' | 'x', ...paths: string[]): boolean {
  const script = `for path; do test -${right} "$path" || exit 1; done`
  return account === null || spawnSync('/bin/sh', ['-c', script, 'sh', ...paths], { ...account, cwd: '/' }).status === 0
}

/** The folder of the cluster of a `DATA_DIR`: `DATA_DIR/postgres`, or where that points when it is a link. */
export function clusterFolder(dataDir: string): string {
  const folder = join(dataDir, 'postgres')
  const isLink = lstatSync(folder, { throwIfNoEntry: false })?.isSymbolicLink() ?? false
  return isLink ? resolve(dataDir, readlinkSync(folder)) : folder
}

/**
 * The folder for a new cluster of a `DATA_DIR`. When PostgreSQL's user cannot enter `DATA_DIR`, for example below root's home,
 * that is a folder of the system. `DATA_DIR/postgres` becomes a link to it, for the next start.
 */
export function clusterLocation(dataDir: string, account: Account): string {
  const folder = clusterFolder(dataDir)
  const usual = join(dataDir, 'postgres')
  if (folder !== usual || may(account, 'x', dataDir)) return folder
  const parent = join(systemFolder, `${basename(dirname(dataDir))}-${randomBytes(4).toString('hex')}`)
  try {
    makeOpenFolder(parent)
    symlinkSync(join(parent, 'postgres'), usual)
  } catch (error) {
    throw new StartError(
      `PostgreSQL runs as another user than root, who may not enter ${dataDir}, and ${parent} cannot be made instead (${reasonOf(error)}): choose a DATA_DIR that every user may enter.`,
      { cause: error },
    )
  }
  return join(parent, 'postgres')
}

/** Makes a folder below `systemFolder` that every user may enter, whatever the umask is. */
export function makeOpenFolder(folder: string): void {
  for (const path of [systemFolder, folder]) {
    if (existsSync(path)) continue
    mkdirSync(path)
    execFileSync('chmod', ['755', path])
  }
}
