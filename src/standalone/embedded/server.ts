import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readdirSync, readFileSync, rmSync, statfsSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { failureCode } from '../../db/errors.ts'
import { inSession } from '../../db/session.ts'
import { StartError } from '../../start-error.ts'
import { limitTime } from '../../time-limit.ts'
import type { Account } from './account.ts'
import type { Binaries } from './binaries.ts'
import { bareEnvironment, superuser } from './cluster.ts'

export type Cluster = {
  readonly folder: string
  readonly account: Account
  readonly binaries: Binaries
  readonly password: string
}

export type RunningServer = {
  url(database: string): string
  /** Resolves when it has ended, for any reason. */
  readonly ended: Promise<void>
  stop(): Promise<void>
}

/** Settings for a small machine; enough connections for the API, the worker and the queue. */
const settings = {
  listen_addresses: '127.0.0.1',
  max_connections: '150',
  // A document locks each name that it writes, and may have 10 000 entries.
  max_locks_per_transaction: '512',
  shared_buffers: '128MB',
  max_wal_size: '512MB',
  log_min_messages: 'warning',
  log_line_prefix: '%m [%p] ',
}

const maxLogBytes = 5_000_000
/** Milliseconds; longer than recovery after a crash takes. */
const startupMs = 120_000
const maxPortAttempts = 3

/** Starts the server and waits until it accepts connections. @param logFile gets its output */
export async function startPostgres(cluster: Cluster, logFile: string): Promise<RunningServer> {
  removeSockets(cluster.folder)
  let socket = socketFolder(cluster.folder)
  for (let attempt = 1; ; attempt++) {
    const oldBytes = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0
    const append = oldBytes <= maxLogBytes
    const place = { port: await freePort(), socket, logFile }
    const server = launch(cluster, place, append ? 'a' : 'w')
    if (await acceptsConnections(server)) return restartedWithRoom(server, cluster, () => launch(cluster, place, 'a'))
    await server.stop()
    const output = readFileSync(logFile)
      .subarray(append ? oldBytes : 0)
      .toString('utf8')
    // Another program took the port after it was chosen.
    if (output.includes('Address already in use') && attempt < maxPortAttempts) continue
    // Some file systems cannot hold a socket, such as those that virtual machines share with their host.
    if (output.includes('Unix-domain socket') && socket !== null) {
      socket = null
      continue
    }
    const reasons = output.split('\n').filter((line) => !/^$|LOG: {2}(starting|listening|database system)/.test(line))
    throw new StartError(`PostgreSQL did not start; the end of ${logFile} says why:\n${reasons.slice(-6).join('\n')}`)
  }
}

/** Bytes for the next files of its log. A server that ended with less free did so because its disk is full. */
const roomBytes = 32_000_000
const againMs = 2_000

export function isFull(folder: string): boolean {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize < roomBytes
}

/**
 * Restarts a server. One that needs the next file of its log on a full disk ends, and cannot recover there. It is started again,
 * on its port, when there is room.
 */
function restartedWithRoom(first: RunningServer, { folder }: Cluster, again: () => RunningServer): RunningServer {
  let current = first
  const stopping = new AbortController()
  async function supervise(): Promise<void> {
    for (;;) {
      await current.ended
      if (stopping.signal.aborted || !isFull(folder)) return
      process.stdout.write('PostgreSQL has ended: its disk is full. It is started again when there is room.\n')
      while (isFull(folder) && !stopping.signal.aborted)
        await delay(againMs, undefined, { signal: stopping.signal }).catch(() => {})
      if (stopping.signal.aborted) return
      current = again()
    }
  }
  const ended = supervise()
  return {
    url: first.url,
    ended,
    stop: async () => {
      stopping.abort()
      await current.stop()
      await ended
    },
  }
}

type ServerPlace = { readonly port: number; readonly socket: string | null; readonly logFile: string }

function launch(
  { folder, account, binaries, password }: Cluster,
  { port, socket, logFile }: ServerPlace,
  logFlag: 'a' | 'w',
): RunningServer {
  const log = openSync(logFile, logFlag, 0o600)
  const flags = Object.entries({ ...settings, unix_socket_directories: socket ?? '' }).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`,
  ])
  const child = spawn(binaries.postgres, ['-D', folder, '-p', String(port), ...flags], {
    ...account,
    ...bareEnvironment,
    cwd: folder,
    stdio: ['ignore', log, log],
    // Ctrl-C in the terminal must not stop it before its clients.
    detached: true,
  })
  closeSync(log)
  const kill = () => void child.kill('SIGINT')
  process.once('exit', kill)
  const ended = once(child, 'close').then(() => void process.off('exit', kill))
  return {
    url: (database) => {
      const byTcp = `postgresql://${superuser}:${password}@127.0.0.1:${port}/${database}?sslmode=disable`
      return socket === null ? byTcp : `${byTcp}&host=${encodeURIComponent(socket)}`
    },
    ended,
    stop: () => stop(child, ended),
  }
}

/** The longest path of a socket, in bytes, on the system with the lowest limit. */
const maxSocketPath = 103

/**
 * The folder of a Unix socket, which is faster than TCP: that of the cluster, which only its owner may enter.
 *
 * @returns null on Windows, and for a path that is too long or cannot stand in a list
 */
function socketFolder(folder: string): string | null {
  const path = join(folder, '.s.PGSQL.65535')
  return process.platform === 'win32' || Buffer.byteLength(path) > maxSocketPath || /[",]/.test(path) ? null : folder
}

/**
 * Removes sockets. A killed server leaves its socket, and the next server does not replace it, because its port is another one.
 */
function removeSockets(folder: string): void {
  for (const name of readdirSync(folder)) if (name.startsWith('.s.PGSQL.')) rmSync(join(folder, name))
}

/**
 * Stops the server: first a fast shutdown, which writes everything; then an immediate one, from which the next start recovers.
 */
async function stop(child: ChildProcess, ended: Promise<void>): Promise<void> {
  for (const { signal, withinMs } of [
    { signal: 'SIGINT', withinMs: 3_000 },
    { signal: 'SIGQUIT', withinMs: 1_000 },
  ] as const) {
    if (child.exitCode !== null || child.signalCode !== null) return ended
    child.kill(signal)
    const isOver = ended.then(() => true)
    if (await limitTime(isOver, withinMs, () => false)) return
  }
  child.kill('SIGKILL')
  await ended
}

/** @returns false when the server ended, or did not accept connections in time */
async function acceptsConnections(server: RunningServer): Promise<boolean> {
  const isOver = Promise.race([server.ended, delay(startupMs, undefined, { ref: false })]).then(() => true)
  while (!(await Promise.race([isOver, delay(20, false)]))) {
    try {
      await inSession({ connectionString: server.url('postgres'), connectionTimeoutMillis: 2_000 }, async () => {})
      return true
    } catch (error) {
      if (failureCode(error) !== '28P01') continue
      await server.stop()
      throw new StartError('The password kept in DATA_DIR is not that of the database in it: put the right one back.')
    }
  }
  return false
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  await new Promise((resolve) => probe.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('the probe has no port')
  return address.port
}
