import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { connect } from '../../src/db/client.ts'
import { atEnd, freePort, freshFolder, isAlive, type Running, rows, run, sql, until, within } from '../support/kit.ts'

/** The tests run in order on one installation: each starts with the state that the last one left. */
const top = freshFolder()
const dataDir = join(top, 'data')
let port = 0

beforeAll(async () => {
  port = await freePort()
})

atEnd(async () => {
  const pid = postgresPid()
  if (pid !== null && isAlive(pid)) process.kill(pid, 'SIGQUIT')
  await until('PostgreSQL to end', () => pid === null || !runs(pid))
})

const start = (env: Record<string, string> = {}) =>
  run('src/standalone/main.ts', { env: { DATA_DIR: dataDir, PORT: String(port), LOG_LEVEL: 'info', ...env } })

const ready = async (server: Running) => {
  await server.line(/Ctrl-C stops everything/)
  return server
}

/** Whether a process runs: a zombie has an id, but no command line. */
function runs(pid: number): boolean {
  const commandLine = `/proc/${pid}/cmdline`
  return (
    isAlive(pid) && (!existsSync('/proc/self') || (existsSync(commandLine) && readFileSync(commandLine).length > 0))
  )
}

/** What each thread of a process waits for, by the kernel. */
function threadsOf(pid: number): string {
  const folder = `/proc/${pid}/task`
  const of = (thread: string) =>
    ['comm', 'stat', 'wchan', 'syscall'].map((file) => readFileSync(join(folder, thread, file), 'latin1').trim())
  return existsSync(folder) ? readdirSync(folder).map(of).join('\n') : 'unknown'
}

/** The output of a start that must fail with exit code 1. */
async function refusal(env: Record<string, string> = {}): Promise<string> {
  const server = start(env)
  expect(await server.exited).toEqual({ code: 1, signal: null })
  return server.output()
}

function postgresPid(): number | null {
  const file = join(dataDir, 'postgres', 'postmaster.pid')
  return existsSync(file) ? Number.parseInt(readFileSync(file, 'utf8'), 10) : null
}

const workerPid = async (server: Running) => Number((await server.line(/"pid":(\d+).*"msg":"worker ready"/))[1])

async function put(): Promise<unknown> {
  const answer = await fetch(`http://127.0.0.1:${port}/api/v3/core/transactional/applications/`, {
    method: 'PUT',
    headers: {
      authorization: `Bearer ${readFileSync(join(dataDir, 'admin-token'), 'utf8').trim()}`,
      'content-type': 'application/json',
    },
    body: readFileSync(new URL('../../examples/oauth2.json', import.meta.url)),
  })
  return answer.json()
}

/** The database of the running installation, as its owner may open it. */
function databaseUrl(): string {
  const [, , , postgresPort] = readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8').split('\n')
  const password = readFileSync(join(dataDir, 'postgres-password'), 'utf8').trim()
  return `postgresql://gatewright:${password}@127.0.0.1:${postgresPort}/gatewright`
}

test('the first start prints all addresses, and SIGTERM stops everything', async () => {
  const server = await ready(start())
  const banner = server.output()
  const token = readFileSync(join(dataDir, 'admin-token'), 'utf8').trim()
  for (const part of [
    `http://127.0.0.1:${port}/api/v3/`,
    '/admin/',
    '/-/health/ready/',
    join(dataDir, 'admin-token'),
    'curl -i -X PUT',
  ]) {
    expect(banner).toContain(part)
  }
  expect(banner).not.toContain(token)
  for (const file of ['admin-token', 'secret-key', 'postgres-password'])
    expect(statSync(join(dataDir, file)).mode & 0o777).toBe(0o600)
  expect(await put()).toMatchObject({ applied: true })

  const children = [await workerPid(server), postgresPid() ?? 0]
  expect(children.map(runs)).toEqual([true, true])
  expect(await server.stop({ withinMs: 10_000 })).toEqual({ code: 0, signal: null })
  expect(children.map(runs)).toEqual([false, false])
}, 60_000)

test('a second start finds its data, and a third beside it is refused without harm', async () => {
  const server = await ready(start())
  expect(await put()).toMatchObject({
    applied: true,
    logs: expect.arrayContaining([expect.stringContaining('unchanged')]),
  })
  expect(server.output()).not.toContain(readFileSync(join(dataDir, 'admin-token'), 'utf8').trim())

  const printed = run('src/cli/url.ts', { env: { DATA_DIR: dataDir } })
  expect(await printed.exited).toEqual({ code: 0, signal: null })
  const { db } = connect(printed.output().trim(), { applicationName: 'gatewright-test', max: 1 })
  expect(await db.application.findMany({ select: { slug: true } })).toEqual([{ slug: 'grafana' }])
  // So that the first page names the session that blocks a run, whatever its login is.
  const member = sql`SELECT pg_has_role('gatewright_service', 'pg_read_all_stats', 'member') AS sees`
  expect(await rows(db, member)).toEqual([{ sees: true }])
  await db.$disconnect()

  const other = String(await freePort())
  expect(await refusal({ PORT: other })).toContain(`already runs on ${dataDir} (process ${server.pid})`)
  expect(await refusal({ DATA_DIR: join(top, 'other') })).toContain(`Port ${port} on 127.0.0.1 is taken`)
  expect(existsSync(join(top, 'other', 'postgres'))).toBe(false)
  expect(await put()).toMatchObject({ applied: true })

  // Ctrl-C under npm arrives twice: from the terminal and from npm.
  server.signal('SIGINT')
  await server.line(/Stopping/)
  server.signal('SIGINT')
  expect(await server.exited).toEqual({ code: 0, signal: null })
}, 60_000)

test('a killed worker is started again', async () => {
  const server = await ready(start())
  const first = await workerPid(server)
  process.kill(first, 'SIGKILL')
  await server.line(/The worker ended \(SIGKILL\); it is started again/)
  // The outcome may be unknown at first.
  await until('an apply to go through', async () => ((await put()) as { applied?: boolean }).applied, {
    withinMs: 20_000,
  })
  expect(await server.stop()).toEqual({ code: 0, signal: null })
}, 60_000)

test('what a killed start leaves running is stopped: its worker by itself, its PostgreSQL by the next start', async () => {
  const killed = await ready(start())
  const [worker, postgres] = [await workerPid(killed), postgresPid() ?? 0]
  await killed.kill()
  expect(runs(postgres)).toBe(true)
  await until('the worker without a parent to end', () => !runs(worker), { withinMs: 10_000 }).catch((error) => {
    throw new Error(`${error.message}. Its threads:\n${threadsOf(worker)}`)
  })

  const server = await ready(start())
  expect(runs(postgres)).toBe(false)
  expect(await put()).toMatchObject({ applied: true })
  await server.stop()
}, 60_000)

test('PostgreSQL is stopped, too, when the API cannot go on', async () => {
  const server = await ready(start())
  const [worker, postgres] = [await workerPid(server), postgresPid() ?? 0]
  process.kill(postgres, 'SIGQUIT')
  expect(await server.exited).toEqual({ code: 1, signal: null })
  expect(server.output()).toContain('PostgreSQL has ended')
  expect([worker, postgres].map(runs)).toEqual([false, false])
}, 60_000)

test('a start can be stopped before it is ready', async () => {
  const server = start()
  await server.line(/Starting PostgreSQL/)
  expect(await server.stop({ withinMs: 10_000 })).toEqual({ code: 0, signal: null })
  await until('PostgreSQL to end', () => postgresPid() === null)
}, 60_000)

test('a lost secret key is not replaced by another', async () => {
  const file = join(dataDir, 'secret-key')
  const key = readFileSync(file)
  rmSync(file)
  expect(await refusal()).toContain(`${file} is missing`)
  expect(existsSync(file)).toBe(false)
  writeFileSync(file, key, { mode: 0o600 })
  // Put back by root, but started as root it runs as the owner of its folder.
  const { uid, gid } = statSync(dataDir)
  if (uid !== process.getuid?.()) expect(await refusal()).toContain(`user ${uid} may not; give it to that user`)
  chownSync(file, uid, gid)
})

test.each([
  ['', 'is empty'],
  ['short\n', 'holds 5 characters, and it takes 32 or more'],
])('a damaged secret key is refused, and nothing is started or replaced: %j', async (text, why) => {
  const file = join(dataDir, 'secret-key')
  const key = readFileSync(file)
  writeFileSync(file, text)
  expect(await refusal()).toBe(
    `\n\n${file} ${why}; what is secret in the database beside it is sealed under the key it held: put that back, or set SECRET_KEY; if it is lost, npm run secrets -- forget is the way back.\n`,
  )
  expect(readFileSync(file, 'utf8')).toBe(text)
  expect(postgresPid()).toBe(null)
  writeFileSync(file, key)
})

test('an emptied file of the first token is not in the banner; the installation is as it was', async () => {
  const file = join(dataDir, 'admin-token')
  const token = readFileSync(file)
  writeFileSync(file, '')
  const server = await ready(start())
  expect(server.output()).not.toContain(file)
  writeFileSync(file, token)
  expect(await put()).toMatchObject({ applied: true })
  await server.stop()
}, 60_000)

test('before there is an installation, a damaged key or first token is refused and not used', async () => {
  const fresh = mkdtempSync(join(top, 'fresh-'))
  writeFileSync(join(fresh, 'admin-token'), 'short\n')
  chmodSync(fresh, 0o711)
  writeFileSync(join(fresh, 'secret-key'), '')
  expect(await refusal({ DATA_DIR: fresh })).toContain(
    `\n${join(fresh, 'secret-key')} is empty; remove it, and the next start makes another.\n`,
  )
  rmSync(join(fresh, 'secret-key'))
  expect(await refusal({ DATA_DIR: fresh })).toContain(
    `\n${join(fresh, 'admin-token')} holds 5 characters, and it takes 20 or more; remove it, and the next start makes another.\n`,
  )
  expect(existsSync(join(fresh, 'postgres', 'postmaster.pid'))).toBe(false)
  rmSync(join(fresh, 'admin-token'))
  const server = await ready(start({ DATA_DIR: fresh }))
  expect(readFileSync(join(fresh, 'admin-token'), 'utf8').length).toBeGreaterThan(20)
  await server.stop()
}, 60_000)

test('a database of a newer version is refused, and its server is stopped', async () => {
  const server = await ready(start())
  const later =
    "INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at) VALUES ('x', '', '99990101000000_later', now())"
  await within(databaseUrl(), (client) => client.query(later))
  await server.stop()
  expect(await refusal()).toContain('newer version of Gatewright')
  expect(postgresPid()).toBe(null)
}, 60_000)

test('an unusable DATA_DIR is refused', async () => {
  const file = join(top, 'file')
  writeFileSync(file, '')
  expect(await refusal({ DATA_DIR: file })).toContain(`DATA_DIR ${file} cannot be written (a file is in its place)`)
  expect(await refusal({ DATA_DIR: join(file, 'below') })).toContain('a file is in its place')
  const half = join(top, 'half')
  mkdirSync(join(half, 'postgres', 'base'), { recursive: true })
  expect(await refusal({ DATA_DIR: half })).toContain('not a whole PostgreSQL data folder')
})

test('all wrong settings are reported', async () => {
  const output = await refusal({ PORT: 'x', SECRET_KEY: 'short' })
  expect(output).toContain('PORT is "x"')
  expect(output).toContain('SECRET_KEY is too short')
})
