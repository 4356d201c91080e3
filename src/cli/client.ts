import { setTimeout as delay } from 'node:timers/promises'
import type { z } from 'zod'
import { type ClientConfig, readClientConfig } from '../config.ts'
import { tokenFor } from './access-token.ts'
import { readTimeoutMs } from './arguments.ts'
import { type Answer, addressOf, askerOf, codeOf, isLater, isLost, type NoAnswer, refusalOf } from './ask.ts'
import { Unreachable, UsageError } from './exit.ts'
import { ofOption } from './options-for-headers.ts'
import { type Output, openOutput } from './output.ts'
import type { Project } from './project.ts'

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
  /** The time limit until the answer is whole; at most that of one try. */
  readonly withinMs?: number
}

/** An identity token where an access token belongs. */
const misplaced = (token: string): string =>
  /^eyJ[\w-]+\.[\w-]+\.[\w-]+$/.test(token) ? '. It holds an identity token, which belongs in GATEWRIGHT_ID_TOKEN' : ''

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
    async send(method, path, { headers = {}, body, isYaml = false, withinMs = Number.POSITIVE_INFINITY } = {}) {
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
        if (isLost(answer) || answer.status !== 401) return answer
        if (refused !== undefined || !token.isExchanged) return { ...answer, tokenFrom: token.from + misplaced(secret) }
        refused = secret
      }
    },
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

const backoffMs = { first: 250, longest: 3_000 } as const

/** Waits before another try: longer each time, or for the time that the answer names. */
export async function backOff(tries: number, leftMs: number, answer?: Answer): Promise<void> {
  const asked = Number(answer?.headers.get('retry-after') ?? 0) * 1_000
  const own = Math.min(backoffMs.longest, backoffMs.first * 2 ** Math.min(tries, 8)) * (0.75 + Math.random() / 2)
  // A timer may end a millisecond early.
  await delay(1 + Math.max(0, Math.min(Math.max(asked > 0 ? Math.min(asked, 30_000) : 0, own), leftMs)))
}

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
    throw new UsageError(refusalOf(answer).map(ofOption).join('\n'))
  }
  const parsed = schema.safeParse(answer.body)
  if (!parsed.success) throw new Unreachable(`${url} does not answer as Gatewright does.`)
  return parsed.data
}
