import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram } from './environment.ts'
import { freePort } from './free-port.ts'
import { guard } from './guard.ts'
import { isAlive, until } from './until.ts'

export type RedisServer = {
  readonly url: string
  readonly port: number
  /** The process of its last start. */
  readonly pid: number
  /** Starts it again on the same port after `stop` or `kill`. */
  start(): Promise<void>
  /** An orderly shutdown. */
  stop(): Promise<void>
  kill(): Promise<void>
  /** Stops it and removes its files. */
  remove(): Promise<void>
}

/**
 * A real Redis of its own.
 *
 * @param port a free one when not given
 * @param durable true: what was written survives `stop` and `kill` (append-only file, flushed at each write)
 * @param flags further settings: `['--maxmemory', '4mb']`
 * @param sentinel lines of its file: it is a Sentinel, which holds no data
 */
export async function startRedis({
  port,
  durable = false,
  flags = [],
  sentinel,
}: {
  port?: number
  durable?: boolean
  flags?: string[]
  sentinel?: readonly string[]
} = {}): Promise<RedisServer> {
  const program = findProgram('redis-server')
  if (program === null) throw new Error('redis-server is not installed')
  const folder = mkdtempSync(join(tmpdir(), 'gatewright-redis-'))
  const listens = port ?? (await freePort())
  const keeps = durable ? ['--appendonly', 'yes', '--appendfsync', 'always'] : ['--appendonly', 'no']
  const place = ['--port', String(listens), '--bind', '127.0.0.1', '--dir', folder, '--logfile', join(folder, 'log')]
  const settings = ['--save', '', '--databases', '1000', '--maxmemory-policy', 'noeviction', ...keeps]
  // A Sentinel keeps what it learns in its file.
  const file = join(folder, 'sentinel.conf')
  if (sentinel !== undefined) writeFileSync(file, `${sentinel.join('\n')}\n`)
  const all = sentinel === undefined ? [...place, ...settings, ...flags] : [file, '--sentinel', ...place]
  let pid = 0
  let release = () => {}

  const start = async () => {
    const server = spawn(program, all, { detached: true, stdio: 'ignore' })
    server.unref()
    if (server.pid === undefined) throw new Error(`${program} could not be started`)
    pid = server.pid
    release = guard({ pid, signal: 'KILL', folder })
    await until('Redis to answer', () => pongs(listens), { withinMs: 10_000 }).catch((error: unknown) => {
      throw new Error(readFileSync(join(folder, 'log'), 'utf8'), { cause: error })
    })
  }
  const end = async (signal: 'SIGTERM' | 'SIGKILL') => {
    if (pid === 0 || !isAlive(pid)) return release()
    const ended = pid
    process.kill(ended, signal)
    await until(`Redis (${ended}) to stop`, () => !isAlive(ended), { withinMs: 10_000 })
    pid = 0
    release()
  }

  await start()
  return {
    url: `redis://127.0.0.1:${listens}`,
    port: listens,
    get pid() {
      return pid
    },
    start,
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
    remove: async () => {
      await end('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Whether it answers PONG, or asks for its password; while it loads its data it answers otherwise. */
function pongs(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'))
    socket.setTimeout(1_000, () => socket.destroy(new Error('no answer')))
    socket.once('data', (answer) => {
      socket.destroy()
      resolve(/^(\+PONG|-NOAUTH)/.test(String(answer)))
    })
    socket.once('error', reject)
  })
}
