import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'

export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent'

/** The settings, frozen. README has the table; `readConfig` is the only reader of the environment. */
export type Config = {
  readonly port: number
  readonly host: string
  /** Absolute. Where the embedded database, its secret key and the first token live. */
  readonly dataDir: string
  /** null: PostgreSQL embedded in `dataDir`. */
  readonly databaseUrl: string | null
  /** null: the queue runs on PostgreSQL. */
  readonly redisUrl: string | null
  /** null: made at first start and kept in `dataDir`. */
  readonly secretKey: string | null
  readonly bootstrapToken: string | null
  readonly logLevel: LogLevel
  readonly workerConcurrency: number
  readonly tokenMaxDays: number
  readonly runSecretsHours: number
  readonly applyWaitMs: number
}

/** What a program needs that asks a running Gatewright for something. */
export type ClientConfig = { readonly url: string; readonly token: string | null; readonly dataDir: string }

/** Every fault of the environment, one line each. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  constructor(faults: string[]) {
    super(`The settings are not valid:\n${faults.map((fault) => `  ${fault}`).join('\n')}`)
  }
}

type Environment = Readonly<Record<string, string | undefined>>

const logLevels: readonly LogLevel[] = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']

/**
 * @param env `process.env`, or a test's own; an empty value counts as absent
 * @param fallback what holds when the environment does not say; whether there must be a database's URL
 * @throws {ConfigError} listing every fault at once
 */
export function readConfig(
  env: Environment = process.env,
  { needsDatabase = false, ...fallback }: { logLevel?: LogLevel; needsDatabase?: boolean } = {},
): Config {
  const faults: string[] = []
  const text = (name: string): string | null => env[name]?.trim() || null

  const secret = (name: string): string | null => {
    const file = text(`${name}_FILE`)
    if (file === null) return text(name)
    if (text(name) !== null) faults.push(`${name} and ${name}_FILE are both set: set one.`)
    try {
      const value = readFileSync(file, 'utf8').trim()
      // An empty file is a secret that was not written, not a wish for the default.
      if (value === '') faults.push(`${name}_FILE: ${file} is empty.`)
      return value || null
    } catch (error) {
      faults.push(`${name}_FILE: ${file} cannot be read (${(error as NodeJS.ErrnoException).code ?? error}).`)
      return null
    }
  }

  const integer = (name: string, fallback: number, min: number, max: number): number => {
    const value = text(name)
    if (value === null) return fallback
    const number = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN
    if (number >= min && number <= max) return number
    faults.push(`${name} is ${JSON.stringify(value)}: it takes a whole number from ${min} to ${max}.`)
    return fallback
  }

  const url = (name: string, schemes: string[]): string | null => {
    const value = secret(name)
    if (value === null) return null
    if (URL.canParse(value) && schemes.includes(new URL(value).protocol)) return value
    // The value may hold a password: it is not repeated.
    faults.push(`${name} is not a URL that starts with ${schemes.map((scheme) => `${scheme}//`).join(' or ')}.`)
    return null
  }

  const minimum = (name: string, value: string | null, length: number): string | null => {
    if (value !== null && value.length < length)
      faults.push(`${name} is too short: it takes ${length} characters or more.`)
    return value
  }

  const fallbackLevel = fallback.logLevel ?? 'info'
  const level = text('LOG_LEVEL') ?? fallbackLevel
  const logLevel = logLevels.find((known) => known === level)
  if (logLevel === undefined)
    faults.push(`LOG_LEVEL is ${JSON.stringify(level)}: it takes one of ${logLevels.join(', ')}.`)

  const config: Config = {
    port: integer('PORT', 9000, 1, 65535),
    host: text('HOST') ?? '127.0.0.1',
    dataDir: resolve(text('DATA_DIR') ?? '.data'),
    databaseUrl: url('DATABASE_URL', ['postgresql:', 'postgres:']),
    redisUrl: url('REDIS_URL', ['redis:', 'rediss:']),
    secretKey: minimum('SECRET_KEY', secret('SECRET_KEY'), 32),
    bootstrapToken: minimum('BOOTSTRAP_TOKEN', secret('BOOTSTRAP_TOKEN'), 20),
    logLevel: logLevel ?? fallbackLevel,
    workerConcurrency: integer('WORKER_CONCURRENCY', Math.min(16, 8 * availableParallelism()), 1, 64),
    tokenMaxDays: integer('TOKEN_MAX_DAYS', 365, 1, 36_500),
    runSecretsHours: integer('RUN_SECRETS_HOURS', 24, 1, 8_760),
    applyWaitMs: integer('APPLY_WAIT_MS', 10_000, 100, 120_000),
  }
  if (needsDatabase && text('DATABASE_URL') === null && text('DATABASE_URL_FILE') === null)
    faults.push('DATABASE_URL is required, and SECRET_KEY with it; npm start brings its own.')
  if (config.databaseUrl !== null && config.secretKey === null) {
    faults.push('SECRET_KEY is required when DATABASE_URL is set: secrets in that database are sealed under it.')
  }
  if (faults.length > 0) throw new ConfigError(faults)
  return Object.freeze(config)
}

/**
 * The environment of a child process that is to work under these settings, what was found out at start included.
 * A setting that came as `<NAME>_FILE` goes on as a value.
 */
export function environmentFor(config: Config, env: Environment = process.env): Record<string, string | undefined> {
  const settings: Record<string, string | number | null> = {
    PORT: config.port,
    HOST: config.host,
    DATA_DIR: config.dataDir,
    DATABASE_URL: config.databaseUrl,
    REDIS_URL: config.redisUrl,
    SECRET_KEY: config.secretKey,
    BOOTSTRAP_TOKEN: config.bootstrapToken,
    LOG_LEVEL: config.logLevel,
    WORKER_CONCURRENCY: config.workerConcurrency,
    TOKEN_MAX_DAYS: config.tokenMaxDays,
    RUN_SECRETS_HOURS: config.runSecretsHours,
    APPLY_WAIT_MS: config.applyWaitMs,
  }
  const ours = Object.entries(settings).flatMap(([name, value]) => [
    [`${name}_FILE`, undefined],
    [name, value?.toString()],
  ])
  return { ...env, ...Object.fromEntries(ours) }
}

export type ServiceConfig = Config & { readonly databaseUrl: string; readonly secretKey: string }

/** For a process that brings no database of its own. @throws {ConfigError} listing every fault at once */
export function readServiceConfig(env: Environment = process.env): ServiceConfig {
  const config = readConfig(env, { needsDatabase: true })
  const { databaseUrl, secretKey } = config
  if (databaseUrl === null || secretKey === null) throw new Error('a fault of the settings was not told')
  return Object.freeze({ ...config, databaseUrl, secretKey })
}

/** @throws {ConfigError} listing every fault at once */
export function readClientConfig(env: Environment = process.env): ClientConfig {
  const { host, port, dataDir } = readConfig({ PORT: env.PORT, HOST: env.HOST, DATA_DIR: env.DATA_DIR })
  const given = env.GATEWRIGHT_URL?.trim() || `http://${host.includes(':') ? `[${host}]` : host}:${port}`
  if (!URL.canParse(given) || !/^https?:$/.test(new URL(given).protocol))
    throw new ConfigError([
      `GATEWRIGHT_URL is ${JSON.stringify(given)}: it takes a URL that starts with http:// or https://.`,
    ])
  return { url: given, token: env.GATEWRIGHT_TOKEN?.trim() || null, dataDir }
}
