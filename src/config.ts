import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { resolve } from 'node:path'
import { z } from 'zod'
import { withoutPasswords } from './hidden.ts'
import { requestIdForm } from './ids.ts'
import { RedisUrlError, readRedisUrl } from './redis-url.ts'
import { reasonOf, StartError } from './start-error.ts'

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

/** The URL may hold a password: the message does not repeat it. */
const databaseUrl = z.url({
  protocol: /^(postgresql|postgres)$/,
  error: 'is not a URL that starts with postgresql:// or postgres://.',
})

const webUrl = z.url({ protocol: /^https?$/, error: 'is not a URL that starts with http:// or https://.' })

/** The message of a value that the setting does not take. */
const takes = (what: string) => ({
  error: ({ input }: { input?: unknown }) =>
    input === undefined ? undefined : `is ${withoutPasswords(JSON.stringify(input))}: it takes ${what}`,
})

const oneOf = <const Names extends readonly [string, ...string[]]>(...names: Names) =>
  z.enum(names, takes(`${names.join(', ')}.`))

/** A Redis URL may hold a password, too. */
const redisUrl = z.string().superRefine((text, context) => {
  try {
    readRedisUrl(text)
  } catch (error) {
    if (!(error instanceof RedisUrlError)) throw error
    context.addIssue(error.message)
  }
})

/** A token is sent in a header. An error of it would repeat it. */
export const bearerToken = z
  .string()
  .regex(/^[!-~]+$/, 'holds a character that no token has, such as a blank or a line break.')

const secret = (min: number) => z.string().min(min, `is too short: it takes ${min} characters or more.`)

const integer = (min: number, max: number) =>
  z
    .string()
    .refine(
      (text) => /^\d{1,9}$/.test(text) && Number(text) >= min && Number(text) <= max,
      takes(`a whole number from ${min} to ${max}.`),
    )
    .transform(Number)

/** Words, separated by commas. */
const listOf = (form: RegExp, such: string) =>
  z
    .string()
    .transform((text) =>
      text
        .toLowerCase()
        .split(/[\s,]+/)
        .filter((each) => each !== ''),
    )
    .refine((list) => list.every((each) => form.test(each)), {
      error: ({ input }) => `is ${JSON.stringify(`${input}`)}: it takes ${such}, with commas between them.`,
    })

/** Schemes of apps that users start from a list of applications. */
export const usualLaunchSchemes: readonly string[] = [
  ...['http', 'https', 'ftp', 'sftp', 'ssh', 'rdp', 'vnc', 'mailto', 'tel', 'sip', 'xmpp', 'irc', 'ircs', 'steam'],
  ...['slack', 'msteams', 'zoommtg', 'vscode', 'obsidian', 'notion', 'spotify', 'ms-word', 'ms-excel', 'ms-powerpoint'],
]

/** Characters of the secrets, whether they are set or generated. */
export const minLengths = { secretKey: 32, bootstrapToken: 20 }

/**
 * Names and defaults are those of OpenTelemetry. Its packages read OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES and the other
 * OTEL_EXPORTER_OTLP_* themselves.
 */
const traces = {
  /** Both null: nothing is traced. */
  otelExporterOtlpEndpoint: webUrl.nullable().default(null),
  otelExporterOtlpTracesEndpoint: webUrl.nullable().default(null),
  otelExporterOtlpProtocol: oneOf('http/protobuf').default('http/protobuf'),
  otelSdkDisabled: oneOf('true', 'false').default('false'),
  otelTracesExporter: oneOf('otlp', 'none').default('otlp'),
  otelTracesSampler: oneOf(
    ...(['always_on', 'always_off', 'traceidratio'] as const),
    ...(['parentbased_always_on', 'parentbased_always_off', 'parentbased_traceidratio'] as const),
  ).default('parentbased_always_on'),
  otelTracesSamplerArg: z
    .string()
    .refine(
      (text) => /^(0|1|[01]?\.\d{1,9})$/.test(text) && Number(text) <= 1,
      takes('a number from 0 to 1, such as 0.05.'),
    )
    .transform(Number)
    .default(1),
  /** Milliseconds. */
  otelBspScheduleDelay: integer(1, 600_000).default(5_000),
  otelBspExportTimeout: integer(1, 600_000).default(30_000),
  otelBspMaxQueueSize: integer(1, 1_000_000).default(2_048),
  otelBspMaxExportBatchSize: integer(1, 1_000_000).default(512),
}

/** A setting is the environment variable of its name: `dataDir` is DATA_DIR. A message continues that name. */
const settings = z.object({
  logLevel: z.enum(logLevels, takes(`one of ${logLevels.join(', ')}.`)).default('info'),
  port: integer(1, 65_535).default(9_000),
  host: z.string().default('127.0.0.1'),
  /** The path under which a proxy has the service; none: the root. `paths.ts` puts it in all paths. */
  basePath: z
    .string()
    .regex(/^(\/[\w.~-]{1,50}){0,5}\/?$/, takes('a path such as /iam, of letters, digits and ._~-'))
    .refine((path) => !/\/\.{1,2}(\/|$)/.test(path), 'has . or .. as a part of its path.')
    .transform((path) => path.replace(/\/$/, ''))
    .default(''),
  /** An absolute path: the folder of the embedded database, its secret key and the first token. */
  dataDir: z
    .string()
    .default('.data')
    .transform((path) => resolve(path)),
  /** null: PostgreSQL embedded in `dataDir`. */
  databaseUrl: databaseUrl.nullable().default(null),
  /** null: `databaseUrl` leads to PostgreSQL itself. */
  directDatabaseUrl: databaseUrl.nullable().default(null),
  /** null: the queue runs on PostgreSQL. */
  redisUrl: redisUrl.nullable().default(null),
  /** null: generated at the first start and kept in `dataDir`. */
  secretKey: secret(minLengths.secretKey).nullable().default(null),
  /** Opens what was sealed under the key before this one. */
  secretKeyPrevious: secret(minLengths.secretKey).nullable().default(null),
  bootstrapToken: secret(minLengths.bootstrapToken).nullable().default(null),
  workerConcurrency: integer(1, 64).default(() => Math.min(16, 8 * availableParallelism())),
  tokenMaxDays: integer(1, 36_500).default(365),
  launchSchemes: listOf(
    /^(?!(?:javascript|data|vbscript|file)$)[a-z][a-z\d+.-]*$/,
    'schemes such as https, slack',
  ).default([...usualLaunchSchemes]),
  redirectParentDomains: listOf(/^[a-z\d-]+(\.[a-z\d-]+)*$/, 'domains such as corp.internal').default([]),
  privateIssuers: listOf(/^https?:\/\/[^/]+\S*$/, 'URLs such as https://ci.corp.internal').default([]),
  runSecretsHours: integer(1, 8_760).default(24),
  /** Days that finished runs and audit rows are kept. `delete_old_audit_rows` in PostgreSQL has the same minimum. */
  runDays: integer(1, 36_500).default(90),
  auditDays: integer(30, 36_500).default(400),
  rateLimitRequestsPerSecond: integer(1, 1_000_000).default(2_000),
  /** This limit and the next one count what one user has open in one process at the same time. */
  rateLimitLongAnswers: integer(1, 1_000).default(2),
  rateLimitWaitingRuns: integer(1, 100_000).default(64),
  applyWaitMs: integer(100, 120_000).default(10_000),
  /** Entries that one user may have queued in submissions that are not waited for. */
  queuedEntries: integer(10_000, 100_000_000).default(100_000),
  /** Milliseconds in which an API that stops still serves, while its readiness is 503. */
  drainMs: integer(0, 600_000).default(0),
  /** null: the metrics of an API are on `port`. */
  metricsPort: integer(1, 65_535).nullable().default(null),
  /** null: a worker serves no metrics of its own. */
  workerMetricsPort: integer(1, 65_535).nullable().default(null),
  workerMetricsHost: z.string().default('127.0.0.1'),
  ...traces,
})

const required = { error: 'is required.' }

/** Settings of the programs that prepare a database. */
const databaseSettings = z.object({
  databaseUrl: z.string(required).pipe(databaseUrl),
  migrationDatabaseUrl: z.string(required).pipe(databaseUrl),
  adminDatabaseUrl: databaseUrl.nullable().default(null),
  redisUrl: settings.shape.redisUrl,
})

/** Settings that may also come from a file, which `<NAME>_FILE` names. */
const secrets: readonly string[] = [
  ...['databaseUrl', 'directDatabaseUrl', 'migrationDatabaseUrl'],
  ...['adminDatabaseUrl', 'redisUrl'],
  ...['secretKey', 'secretKeyPrevious', 'bootstrapToken', 'gatewrightToken', 'gatewrightIdToken'],
]

export const serviceUrl = z
  .url({ protocol: /^https?$/, ...takes('a URL that starts with http:// or https://.') })
  // A password would stand in plan files, in messages, and in the logs of proxies.
  .refine(
    (text) => !URL.canParse(text) || `${new URL(text).username}${new URL(text).password}` === '',
    'holds a user name or a password: the token is GATEWRIGHT_TOKEN.',
  )

const clientSettings = settings.pick({ host: true, port: true, dataDir: true }).extend({
  gatewrightUrl: serviceUrl.optional(),
  gatewrightEnv: z.string().optional(),
  gatewrightToken: bearerToken.nullable().default(null),
  gatewrightOwner: z.string().nullable().default(null),
  gatewrightRequestId: z
    .string()
    .regex(requestIdForm, takes('at most 128 letters, digits and _.:/+=-'))
    .nullable()
    .default(null),
})

/** What a CI system gives a job to prove its identity with. */
const jobSettings = z.object({
  gatewrightIdToken: bearerToken.nullable().default(null),
  gatewrightAudience: z.string().nullable().default(null),
  actionsIdTokenRequestUrl: webUrl.nullable().default(null),
  actionsIdTokenRequestToken: bearerToken.nullable().default(null),
})

export type LogLevel = (typeof logLevels)[number]

/** The settings, frozen. docs/settings.md has the table; this file is the only reader of the environment. */
export type Config = Readonly<z.output<typeof settings>>

export type ServiceConfig = Config & { readonly databaseUrl: string; readonly secretKey: string }

export type ClientConfig = ReturnType<typeof readClientConfig>

/** Every error in the environment, one line each. */
export class ConfigError extends StartError {
  override readonly name = 'ConfigError'
  constructor(errors: readonly string[]) {
    super(`The settings are not valid:\n${errors.map((error) => `  ${error}`).join('\n')}`)
  }
}

type Environment = Readonly<Record<string, string | undefined>>

/** `dataDir` -> `DATA_DIR` */
export const variableOf = (setting: string) => setting.replaceAll(/[A-Z]/g, '_$&').toUpperCase()

/**
 * @param env `process.env`, or a test's own; an empty value counts as absent
 * @param options the log level when the environment has none; whether a database URL is required
 * @throws {ConfigError} with all errors at once
 */
export function readConfig(
  env: Environment = process.env,
  { needsDatabase = false, ...defaults }: { logLevel?: LogLevel; needsDatabase?: boolean } = {},
): Config {
  const isSet = (name: string) => [name, `${name}_FILE`].some((variable) => env[variable]?.trim())
  const errors: string[] = []
  if (needsDatabase && !isSet('DATABASE_URL'))
    errors.push('DATABASE_URL is required, and SECRET_KEY with it; npm start brings its own.')
  if (isSet('DATABASE_URL') && !isSet('SECRET_KEY'))
    errors.push('SECRET_KEY is required when DATABASE_URL is set: secrets in that database are sealed under it.')
  if (isSet('DIRECT_DATABASE_URL') && !isSet('DATABASE_URL'))
    errors.push('DATABASE_URL is required when DIRECT_DATABASE_URL is set: that one is the way around its pooler.')
  return parse(settings, env, { defaults, errors })
}

/** Reads the settings of a process without an embedded database. @throws {ConfigError} with all errors at once */
export const readServiceConfig = (env?: Environment): ServiceConfig =>
  // Both are required, so neither is null.
  readConfig(env, { needsDatabase: true }) as ServiceConfig

/** Reads the settings of a program that calls a running Gatewright. @throws {ConfigError} with all errors at once */
export function readClientConfig(env: Environment = process.env) {
  const { host, port, dataDir, ...gatewright } = parse(clientSettings, env)
  return {
    url: gatewright.gatewrightUrl ?? `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    isUrlSet: gatewright.gatewrightUrl !== undefined,
    token: gatewright.gatewrightToken,
    dataDir,
    /** The label under which the caller manages what its documents name. */
    owner: gatewright.gatewrightOwner,
    /** The environment of `gatewright.yaml`. */
    env: gatewright.gatewrightEnv,
    /** Sent as `X-Request-Id`. */
    requestId: gatewright.gatewrightRequestId,
  }
}

/** Reads what proves the identity of a job; files anew at each call. @throws {ConfigError} with all errors at once */
export const readJobConfig = (env: Environment = process.env) => parse(jobSettings, env)

/** The environment of `gatewright.yaml` to send to. */
export const readEnvironmentName = (env: Environment = process.env): string | undefined =>
  env.GATEWRIGHT_ENV?.trim() || undefined

/** The base path, before the settings are checked. An invalid one stops the start, and counts as none here. */
export const readBasePath = (env: Environment = process.env): string =>
  settings.shape.basePath.safeParse(env.BASE_PATH?.trim() || undefined).data ?? ''

/** The proxy variables of the environment. As in other programs, names in small letters take precedence. */
export const readProxyVariables = (env: Environment = process.env) => ({
  httpsProxy: env.https_proxy?.trim() || env.HTTPS_PROXY?.trim() || undefined,
  noProxy: env.no_proxy?.trim() || env.NO_PROXY?.trim() || '',
})

/** A variable. An empty one counts as absent: CI systems set it for a missing secret. */
export const readVariable = (name: string, env: Environment = process.env): string | undefined => env[name] || undefined

/** Whether a program should write plain lines even on a terminal (https://no-color.org). */
export const wantsPlainOutput = (env: Environment = process.env): boolean =>
  Boolean(env.NO_COLOR) || Boolean(env.CI) || env.TERM === 'dumb'

/** @throws {ConfigError} with all errors at once */
export const readDatabaseConfig = (env: Environment = process.env) => parse(databaseSettings, env)

/** The URL of the database. @throws {ConfigError} with all errors at once */
export const readPlaceOfDatabase = (env: Environment = process.env) =>
  parse(settings.pick({ databaseUrl: true, directDatabaseUrl: true, dataDir: true }), env)

/** The environment of a child process with these settings. A setting from `<NAME>_FILE` is passed on as a value. */
export function environmentFor(config: Config, env: Environment = process.env): Record<string, string | undefined> {
  const variables = Object.entries(config).flatMap(([setting, value]) => [
    [`${variableOf(setting)}_FILE`, undefined],
    [variableOf(setting), value?.toString()],
  ])
  return { ...env, ...Object.fromEntries(variables) }
}

function parse<Settings extends z.ZodObject>(
  schema: Settings,
  env: Environment,
  { defaults = {}, errors = [] }: { defaults?: Record<string, unknown>; errors?: string[] } = {},
): Readonly<z.output<Settings>> {
  const values = { ...defaults }
  for (const setting of Object.keys(schema.shape)) {
    const name = variableOf(setting)
    const value = secrets.includes(setting) ? readSecret(name, env, errors) : env[name]?.trim()
    if (value) values[setting] = value
  }
  const { data, error } = schema.safeParse(values)
  for (const { path, message } of error?.issues ?? []) errors.push(`${variableOf(path.join('.'))} ${message}`)
  if (data === undefined || errors.length > 0) throw new ConfigError(errors)
  return Object.freeze(data)
}

function readSecret(name: string, env: Environment, errors: string[]): string | undefined {
  const [value, file] = [env[name]?.trim(), env[`${name}_FILE`]?.trim()]
  if (!file) return value
  if (value) errors.push(`${name} and ${name}_FILE are both set: set one.`)
  try {
    const text = readFileSync(file, 'utf8').trim()
    // An empty file is a secret that was never written: no default may replace it.
    if (text === '') errors.push(`${name}_FILE: ${file} is empty.`)
    return text
  } catch (error) {
    errors.push(`${name}_FILE: ${file} cannot be read (${reasonOf(error)}).`)
    return undefined
  }
}
