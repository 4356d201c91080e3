import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { clusterFolder } from '../../src/standalone/embedded/account.ts'
import { type Embedded, startEmbedded } from '../../src/standalone/embedded.ts'
import { StartError } from '../../src/start-error.ts'
import { atEnd, freshFolder, within } from '../support/kit.ts'

async function start(dataDir: string): Promise<Embedded> {
  const server = await startEmbedded(dataDir, (_, work) => work())
  atEnd(() => server.stop())
  return server
}

/** A used cluster, for tests that need its files only. */
const dataDir = freshFolder()
const cluster = join(dataDir, 'postgres')

test('the first start makes a database, and the second finds its data', async () => {
  const first = await start(dataDir)
  await within(first.url, (client) => client.query('CREATE TABLE kept AS SELECT 1 AS a'))
  await first.stop()
  await first.ended
  const second = await start(dataDir)
  const { rows } = await within(second.url, (client) => client.query("SELECT a, lower('ÄÖ') AS folded FROM kept"))
  expect(rows).toEqual([{ a: 1, folded: 'äö' }])
  await second.stop()
  expect(existsSync(join(cluster, 'postmaster.pid'))).toBe(false)
})

test('a wrong password is refused, and only the owner may read the right one', async () => {
  const server = await start(dataDir)
  const guess = new URL(server.url)
  guess.password = 'guessed'
  await expect(within(guess.href, async () => {})).rejects.toMatchObject({ code: '28P01' })
  expect(statSync(join(dataDir, 'postgres-password')).mode & 0o777).toBe(0o600)
  await server.stop()
})

/** The address of the server's end of a connection; null for a socket in the file system. */
const addressOf = async (url: string) => {
  const { rows } = await within(url, (client) => client.query<{ at: string | null }>('SELECT inet_server_addr() AS at'))
  return rows[0]?.at
}

test('clients connect through a socket beside the data, and through TCP too', async () => {
  const server = await start(dataDir)
  const byTcp = new URL(server.url)
  byTcp.searchParams.delete('host')
  expect([await addressOf(server.url), await addressOf(byTcp.href)]).toEqual([null, '127.0.0.1'])
  await server.stop()
})

test('the socket of a killed server is removed', async () => {
  const left = join(cluster, '.s.PGSQL.1')
  writeFileSync(left, '')
  const server = await start(dataDir)
  expect(existsSync(left)).toBe(false)
  await server.stop()
})

test('with a path that is too long for a socket, clients connect through TCP', async () => {
  const long = join(freshFolder(), 'x'.repeat(110))
  mkdirSync(long)
  const server = await start(long)
  expect(await addressOf(server.url)).toBe('127.0.0.1')
  await server.stop()
})

test('what a start left that was killed while it made its database is removed', async () => {
  const folder = freshFolder()
  mkdirSync(join(folder, 'postgres.unfinished-abc', 'cluster', 'base'), { recursive: true })
  await (await start(folder)).stop()
  expect(readdirSync(folder).sort()).toEqual(['postgres', 'postgres-password', 'postgres.log'])
})

test('an incomplete cluster is refused and left as it is', async () => {
  const folder = freshFolder()
  mkdirSync(join(folder, 'postgres', 'base'), { recursive: true })
  writeFileSync(join(folder, 'postgres', 'PG_VERSION'), '18\n')
  await expect(start(folder)).rejects.toThrow(/not a whole PostgreSQL data folder/)
  expect(readdirSync(join(folder, 'postgres')).sort()).toEqual(['PG_VERSION', 'base'])
})

test.each(['17', '99'])('a cluster of PostgreSQL %s is refused and left as it is', async (version) => {
  const file = join(cluster, 'PG_VERSION')
  const own = readFileSync(file)
  writeFileSync(file, `${version}\n`)
  await expect(start(dataDir)).rejects.toThrow(`was made by PostgreSQL ${version}`)
  expect(readFileSync(file, 'utf8')).toBe(`${version}\n`)
  writeFileSync(file, own)
})

test('a cluster without its password file gets no other password', async () => {
  const file = join(dataDir, 'postgres-password')
  renameSync(file, `${file}.away`)
  await expect(start(dataDir)).rejects.toThrow(/postgres-password is missing/)
  expect(existsSync(file)).toBe(false)
  renameSync(`${file}.away`, file)
})

test('a wrong password file is reported, and the server does not stay', async () => {
  const file = join(dataDir, 'postgres-password')
  const own = readFileSync(file)
  writeFileSync(file, 'wrong')
  await expect(start(dataDir)).rejects.toThrow(/password kept in DATA_DIR/)
  expect(existsSync(join(cluster, 'postmaster.pid'))).toBe(false)
  writeFileSync(file, own)
})

test('a frozen server of a killed start is ended, and its data is found', async () => {
  const frozen = await start(dataDir)
  const pids = await within(frozen.url, async (client) => {
    await client.query('CREATE TABLE thawed AS SELECT 2 AS a')
    // The connection that asks is left out, and so are workers that come and go.
    const { rows } = await client.query<{ pid: number }>(
      "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type <> 'autovacuum worker'",
    )
    return rows.map(({ pid }) => pid)
  })
  const postmaster = Number.parseInt(readFileSync(join(cluster, 'postmaster.pid'), 'utf8'), 10)
  for (const pid of [postmaster, ...pids]) process.kill(pid, 'SIGSTOP')
  const next = await start(dataDir)
  const { rows } = await within(next.url, (client) => client.query('SELECT a FROM thawed'))
  expect(rows).toEqual([{ a: 2 }])
  await frozen.ended
  await next.stop()
})

test('another program that has the process id of a dead server is not killed', async () => {
  const file = join(cluster, 'postmaster.pid')
  writeFileSync(file, `${process.ppid}\n${cluster}\n1\n1\n\n127.0.0.1\n`)
  await expect(start(dataDir)).rejects.toThrow(new RegExp(`process ${process.ppid} .*another program`))
  rmSync(file)
})

test('an error of PostgreSQL itself is reported', async () => {
  const file = join(cluster, 'postgresql.conf')
  const own = readFileSync(file)
  writeFileSync(file, 'no_such_setting = 1\n')
  const failure = start(dataDir)
  await expect(failure).rejects.toThrow(StartError)
  await expect(failure).rejects.toThrow(/no_such_setting/)
  writeFileSync(file, own)
})

test("below a folder that PostgreSQL's user may not enter, root's data is elsewhere and found again", async () => {
  const closed = freshFolder()
  chmodSync(closed, 0o700)
  const folder = join(closed, 'data')
  mkdirSync(folder)
  const first = await start(folder)
  // The server of an ordinary user runs as that user.
  const isRoot = process.getuid?.() === 0
  if (isRoot) atEnd(() => rmSync(dirname(clusterFolder(folder)), { recursive: true }))
  expect(first.folder.startsWith(isRoot ? '/var/lib/gatewright/' : folder)).toBe(true)
  await first.stop()
  const second = await start(folder)
  expect(second.folder).toBe(first.folder)
  await second.stop()
  expect(statSync(closed).mode & 0o777).toBe(0o700)
})
