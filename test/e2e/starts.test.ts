import { readdirSync } from 'node:fs'
import { createServer } from 'node:net'
import { describe, expect, test } from 'vitest'
import { bootstrap } from '../../src/apply/bootstrap.ts'
import { atEnd, freePort, freshDatabase, freshFolder, loadEngine, needs, run } from '../support/kit.ts'
import { freshRedis, ownRedis } from '../support/redis.ts'

/** The API and the worker as separate processes: what the operator can fix is reported in sentences. */

const programs = ['src/server.ts', 'workers/blueprint.ts']
const SECRET_KEY = 'a secret key for tests, 32 or more'

/** The output of a program that must fail to start. */
async function refusal(program: string, env: Record<string, string>): Promise<string> {
  const started = run(program, { env })
  expect(await started.exited).toEqual({ code: 1, signal: null })
  return started.output()
}

describe.each(programs)('%s', (program) => {
  test('reports every error in its settings at once', async () => {
    const env = { PORT: 'x', LOG_LEVEL: 'loud', DATABASE_URL: 'mysql://x', SECRET_KEY: 'short' }
    expect(await refusal(program, env)).toBe(`The settings are not valid:
  LOG_LEVEL is "loud": it takes one of fatal, error, warn, info, debug, trace, silent.
  PORT is "x": it takes a whole number from 1 to 65535.
  DATABASE_URL is not a URL that starts with postgresql:// or postgres://.
  SECRET_KEY is too short: it takes 32 characters or more.
`)
  })

  test.each([{}, { SECRET_KEY }])('reports what it requires beside %j', async (env: Record<string, string>) => {
    expect(await refusal(program, env)).toBe(`The settings are not valid:
  DATABASE_URL is required, and SECRET_KEY with it; npm start brings its own.
`)
  })

  test('reports that the database is away', async () => {
    const DATABASE_URL = `postgresql://127.0.0.1:${await freePort()}/gatewright`
    const env = { DATABASE_URL, SECRET_KEY, PORT: String(await freePort()) }
    expect(await refusal(program, env)).toBe('The database is away. Try again shortly. (ECONNREFUSED)\n')
  })

  test('reports that the database refuses it', async () => {
    const { url } = await freshDatabase()
    const env = { DATABASE_URL: new URL('nowhere', url).href, SECRET_KEY, PORT: String(await freePort()) }
    expect(await refusal(program, env)).toBe(
      'The database of DATABASE_URL refuses: database "nowhere" does not exist.\n',
    )
  })
})

describe('another SECRET_KEY than that of the database', () => {
  const other = 'another secret key for tests, 32 or more'
  const settings = async () => {
    const { url, db } = await freshDatabase()
    await bootstrap(db, await loadEngine(), () => 'a first token for tests')
    return { DATABASE_URL: url, PORT: String(await freePort()) }
  }

  test.each(programs)('%s refuses it in one sentence', async (program) => {
    expect(await refusal(program, { ...(await settings()), SECRET_KEY: other })).toMatch(
      /^SECRET_KEY is not the key of this database \(what it holds was sealed under key .{8}, but SECRET_KEY is .{8}\): .*SECRET_KEY_PREVIOUS\.\n$/,
    )
  })

  test('both start with the previous one beside it; after `secrets rotate` they do without', async () => {
    const env = { ...(await settings()), SECRET_KEY: other }
    const bothKeys = { ...env, SECRET_KEY_PREVIOUS: SECRET_KEY }
    const api = run('src/server.ts', { env: bothKeys })
    await api.line(/"msg":"serving"/)
    const rotation = run('src/cli/secrets.ts', { env: bothKeys, args: ['rotate'] })
    expect(await rotation.exited).toEqual({ code: 0, signal: null })
    expect(rotation.output()).toMatch(
      /certificate_key_pairs\.sealed_key: 1 sealed anew\n[\s\S]*SECRET_KEY_PREVIOUS is no longer needed/,
    )
    await api.stop()
    for (const program of programs) {
      const started = run(program, { env })
      await started.line(/"msg":"(serving|worker ready)"/)
      await started.stop()
    }
    expect(await refusal('src/cli/secrets.ts', { ...env, SECRET_KEY })).toMatch(/^The command is rotate/)
  })
})

test('after `secrets forget`, both start with another SECRET_KEY, and the login of the service suffices for it', async () => {
  const { db, service } = await freshDatabase()
  await bootstrap(db, await loadEngine(), () => 'a first token for tests')
  const DATA_DIR = freshFolder()
  const key = 'another secret key for tests, 32 or more'
  const env = { DATABASE_URL: service.url, SECRET_KEY: key, PORT: String(await freePort()), DATA_DIR }
  const forgetting = run('src/cli/secrets.ts', { env, args: ['forget', '--yes'] })
  expect(await forgetting.exited, forgetting.output()).toEqual({ code: 0, signal: null })
  expect(readdirSync(DATA_DIR)).toEqual(['admin-token'])
  for (const program of programs) {
    const started = run(program, { env })
    await started.line(/"msg":"(serving|worker ready)"/)
    await started.stop()
  }
})

describe.runIf(needs('redis-server')).each(programs)('%s with Redis', (program) => {
  test('logs a warning that Redis has no append-only file, and starts', async () => {
    const { url } = await freshDatabase()
    const PORT = String(await freePort())
    const started = run(program, { env: { DATABASE_URL: url, SECRET_KEY, REDIS_URL: await freshRedis(), PORT } })
    await started.line(/"level":40.*"msg":"Redis keeps no append-only file/)
    await started.line(/"msg":"(serving|worker ready)"/)
    expect(await started.stop()).toEqual({ code: 0, signal: null })
  })

  test('reports that Redis evicts keys', async () => {
    const redis = await ownRedis({ flags: ['--maxmemory-policy', 'allkeys-lru'] })
    const { url } = await freshDatabase()
    const PORT = String(await freePort())
    expect(await refusal(program, { DATABASE_URL: url, SECRET_KEY, REDIS_URL: redis.url, PORT })).toBe(
      'Redis evicts keys (maxmemory-policy allkeys-lru): set it to noeviction, or jobs get lost.\n',
    )
  })
})

test('src/server.ts reports a taken port before it connects to the database', async () => {
  const other = createServer()
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  atEnd(() => void other.close())
  const address = other.address()
  const PORT = String(typeof address === 'object' ? address?.port : '')
  const env = { DATABASE_URL: 'postgresql://127.0.0.1:1/none', SECRET_KEY, PORT }
  expect(await refusal('src/server.ts', env)).toBe(
    `Port ${PORT} on 127.0.0.1 is taken by another program: stop that one, or choose another port with PORT=<number>.\n`,
  )
})
