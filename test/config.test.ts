import { isAbsolute, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ConfigError, environmentFor, readClientConfig, readConfig } from '../src/config.ts'
import { freshFolder, writerTo } from './support/folder.ts'

const folder = freshFolder()
const file = writerTo(folder)

/** The lines of the ConfigError; @throws when there is none. */
function errorsOf(env: Record<string, string>, read: (env: Record<string, string>) => unknown = readConfig): string[] {
  try {
    read(env)
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

test('an empty environment is valid', () => {
  const config = readConfig({})
  expect(config).toMatchObject({
    port: 9000,
    host: '127.0.0.1',
    databaseUrl: null,
    directDatabaseUrl: null,
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

test('every error is reported at once', () => {
  const errors = errorsOf({
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
  expect(errors.map((error) => error.split(' ')[0]).sort()).toEqual(named.sort())
})

describe('a number', () => {
  test.each(['1', '65535', ' 8080 '])('is accepted: %j', (value) => {
    expect(readConfig({ PORT: value }).port).toBe(Number(value))
  })

  test.each(['0', '65536', '-1', '80.5', '8e3', '0x50', '80 81', '９０００', '99999999999999999999'])(
    'is refused: %j',
    (value) => {
      expect(errorsOf({ PORT: value })).toEqual([
        `PORT is ${JSON.stringify(value)}: it takes a whole number from 1 to 65535.`,
      ])
    },
  )
})

test('traces take what this version can send', () => {
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_TRACES_SAMPLER: 'always',
    OTEL_TRACES_SAMPLER_ARG: '1.5',
  }
  expect(errorsOf(env)).toEqual([
    'OTEL_EXPORTER_OTLP_ENDPOINT is not a URL that starts with http:// or https://.',
    'OTEL_EXPORTER_OTLP_PROTOCOL is "grpc": it takes http/protobuf.',
    'OTEL_TRACES_SAMPLER is "always": it takes always_on, always_off, traceidratio, parentbased_always_on, parentbased_always_off, parentbased_traceidratio.',
    'OTEL_TRACES_SAMPLER_ARG is "1.5": it takes a number from 0 to 1, such as 0.05.',
  ])
  expect(readConfig({ OTEL_TRACES_SAMPLER_ARG: '.25' }).otelTracesSamplerArg).toBe(0.25)
})

describe('a secret', () => {
  test('comes from a file, without its last line break', () => {
    expect(readConfig({ SECRET_KEY_FILE: file('key', `${key}\n`) }).secretKey).toBe(key)
  })

  test.each([
    ['DATABASE_URL', 'databaseUrl', 'postgresql://db/gatewright'],
    ['REDIS_URL', 'redisUrl', 'rediss://cache:6379/1'],
    ['BOOTSTRAP_TOKEN', 'bootstrapToken', 't'.repeat(20)],
  ] as const)('%s has a _FILE as well', (name, field, value) => {
    const env = { SECRET_KEY: key, [`${name}_FILE`]: file(name, `${value}\r\n`) }
    expect(readConfig(env)[field]).toBe(value)
  })

  test('in a file that does not exist is an error, with the reason', () => {
    const path = join(folder, 'missing')
    expect(errorsOf({ SECRET_KEY_FILE: path })).toEqual([`SECRET_KEY_FILE: ${path} cannot be read (ENOENT).`])
  })

  test('in an empty file is an error', () => {
    const path = file('empty', '\n')
    expect(errorsOf({ SECRET_KEY_FILE: path })).toEqual([`SECRET_KEY_FILE: ${path} is empty.`])
  })

  test('set both ways is an error', () => {
    expect(errorsOf({ SECRET_KEY: key, SECRET_KEY_FILE: file('both', key) })).toEqual([
      'SECRET_KEY and SECRET_KEY_FILE are both set: set one.',
    ])
  })

  test('is never repeated in an error', () => {
    const errors = errorsOf({
      SECRET_KEY: 'marker-one',
      BOOTSTRAP_TOKEN: 'marker-two',
      DATABASE_URL: 'mysql://root:marker-three@db/x',
      REDIS_URL_FILE: file('redis', 'http://:marker-four@cache'),
    })
    expect(errors).toHaveLength(4)
    expect(errors.join('\n')).not.toContain('marker')
  })
})

describe('DATABASE_URL', () => {
  test('requires SECRET_KEY, because only the embedded database comes with one', () => {
    expect(errorsOf({ DATABASE_URL: 'postgresql://db/gatewright' })).toEqual([
      'SECRET_KEY is required when DATABASE_URL is set: secrets in that database are sealed under it.',
    ])
  })

  test('is required beside the way around its pooler', () => {
    const DIRECT_DATABASE_URL = 'postgresql://db/gatewright'
    expect(errorsOf({ DIRECT_DATABASE_URL })).toEqual([
      'DATABASE_URL is required when DIRECT_DATABASE_URL is set: that one is the way around its pooler.',
    ])
    const env = { DATABASE_URL: 'postgresql://pooler:6432/gatewright', DIRECT_DATABASE_URL, SECRET_KEY: key }
    expect(readConfig(env)).toMatchObject({ directDatabaseUrl: DIRECT_DATABASE_URL })
  })

  test('is checked also when another setting is wrong', () => {
    const errors = errorsOf({ DATABASE_URL: 'postgresql://db/gatewright', PORT: 'x' })
    expect(errors.map((error) => error.split(' ')[0])).toEqual(['SECRET_KEY', 'PORT'])
  })

  test.each([
    'postgres://u:p@db/x',
    'postgresql://db:5433/x?sslmode=require',
    'postgresql:///x?host=%2Frun%2Fpostgresql',
  ])('may be %s', (url) => {
    expect(readConfig({ DATABASE_URL: url, SECRET_KEY: key }).databaseUrl).toBe(url)
  })
})

test("a child process gets every setting as a value, and the parent's other variables", () => {
  const config = readConfig({ SECRET_KEY_FILE: file('child', key), DATA_DIR: folder, RUN_SECRETS_HOURS: '7' })
  const env = environmentFor(config, { SECRET_KEY_FILE: '/gone', PATH: '/bin' })
  expect(env).toMatchObject({ SECRET_KEY: key, RUN_SECRETS_HOURS: '7', DATA_DIR: folder, PATH: '/bin' })
  expect(readConfig(env)).toEqual(config)
})

test('issuers that may have private addresses are URLs, in small letters', () => {
  const { privateIssuers } = readConfig({ PRIVATE_ISSUERS: 'https://ci.corp.internal/Acme, http://localhost:8080' })
  expect(privateIssuers).toEqual(['https://ci.corp.internal/acme', 'http://localhost:8080'])
  expect(errorsOf({ PRIVATE_ISSUERS: 'ci.corp.internal' })).toEqual([
    'PRIVATE_ISSUERS is "ci.corp.internal": it takes URLs such as https://ci.corp.internal, with commas between them.',
  ])
})

describe('a client', () => {
  test.each([
    [{}, 'http://127.0.0.1:9000'],
    [{ HOST: '::1', PORT: '80' }, 'http://[::1]:80'],
    [{ HOST: 'ignored.example', GATEWRIGHT_URL: 'https://ids.example.com/' }, 'https://ids.example.com/'],
  ])('with %j calls %s', (env, url) => {
    expect(readClientConfig(env)).toMatchObject({ url, token: null })
  })

  test('needs none of the settings of the service', () => {
    expect(readClientConfig({ DATABASE_URL: 'x', SECRET_KEY: 'short', GATEWRIGHT_TOKEN: ' t ' }).token).toBe('t')
  })

  test('gets every error at once', () => {
    expect(errorsOf({ PORT: '0', GATEWRIGHT_URL: 'ftp://x' }, readClientConfig)).toEqual([
      'PORT is "0": it takes a whole number from 1 to 65535.',
      'GATEWRIGHT_URL is "ftp://x": it takes a URL that starts with http:// or https://.',
    ])
  })

  test.each(['https://ada:hunter2@x.example/', 'ftp://ada:hunter2@x.example', 'ftp://hunter2@x.example'])(
    'takes no user or password in its URL, and does not print it: %s',
    (url) => {
      const errors = errorsOf({ GATEWRIGHT_URL: url }, readClientConfig)
      expect(errors.length).toBeGreaterThan(0)
      for (const error of errors) expect(error).toMatch(/^GATEWRIGHT_URL /)
      expect(errors.join()).not.toContain('hunter2')
    },
  )
})
