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
import { clusterFolder } from '../../src/db/embedded/account.ts'
import { type Embedded, startEmbedded } from '../../src/db/embedded.ts'
import { StartError } from '../../src/start-error.ts'
import { atEnd } from '../support/at-end.ts'
import { freshFolder } from '../support/folder.ts'
import { within } from '../support/template.ts'

async function start(dataDir: string): Promise<Embedded> {
  const server = await startEmbedded(dataDir, (_, work) => work())
  atEnd(() => server.stop())
  return server
}

/** One cluster that has been used, for the tests that need no more than its files. */
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

test('only whoever knows the password, which only the owner may read, gets in', async () => {
  const server = await start(dataDir)
  const stranger = new URL(server.url)
  stranger.password = 'guessed'
  await expect(within(stranger.href, async () => {})).rejects.toMatchObject({ code: '28P01' })
  expect(statSync(join(dataDir, 'postgres-password')).mode & 0o777).toBe(0o600)
  await server.stop()
})

/** How a connection came in: null by a socket in the file system. */
const addressOf = async (url: string) => {
  const { rows } = await within(url, (client) => client.query<{ at: string | null }>('SELECT inet_server_addr() AS at'))
  return rows[0]?.at
}

test('statements come by a socket beside the data, and by TCP too', async () => {
  const server = await start(dataDir)
  const byTcp = new URL(server.url)
  byTcp.searchParams.delete('host')
  expect([await addressOf(server.url), await addressOf(byTcp.href)]).toEqual([null, '127.0.0.1'])
  await server.stop()
})

test('the socket that a killed server left is not kept', async () => {
  const left = join(cluster, '.s.PGSQL.1')
  writeFileSync(left, '')
  const server = await start(dataDir)
  expect(existsSync(left)).toBe(false)
  await server.stop()
})

test('below a path that is too long for a socket they come by TCP alone', async () => {
  const long = join(freshFolder(), 'x'.repeat(110))
  mkdirSync(long)
  const server = await start(long)
  expect(await addressOf(server.url)).toBe('127.0.0.1')
  await server.stop()
})

test('what a start that was killed while making its database has left is removed', async () => {
  const folder = freshFolder()
  mkdirSync(join(folder, 'postgres.unfinished-abc', 'cluster', 'base'), { recursive: true })
  await (await start(folder)).stop()
  expect(readdirSync(folder).sort()).toEqual(['postgres', 'postgres-password', 'postgres.log'])
})

test('a folder that is no whole cluster is refused and left as it is', async () => {
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

test('a cluster whose password is lost is not given another', async () => {
  const file = join(dataDir, 'postgres-password')
  renameSync(file, `${file}.away`)
  await expect(start(dataDir)).rejects.toThrow(/postgres-password is missing/)
  expect(existsSync(file)).toBe(false)
  renameSync(`${file}.away`, file)
})

test('a wrong password is said to be wrong, and the server does not stay', async () => {
  const file = join(dataDir, 'postgres-password')
  const own = readFileSync(file)
  writeFileSync(file, 'wrong')
  await expect(start(dataDir)).rejects.toThrow(/password kept in DATA_DIR/)
  expect(existsSync(join(cluster, 'postmaster.pid'))).toBe(false)
  writeFileSync(file, own)
})

test('the number of a dead server that another program has now is not killed', async () => {
  const file = join(cluster, 'postmaster.pid')
  writeFileSync(file, `${process.ppid}\n${cluster}\n1\n1\n\n127.0.0.1\n`)
  await expect(start(dataDir)).rejects.toThrow(new RegExp(`process ${process.ppid} .*another program`))
  rmSync(file)
})

test('what PostgreSQL itself complains about is told', async () => {
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
  // An ordinary user's own server may go wherever that user may.
  const isRoot = process.getuid?.() === 0
  if (isRoot) atEnd(() => rmSync(dirname(clusterFolder(folder)), { recursive: true }))
  expect(first.folder.startsWith(isRoot ? '/var/lib/gatewright/' : folder)).toBe(true)
  await first.stop()
  const second = await start(folder)
  expect(second.folder).toBe(first.folder)
  await second.stop()
  expect(statSync(closed).mode & 0o777).toBe(0o700)
})
