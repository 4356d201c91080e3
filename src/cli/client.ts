import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { attempt } from '../attempt.ts'
import { bearerToken, type ClientConfig, ConfigError, readClientConfig, readJobConfig } from '../config.ts'
import { versionPath } from '../paths.ts'
import { readTimeoutMs } from './arguments.ts'
import { Unreachable, UsageError } from './exit.ts'
import type { IdToken } from './id-token.ts'
import { type NoAnswer, noAnswer } from './no-answer.ts'
import { inOptions } from './options-for-headers.ts'
import { type Output, openOutput } from './output.ts'
import type { Project } from './project.ts'
import { fetchThrough, isLocal, proxyFor } from './proxy.ts'
import { readUpTo } from './read-up-to.ts'

/** A running Gatewright, by its HTTP API. */
export type Client = {
  readonly url: string
  /** The label in GATEWRIGHT_OWNER. */
  readonly owner: string | null
  /** GATEWRIGHT_REQUEST_ID. */
  readonly requestId: string | null
  /** Where its token comes from: `GATEWRIGHT_TOKEN`. */
  readonly tokenFrom: string
  /** `--timeout`: how long one question may take, however often it is sent. */
  readonly timeoutMs: number
  /** Shows the reason of a wait. */
  waiting(why: string): void
  /**
   * Sends one request, once.
   *
   * @param path a path below the prefix of the API, or with it, like those in answers
   * @returns the reason when there is no answer
   */
  send(method: 'DELETE' | 'GET' | 'POST' | 'PUT', path: string, request?: Request): Promise<Answer | NoAnswer>
}

export type Request = {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly isYaml?: boolean
  /** The time limit until the answer is whole. */
  readonly withinMs?: number
}

export type Answer = {
  readonly status: number
  /** The parsed JSON; null when it is not JSON. */
  readonly body: unknown
  readonly headers: Headers
}

/** Whether no answer came. */
export const isLost = (answer: Answer | NoAnswer): answer is NoAnswer => 'isSent' in answer

/** A server that takes longer is asked again, under the same key. */
const longestTryMs = 60_000
const maxAnswerBytes = 33_554_432

/**
 * @param url the URL of the service, which may stand below a path
 * @param path a path of the API, or a whole one from an answer
 */
function addressOf(url: string, path: string): URL {
  const base = new URL(url).pathname.replace(/\/+$/, '')
  if (path.startsWith(`${base}${versionPath}/`)) return new URL(path, url)
  return new URL(path.startsWith(`${versionPath}/`) ? `${base}${path}` : `${base}${versionPath}${path}`, url)
}

/** `env`: the environment; `verbose`: whether a line says which token is used. */
type Values = { readonly env?: string; readonly verbose?: boolean }

/**
 * @param project that of the files; undefined: that of the current folder
 * @throws {UsageError} without a token; @throws {ConfigError}
 */
export async function openClient(
  { waiting, note }: Pick<Output, 'waiting' | 'note'>,
  values: Values,
  timeoutMs: number,
  project?: Project | null,
): Promise<Client> {
  const config = readClientConfig()
  const { owner, requestId } = config
  const url = await urlOf(config, values.env ?? config.env, project)
  const ask = await askerOf(url)
  const token = await tokenFor({ ...config, url }, ask, values.verbose === true ? note : () => {})
  return {
    url,
    owner,
    requestId,
    tokenFrom: token.from,
    timeoutMs,
    waiting,
    async send(method, path, { headers = {}, body, isYaml = false, withinMs = longestTryMs } = {}) {
      const endsAt = performance.now() + withinMs
      const common = {
        ...headers,
        ...(requestId !== null && { 'x-request-id': requestId }),
        ...(body !== undefined && { 'content-type': isYaml ? 'application/yaml' : 'application/json' }),
      }
      for (let refused: string | undefined; ; ) {
        const secret = await token.get(endsAt - performance.now(), refused)
        if (typeof secret !== 'string') return secret
        const init = { method, headers: { ...common, authorization: `Bearer ${secret}` }, body: body ?? null }
        const answer = await ask(addressOf(url, path), init, endsAt - performance.now())
        if (refused !== undefined || !token.isExchanged || isLost(answer) || answer.status !== 401) return answer
        refused = secret
      }
    },
  }
}

type Ask = (address: URL, init: RequestInit, withinMs: number) => Promise<Answer | NoAnswer>

/** @param url that of a server, which a proxy may stand in front of @param isService whether it is GATEWRIGHT_URL */
async function askerOf(url: string, isService = true): Promise<Ask> {
  const proxy = proxyFor(url)
  const ask = proxy === null ? fetch : await fetchThrough(proxy)
  return async (address, init, withinMs) => {
    const signal = AbortSignal.timeout(Math.max(1, Math.ceil(Math.min(withinMs, longestTryMs))))
    try {
      const response = await ask(address, { ...init, redirect: 'error', signal })
      return { status: response.status, headers: response.headers, body: await readJson(response) }
    } catch (error) {
      return noAnswer(url, error, proxy, isService)
    }
  }
}

/** What a command without files works with. @throws {UsageError} */
export async function open(values: Values & { json?: boolean; timeout?: string }, defaultS = 30) {
  const timeoutMs = readTimeoutMs(values.timeout, defaultS)
  const output = openOutput(values)
  return { client: await openClient(output, values, timeoutMs), output }
}

/** @throws {UsageError} when the environment has another URL than the one that is set */
async function urlOf({ url, isUrlSet }: ClientConfig, name: string | undefined, project?: Project | null) {
  if (name === undefined) return url
  const { environmentOf } = await import('./project.ts')
  const environment = await environmentOf(name, project)
  const plain = (text: string) => new URL(text).href.replace(/\/+$/, '')
  if (!isUrlSet || plain(url) === plain(environment.url)) return environment.url
  throw new UsageError(
    `GATEWRIGHT_URL is ${url}, and ${name} of ${environment.file} is ${environment.url}: leave one out.`,
  )
}

async function readJson(response: Response): Promise<unknown> {
  const tooLong = () => new Error(`an answer longer than ${maxAnswerBytes} bytes`)
  const bytes = await readUpTo(response.body ?? Readable.from([]), maxAnswerBytes, tooLong)
  return attempt(() => JSON.parse(bytes.toString('utf8'))) ?? null
}

/** The access tokens of a client. */
type Token = {
  /** Where it comes from: `GATEWRIGHT_TOKEN`. */
  readonly from: string
  readonly isExchanged: boolean
  /** @param refused by the service @returns the reason when there is none, and the request was not sent, or is refused */
  get(withinMs: number, refused?: string): Promise<string | Answer | NoAnswer>
}

/** @throws {UsageError} without a token, and where it could be read on the network; @throws {ConfigError} */
async function tokenFor({ url, token, dataDir }: ClientConfig, ask: Ask, note: Output['note']): Promise<Token> {
  if (!isLocal(url) && new URL(url).protocol === 'http:')
    throw new UsageError(`${url} would send the access token unencrypted: use https://.`)
  // Its token is for this machine only.
  const file = join(dataDir, 'admin-token')
  const isOwn = token === null && isLocal(url) && readJobConfig().gatewrightIdToken === null
  const stored = token ?? (isOwn ? (await readFile(file, 'utf8').catch(() => '')).trim() : '')
  const from = token === null ? file : 'GATEWRIGHT_TOKEN'
  if (stored !== '') {
    if (!bearerToken.safeParse(stored).success) throw new UsageError(`${from} holds no access token.`)
    note(`token: ${from}`)
    return { from, isExchanged: false, get: async () => stored }
  }
  const { findIdToken } = await import('./id-token.ts')
  const found = await findIdToken(url, askerOf)
  if (found !== null) return exchanged(found, url, ask, note)
  const others = isLocal(url)
    ? `, or DATA_DIR to where ${file} is.`
    : ` for ${url}. The one in DATA_DIR is for this machine only.`
  throw new UsageError(
    `No access token: set GATEWRIGHT_TOKEN or GATEWRIGHT_TOKEN_FILE${others} A job of a CI system needs none with an identity token: "permissions: { id-token: write }" on GitHub, "id_tokens: { GATEWRIGHT_ID_TOKEN: { aud: ${url} } }" on GitLab.`,
  )
}

const granted = z.object({
  access_token: bearerToken,
  token_type: z.string().regex(/^bearer$/i),
  /** Seconds. */
  expires_in: z.number().positive().max(86_400),
})
const urn = 'urn:ietf:params:oauth'

/** Exchanges an identity token (RFC 8693), and again before the access token ends. */
function exchanged({ from, read }: IdToken, url: string, ask: Ask, note: Output['note']): Token {
  let current: { readonly secret: string; readonly endsAt: number; renewsAt: number } | null = null
  let pending: Promise<string | Answer | NoAnswer> | null = null

  async function exchange(withinMs: number): Promise<string | Answer | NoAnswer> {
    const startedAt = performance.now()
    const idToken = await read(withinMs)
    if (typeof idToken !== 'string') return { ...idToken, isSent: false }
    const form = { grant_type: `${urn}:grant-type:token-exchange`, subject_token_type: `${urn}:token-type:jwt` }
    const body = new URLSearchParams({ ...form, subject_token: idToken }).toString()
    const init = { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body }
    const answer = await ask(addressOf(url, '/auth/token/'), init, withinMs + startedAt - performance.now())
    // What is asked for was not sent.
    if (isLost(answer)) return { ...answer, isSent: false }
    const { data } = granted.safeParse(answer.body)
    if (answer.status === 200 && data !== undefined) {
      const lastsMs = 1_000 * data.expires_in
      const endsAt = startedAt + lastsMs
      current = { secret: data.access_token, endsAt, renewsAt: endsAt - Math.min(120_000, lastsMs / 8) }
      note(`token: ${from}, exchanged; expires ${new Date(Date.now() + lastsMs).toISOString()}`)
      return current.secret
    }
    const message = `${url} answered ${answer.status} to ${from}: ${refusalOf(answer).join(' ')}`
    const mayCome = isLater(answer.status) || answer.status >= 500
    if (mayCome || codeOf(answer) === null)
      return { message: message.replace(/\.$/, ''), isSent: false, isFinal: !mayCome }
    if (answer.status === 404)
      throw new UsageError(`${url} exchanges no identity tokens: it is older than this program. Set GATEWRIGHT_TOKEN.`)
    const { claimsOf } = await import('./id-token.ts')
    throw new UsageError(
      `${message} It says ${claimsOf(idToken)}, which a rule of a trusted issuer has to match. Operators see the reason at ${url.replace(/\/+$/, '')}/admin/refusals/.`,
    )
  }

  return {
    from: `${from}, exchanged`,
    isExchanged: true,
    async get(withinMs, refused) {
      if (current?.secret === refused) current = null
      if (current !== null && performance.now() < current.renewsAt) return current.secret
      pending ??= exchange(withinMs).catch(asRefusal)
      const found = await pending
      pending = null
      if (typeof found === 'string' || current === null || performance.now() >= current.endsAt) return found
      // The one before goes on to work for a while.
      current.renewsAt = current.endsAt
      return current.secret
    },
  }
}

/** Like the answer to a wrong token: what was sent before may have been applied. */
function asRefusal(error: unknown): Answer {
  if (!(error instanceof UsageError || error instanceof ConfigError)) throw error
  return { status: 401, body: { code: 'not_authenticated', detail: error.message }, headers: new Headers() }
}

/** The code in an answer of Gatewright; null for an answer of another program, such as a proxy. */
export const codeOf = ({ body }: Answer): string | null =>
  z.object({ code: z.string() }).safeParse(body).data?.code ?? null

/** The reasons of a refusal: one line for each error. */
export function refusalOf(answer: Answer): string[] {
  const { data } = z.object({ detail: z.string() }).safeParse(answer.body)
  if (data !== undefined) return [data.detail]
  const lines = answer.status === 400 ? errorLines(answer.body) : []
  return lines.length > 0 ? lines : [`The answer (${answer.status}) is not one of Gatewright.`]
}

/** `entries.3.name: This field is required.` */
function errorLines(body: unknown, path = ''): string[] {
  if (Array.isArray(body)) return body.map((message) => (path === '' ? String(message) : `${path}: ${message}`))
  if (typeof body !== 'object' || body === null) return []
  return Object.entries(body)
    .filter(([name]) => path !== '' || (name !== 'code' && name !== 'errors'))
    .flatMap(([name, value]) =>
      errorLines(value, name === 'non_field_errors' ? path : [path, name].filter(Boolean).join('.')),
    )
}

const backoffMs = { first: 250, longest: 3_000 } as const

/** Waits before another try: longer each time, or for the time that the answer names. */
export async function backOff(tries: number, leftMs: number, answer?: Answer): Promise<void> {
  const asked = Number(answer?.headers.get('retry-after') ?? 0) * 1_000
  const own = Math.min(backoffMs.longest, backoffMs.first * 2 ** Math.min(tries, 8)) * (0.75 + Math.random() / 2)
  // A timer may end a millisecond early.
  await delay(1 + Math.max(0, Math.min(Math.max(asked > 0 ? Math.min(asked, 30_000) : 0, own), leftMs)))
}

/** Whether an answer is about the state of the service: another try may succeed later. */
export const isLater = (status: number): boolean => [429, 502, 503, 504].includes(status)

/**
 * Sends a GET, and tries again while the service is away.
 *
 * @throws {Unreachable} when it stays away, or does not answer as Gatewright does; @throws {UsageError} when it refuses
 */
export const read = async <Schema extends z.ZodType>(client: Client, path: string, schema: Schema) =>
  readAnswer(client, await sendUntilAnswered(client, 'GET', path), schema)

/**
 * Sends a request that may be sent twice, and tries again while the service is away.
 *
 * @throws {Unreachable} when it stays away
 */
export async function sendUntilAnswered(
  client: Client,
  method: 'DELETE' | 'GET' | 'POST',
  path: string,
  headers: Request['headers'] = {},
): Promise<Answer> {
  const endsAt = performance.now() + client.timeoutMs
  for (let tries = 0; ; tries += 1) {
    const answer = await client.send(method, path, { withinMs: endsAt - performance.now(), headers })
    const isAway = isLost(answer)
    if (!isAway && !isLater(answer.status)) return answer
    const why = isAway ? answer.message : refusalOf(answer).join(' ')
    const reason = new Unreachable(isAway ? `${why}.` : why)
    if (isAway && answer.isFinal) throw reason
    client.waiting(why)
    await backOff(tries, endsAt - performance.now(), isAway ? undefined : answer)
    // A try without time left would hide the reason behind its own time-out.
    if (performance.now() >= endsAt) throw reason
  }
}

/** @throws {Unreachable} for an answer of another program; @throws {UsageError} when the request was refused */
export function readAnswer<Schema extends z.ZodType>({ url }: Client, answer: Answer, schema: Schema) {
  if (answer.status >= 400) {
    if (codeOf(answer) === null || answer.status >= 500)
      throw new Unreachable(`${url} answered ${answer.status}: ${refusalOf(answer).join(' ')}`)
    throw new UsageError(refusalOf(answer).map(inOptions).join('\n'))
  }
  const parsed = schema.safeParse(answer.body)
  if (!parsed.success) throw new Unreachable(`${url} does not answer as Gatewright does.`)
  return parsed.data
}
