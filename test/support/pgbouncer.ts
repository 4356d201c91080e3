import { execFileSync, spawn } from 'node:child_process'
import { chownSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { atEnd } from './at-end.ts'
import { findPrograms } from './environment.ts'
import { freePort } from './free-port.ts'
import { guard } from './guard.ts'
import { answers, serverUser } from './postgres.ts'
import { isAlive, until } from './until.ts'

/** A PgBouncer that is installed, and how it is set. */
export type BouncerKind = { readonly program: string; readonly version: string; readonly maxPreparedStatements: number }

/** PgBouncer can keep prepared statements in transaction mode from this version on. */
const firstToKeep = [1, 21] as const

/** Each PgBouncer on the PATH, once for each way in which it treats prepared statements. */
export function bouncerKinds(): BouncerKind[] {
  const programs = new Set(findPrograms('pgbouncer').map((path) => realpathSync(path)))
  const versions = [...programs].map((program) => ({ program, version: versionOf(program) }))
  return versions.flatMap((each) =>
    (canKeep(each.version) ? [200, 0] : [0]).map((maxPreparedStatements) => ({ ...each, maxPreparedStatements })),
  )
}

const versionOf = (program: string): string =>
  /PgBouncer (\S+)/.exec(execFileSync(program, ['--version'], { encoding: 'utf8' }))?.[1] ?? ''

function canKeep(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > firstToKeep[0] || (major === firstToKeep[0] && minor >= firstToKeep[1])
}

export type Bouncer = {
  /** The URL of `target`, by way of PgBouncer. */
  readonly url: string
  /** Starts it again on the same port after `stop`. */
  start(): Promise<void>
  /** Closes every connection at once. */
  stop(): Promise<void>
}

/** Connections to PostgreSQL: fewer than its clients have, so that transactions of one client run in many sessions. */
export const bouncerPool = 6

/**
 * A real PgBouncer in transaction mode before a database. Ended after the test file.
 *
 * @param target the URL of the database, with a login that it lets in without a password
 * @param settings beside those of transaction mode
 */
export async function startBouncer(
  { program, version, maxPreparedStatements }: BouncerKind,
  target: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<Bouncer> {
  const { hostname, port: to, pathname, username } = new URL(target)
  const owner = serverUser()
  const folder = mkdtempSync(join(tmpdir(), 'gatewright-pgbouncer-'))
  const port = await freePort()
  const url = new URL(target)
  url.port = String(port)
  const all = {
    ...{ listen_addr: '127.0.0.1', listen_port: String(port), unix_socket_dir: '', pool_mode: 'transaction' },
    ...{ auth_type: 'trust', auth_file: join(folder, 'users'), logfile: join(folder, 'log') },
    ...{ default_pool_size: String(bouncerPool), max_client_conn: '200', server_login_retry: '1' },
    ...(canKeep(version) && { max_prepared_statements: String(maxPreparedStatements) }),
    ...settings,
  }
  const lines = Object.entries(all).map(([name, value]) => `${name} = ${value}`)
  const ini = join(folder, 'ini')
  writeFileSync(ini, `[databases]\n* = host=${hostname} port=${to}\n[pgbouncer]\n${lines.join('\n')}\n`)
  writeFileSync(join(folder, 'users'), `"${decodeURIComponent(username)}" ""\n`)
  if (owner !== undefined)
    for (const each of [folder, ini, join(folder, 'users')]) chownSync(each, owner.uid, owner.gid)

  let pid = 0
  let release = () => {}
  const start = async () => {
    const server = spawn(program, ['-q', ini], { ...owner, cwd: folder, detached: true, stdio: 'ignore' })
    server.unref()
    if (server.pid === undefined) throw new Error(`${program} could not be started`)
    pid = server.pid
    release = guard({ pid, signal: 'KILL', folder })
    await until(`PgBouncer before ${pathname}`, () => answers(url.href), { withinMs: 10_000 }).catch(
      (error: unknown) => {
        throw new Error(readFileSync(join(folder, 'log'), 'utf8'), { cause: error })
      },
    )
  }
  const stop = async () => {
    if (pid === 0 || !isAlive(pid)) return release()
    const ended = pid
    // The other signals wait for clients, in one version or another.
    process.kill(ended, 'SIGKILL')
    await until(`PgBouncer (${ended}) to stop`, () => !isAlive(ended), { withinMs: 10_000 })
    pid = 0
    release()
  }
  await start()
  atEnd(async () => {
    await stop()
    rmSync(folder, { recursive: true, force: true })
  })
  return { url: url.href, start, stop }
}
