import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { freePort, freshFolder, needs, type Running, run } from '../support/kit.ts'

/** The user as which `npm start` runs. An ordinary user stays itself; the tests of root need root, as CI is. */

const own = process.getuid?.() ?? 0
const isRoot = own === 0

async function start(dataDir: string, port?: number): Promise<Running> {
  const env = { DATA_DIR: dataDir, PORT: String(port ?? (await freePort())), LOG_LEVEL: 'info' }
  const server = run('src/standalone/main.ts', { env })
  await server.line(/Ctrl-C stops everything/)
  return server
}

/** The effective user of a process, by the kernel. */
const userOf = (pid: number) => Number(/^Uid:\s+\d+\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
const groupsOf = (pid: number) => /^Groups:[ \t]*(.*?)[ \t]*$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]

async function users(server: Running, dataDir: string): Promise<number[]> {
  const [, worker] = await server.line(/"pid":(\d+).*"msg":"worker ready"/)
  const postgres = Number.parseInt(readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8'), 10)
  return [server.pid, Number(worker), postgres].map(userOf)
}

test('API, worker and PostgreSQL run as one ordinary user, also at the next start', async () => {
  const dataDir = join(freshFolder(), 'data')
  const first = await start(dataDir)
  const [user = 0, ...others] = await users(first, dataDir)
  expect(others).toEqual([user, user])
  expect(user).toBe(isRoot ? statSync(dataDir).uid : own)
  expect(user).not.toBe(0)
  if (isRoot) expect(groupsOf(first.pid)).toBe(String(statSync(dataDir).gid))
  expect(statSync(dataDir).mode & 0o777).toBe(0o700)
  expect(first.output()).not.toContain('User ')
  await first.stop()
  const second = await start(dataDir)
  expect(await users(second, dataDir)).toEqual([user, user, user])
  await second.stop()
})

test('a folder that another user owns makes it run as that user', async () => {
  const dataDir = join(freshFolder(), 'data')
  mkdirSync(dataDir)
  const numberOf = (flag: string) => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }))
  const uid = isRoot ? numberOf('-u') : own
  chownSync(dataDir, uid, isRoot ? numberOf('-g') : userInfo().gid)
  const server = await start(dataDir)
  expect(await users(server, dataDir)).toEqual([uid, uid, uid])
  await server.stop()
})

describe.runIf(needs('root'))('as root', () => {
  test('where the files do not allow it, it stays root and says why', async () => {
    const closed = freshFolder()
    chmodSync(closed, 0o700)
    const dataDir = join(closed, 'data')
    const server = await start(dataDir)
    expect(userOf(server.pid)).toBe(0)
    expect(server.output()).toMatch(
      /\n {2}User {7}root, because user \d+ cannot enter a folder above .*data: choose a DATA_DIR/,
    )
    expect(statSync(dataDir).uid).toBe(0)
    await server.stop()

    const again = await start(dataDir)
    expect(again.output()).toContain(`root, because root owns ${dataDir} (docs/operations.md`)
    await again.stop()
  })

  test('a folder of a user without a name is not touched', async () => {
    const dataDir = join(freshFolder(), 'data')
    mkdirSync(dataDir)
    chownSync(dataDir, 54_321, 54_321)
    const server = await start(dataDir)
    expect(server.output()).toContain(`root, because user 54321, who owns ${dataDir}, has no name on this system`)
    await server.stop()
  })

  test('a port of root keeps it root', async () => {
    const dataDir = join(freshFolder(), 'data')
    const port = 997
    const server = await start(dataDir, port)
    expect(server.output()).toContain(`root, because only root may use port ${port}: choose a PORT of 1024 or more`)
    expect(existsSync(join(dataDir, 'admin-token'))).toBe(true)
    await server.stop()
  })
})
