import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { StartError } from '../../start-error.ts'
import { failureCode } from '../failures.ts'
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
  /** The URL of a database of it. */
  url(database: string): string
  /** Resolves when it has ended, asked to or not. */
  readonly ended: Promise<void>
  stop(): Promise<void>
}

/** For a small machine; room for the API, the worker and the queue's own connections. */
const settings = {
  listen_addresses: '127.0.0.1',
  max_connections: '150',
  shared_buffers: '128MB',
  max_wal_size: '512MB',
  log_min_messages: 'warning',
  log_line_prefix: '%m [%p] ',
}

const maxLogBytes = 5_000_000
/** Recovery after a crash takes its time; more than this is not recovery. */
const readyWithinMs = 120_000

/** Starts the server and waits until it answers. @param logFile what it says goes there */
export async function startPostgres(cluster: Cluster, logFile: string): Promise<RunningServer> {
  removeSockets(cluster.folder)
  let socket = socketFolder(cluster.folder)
  for (let attempt = 1; ; attempt++) {
    const from = existsSync(logFile) ? statSync(logFile).size : 0
    const server = launch(cluster, { port: await freePort(), socket }, { logFile, fresh: from > maxLogBytes })
    if (await answers(server)) return server
    await server.stop()
    const said = readFileSync(logFile)
      .subarray(from > maxLogBytes ? 0 : from)
      .toString('utf8')
    // Between the choice of the port and its use another program may take it.
    if (said.includes('Address already in use') && attempt < 3) continue
    // Not every file system can hold one: what some virtual machines share with their host cannot.
    if (said.includes('Unix-domain socket') && socket !== null) {
      socket = null
      continue
    }
    const reasons = said.split('\n').filter((line) => !/^$|LOG: {2}(starting|listening|database system)/.test(line))
    throw new StartError(`PostgreSQL did not start; the end of ${logFile} says why:\n${reasons.slice(-6).join('\n')}`)
  }
}

function launch(
  { folder, account, binaries, password }: Cluster,
  { port, socket }: { readonly port: number; readonly socket: string | null },
  log: { logFile: string; fresh: boolean },
): RunningServer {
  const output = openSync(log.logFile, log.fresh ? 'w' : 'a', 0o600)
  const flags = Object.entries({ ...settings, unix_socket_directories: socket ?? '' }).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`,
  ])
  const child = spawn(binaries.postgres, ['-D', folder, '-p', String(port), ...flags], {
    ...account,
    ...bareEnvironment,
    cwd: folder,
    stdio: ['ignore', output, output],
    // Ctrl-C in the terminal must not stop it before those who use it.
    detached: true,
  })
  closeSync(output)
  // However this process ends, short of being killed, the server does not outlive it.
  const end = () => void child.kill('SIGINT')
  process.once('exit', end)
  const ended = once(child, 'close').then(() => void process.off('exit', end))
  return {
    url: (database) => {
      const byTcp = `postgresql://${superuser}:${password}@127.0.0.1:${port}/${database}?sslmode=disable`
      return socket === null ? byTcp : `${byTcp}&host=${encodeURIComponent(socket)}`
    },
    ended,
    stop: () => stop(child, ended),
  }
}

/** Bytes that a socket's path may have where it may have the fewest. */
const maxSocketPath = 103

/**
 * The folder of a Unix socket, through which statements go and come quicker than by TCP: the cluster's own, which nobody
 * else may enter.
 *
 * @returns null where there is none: on Windows, and where the path is too long or is one that a list cannot hold
 */
function socketFolder(folder: string): string | null {
  const path = join(folder, '.s.PGSQL.65535')
  return process.platform === 'win32' || Buffer.byteLength(path) > maxSocketPath || /[",]/.test(path) ? null : folder
}

/** Each start has a port of its own, so whoever was killed has left a socket that nobody would use again. */
function removeSockets(folder: string): void {
  for (const name of readdirSync(folder)) if (name.startsWith('.s.PGSQL.')) rmSync(join(folder, name))
}

/** Fast: sessions are ended and all is written; then, if that takes too long, a crash that the next start recovers from. */
async function stop(child: ChildProcess, ended: Promise<void>): Promise<void> {
  for (const { signal, withinMs } of [
    { signal: 'SIGINT', withinMs: 3_000 },
    { signal: 'SIGQUIT', withinMs: 1_000 },
  ] as const) {
    if (child.exitCode !== null || child.signalCode !== null) return ended
    child.kill(signal)
    if (await Promise.race([ended.then(() => true), delay(withinMs, false, { ref: false })])) return
  }
  child.kill('SIGKILL')
  await ended
}

/** @returns false when it ended, or never answered */
async function answers(server: RunningServer): Promise<boolean> {
  let over = false
  void server.ended.then(() => {
    over = true
  })
  const deadline = performance.now() + readyWithinMs
  while (!over && performance.now() < deadline) {
    const client = new pg.Client({ connectionString: server.url('postgres'), connectionTimeoutMillis: 2_000 })
    client.on('error', () => {})
    try {
      await client.connect()
      await client.end()
      return true
    } catch (error) {
      if (failureCode(error) === '28P01') {
        await server.stop()
        throw new StartError('The password kept in DATA_DIR is not that of the database in it: put the right one back.')
      }
    }
    await delay(20)
  }
  return false
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  await new Promise((resolve) => probe.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  return address.port
}
