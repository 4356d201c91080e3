import { writeFileSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ConfigError, readConfig } from '../src/config.ts'
import { freshFolder } from './support/folder.ts'

const folder = freshFolder()

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

/** What the refusal says, line by line; fails when it is no refusal. */
function faultsOf(env: Record<string, string>): string[] {
  try {
    readConfig(env)
  } catch (error) {
    if (error instanceof ConfigError)
      return error.message
        .split('\n')
        .slice(1)
        .map((line) => line.trim())
    throw error
  }
  throw new Error('the settings were accepted')
}

const key = 'k'.repeat(32)

test('an empty environment is a working one', () => {
  const config = readConfig({})
  expect(config).toMatchObject({
    port: 9000,
    host: '127.0.0.1',
    databaseUrl: null,
    redisUrl: null,
    secretKey: null,
    logLevel: 'info',
  })
  expect(isAbsolute(config.dataDir)).toBe(true)
  expect(Object.isFrozen(config)).toBe(true)
})

test('an empty value and white space count as absent', () => {
  expect(readConfig({ PORT: '', SECRET_KEY: '  ', DATABASE_URL: '', REDIS_URL: '\n' })).toEqual(readConfig({}))
})

test('every fault is told at once', () => {
  const faults = faultsOf({
    PORT: '0',
    WORKER_CONCURRENCY: 'many',
    LOG_LEVEL: 'loud',
    DATABASE_URL: 'mysql://db/x',
    REDIS_URL: 'localhost',
    SECRET_KEY: 'short',
    BOOTSTRAP_TOKEN: 'short',
  })
  const named = [
    'PORT',
    'WORKER_CONCURRENCY',
    'LOG_LEVEL',
    'DATABASE_URL',
    'REDIS_URL',
    'SECRET_KEY',
    'BOOTSTRAP_TOKEN',
  ]
  expect(faults.map((fault) => fault.split(' ')[0]).sort()).toEqual(named.sort())
})

describe('a number', () => {
  test.each(['1', '65535', ' 8080 '])('is taken: %j', (value) => {
    expect(readConfig({ PORT: value }).port).toBe(Number(value))
  })

  test.each(['0', '65536', '-1', '80.5', '8e3', '0x50', '80 81', '９０００', '99999999999999999999'])(
    'is refused: %j',
    (value) => {
      expect(faultsOf({ PORT: value })).toEqual([
        `PORT is ${JSON.stringify(value)}: it takes a whole number from 1 to 65535.`,
      ])
    },
  )
})

describe('a secret', () => {
  test('comes from a file, without its last line break', () => {
    expect(readConfig({ SECRET_KEY_FILE: file('key', `${key}\n`) }).secretKey).toBe(key)
  })

  test.each([
    ['DATABASE_URL', 'databaseUrl', 'postgresql://db/gatewright'],
    ['REDIS_URL', 'redisUrl', 'rediss://cache:6379/1'],
    ['BOOTSTRAP_TOKEN', 'bootstrapToken', 't'.repeat(20)],
  ] as const)('%s has a _FILE as well', (name, member, value) => {
    const env = { SECRET_KEY: key, [`${name}_FILE`]: file(name, `${value}\r\n`) }
    expect(readConfig(env)[member]).toBe(value)
  })

  test('in a file that is not there is a fault, with the reason', () => {
    const path = join(folder, 'missing')
    expect(faultsOf({ SECRET_KEY_FILE: path })).toEqual([`SECRET_KEY_FILE: ${path} cannot be read (ENOENT).`])
  })

  test('in a file that is empty is a fault', () => {
    const path = file('empty', '\n')
    expect(faultsOf({ SECRET_KEY_FILE: path })).toEqual([`SECRET_KEY_FILE: ${path} is empty.`])
  })

  test('given both ways is a fault', () => {
    expect(faultsOf({ SECRET_KEY: key, SECRET_KEY_FILE: file('both', key) })).toEqual([
      'SECRET_KEY and SECRET_KEY_FILE are both set: set one.',
    ])
  })

  test('is never repeated in a fault', () => {
    const faults = faultsOf({
      SECRET_KEY: 'canary-one',
      BOOTSTRAP_TOKEN: 'canary-two',
      DATABASE_URL: 'mysql://root:canary-three@db/x',
      REDIS_URL_FILE: file('redis', 'http://:canary-four@cache'),
    })
    expect(faults).toHaveLength(4)
    expect(faults.join('\n')).not.toContain('canary')
  })
})

describe('a database of the operator', () => {
  test('needs his secret key, for the embedded one keeps its own', () => {
    expect(faultsOf({ DATABASE_URL: 'postgresql://db/gatewright' })).toEqual([
      'SECRET_KEY is required when DATABASE_URL is set: secrets in that database are sealed under it.',
    ])
  })

  test.each(['postgres://u:p@db/x', 'postgresql://db:5433/x?sslmode=require'])('may be %s', (url) => {
    expect(readConfig({ DATABASE_URL: url, SECRET_KEY: key }).databaseUrl).toBe(url)
  })
})
