import { Readable } from 'node:stream'
import { z } from 'zod'
import { attempt } from '../attempt.ts'
import { versionPath } from '../paths.ts'
import { reasonOf } from '../start-error.ts'
import { UsageError } from './exit.ts'
import { fetchThrough, type HttpProxy, notConnected, proxyFor, whyNotThrough } from './proxy.ts'
import { readUpTo } from './read-up-to.ts'

/** One request over HTTP: what its answer says, or why there is none, in words for the caller. */

export type Answer = {
  readonly status: number
  /** The parsed JSON; null when it is not JSON. */
  readonly body: unknown
  readonly headers: Headers
  /** Where the token comes from that was refused: `GATEWRIGHT_TOKEN`. */
  readonly tokenFrom?: string
}

export type NoAnswer = {
  readonly message: string
  /** Whether the service may have received the request. */
  readonly isSent: boolean
  /** Whether another try makes no difference. */
  readonly isFinal: boolean
}

/** Whether no answer came. */
export const isLost = (answer: Answer | NoAnswer): answer is NoAnswer => 'isSent' in answer

/** A server that takes longer is asked again, under the same key. */
const longestTryMs = 60_000
const maxAnswerBytes = 33_554_432

/**
 * @param url the URL of the service, which may stand below a path
 * @param path a path of the API, or a whole one from an answer
 * @throws {UsageError} for a name that would lead to another path
 */
export function addressOf(url: string, path: string): URL {
  const base = new URL(url).pathname.replace(/\/+$/, '')
  const isWhole = path.startsWith(`${base}${versionPath}/`)
  const whole = isWhole ? path : `${base}${path.startsWith(`${versionPath}/`) ? '' : versionPath}${path}`
  const address = new URL(whole, url)
  if (address.pathname !== whole.split('?')[0]) throw new UsageError('Neither . nor .. is a name.')
  return address
}

export type Ask = (address: URL, init: RequestInit, withinMs: number) => Promise<Answer | NoAnswer>

/** @param url that of a server, which a proxy may stand in front of @param isService whether it is GATEWRIGHT_URL */
export async function askerOf(url: string, isService = true): Promise<Ask> {
  const proxy = proxyFor(url)
  const ask = proxy === null ? fetch : await fetchThrough(proxy)
  return async (address, init, withinMs) => {
    const signal = AbortSignal.timeout(Math.max(1, Math.ceil(Math.min(withinMs, longestTryMs))))
    try {
      const response = await ask(address, { ...init, redirect: 'error', signal })
      const { status, headers } = response
      const body = await readJson(response)
      // A wrong address and a name that is not there have the same answer: only the first has it for a path of every version.
      const ofAll = () => ask(addressOf(url, '/core/users/me/'), { redirect: 'error', signal })
      const mayBeWrong = isService && [404, 405].includes(status)
      if (!mayBeWrong || (await ofAll()).status !== 404) return { status, headers, body }
      const message = `${address.origin}${address.pathname} answered ${status}, and is no path of Gatewright: set GATEWRIGHT_URL to the address of the service, with its base path and without ${versionPath}`
      return { message, isSent: false, isFinal: true }
    } catch (error) {
      return noAnswer(url, error, proxy, isService)
    }
  }
}

async function readJson(response: Response): Promise<unknown> {
  const tooLong = () => new Error(`an answer longer than ${maxAnswerBytes} bytes`)
  const bytes = await readUpTo(response.body ?? Readable.from([]), maxAnswerBytes, tooLong)
  return attempt(() => JSON.parse(bytes.toString('utf8'))) ?? null
}

/** The code in an answer of Gatewright; null for an answer of another program, such as a proxy. */
export const codeOf = ({ body }: Answer): string | null =>
  z.object({ code: z.string() }).safeParse(body).data?.code ?? null

/** The reasons of a refusal: one line for each error. */
export function refusalOf(answer: Answer): string[] {
  const { data } = z.object({ detail: z.string() }).safeParse(answer.body)
  const { tokenFrom } = answer
  if (data !== undefined) return [`${data.detail}${tokenFrom === undefined ? '' : ` Refused: ${tokenFrom}.`}`]
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

/** Whether an answer is about the state of the service: another try may succeed later. */
export const isLater = (status: number): boolean => [429, 502, 503, 504].includes(status)

/** The sentences, by the code of the error, or a part of it: only the names of OpenSSL's codes are the same on every Node. */
const explained: readonly (readonly [code: RegExp, words: string, ofService?: string])[] = [
  [
    /UNABLE_TO_(VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT)|SELF_SIGNED_CERT/,
    'its certificate is signed by an unknown authority: set NODE_EXTRA_CA_CERTS to a file with the certificate of that authority',
  ],
  [/CERT_HAS_EXPIRED/, 'its certificate has expired: it needs a new one'],
  [/CERT_NOT_YET_VALID/, 'its certificate is not valid yet: check the clocks of both machines'],
  [
    /ERR_TLS_CERT_ALTNAME_INVALID/,
    'its certificate is for another host',
    ': set GATEWRIGHT_URL to the name that it is for',
  ],
  [
    /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|EPROTO/,
    'it speaks no TLS on this port, and https:// needs a port that does',
  ],
  [
    /^HPE_INVALID|^UND_ERR_SOCKET_TLS/,
    'it speaks no HTTP on this port: if it speaks TLS, the URL starts with https://',
  ],
  [/redirect/i, 'it redirects', ': set GATEWRIGHT_URL to the address it redirects to'],
]

const untrusted = /CERT|SELF_SIGNED|UNABLE_TO|ERR_TLS|ERR_SSL|EPROTO/

/** @param error that of `fetch` @param proxy the one in front of the server @param isService whether GATEWRIGHT_URL is its URL */
function noAnswer(url: string, error: unknown, proxy: HttpProxy | null, isService: boolean): NoAnswer {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const isTimeout = error instanceof Error && error.name === 'TimeoutError'
  const reason = isTimeout ? 'no answer in time' : reasonOf(cause)
  const notThrough = proxy && whyNotThrough(proxy, url, cause)
  if (notThrough !== null) return { ...notThrough, isSent: false }
  const [, words, ofService = ''] = explained.find(([code]) => code.test(reason)) ?? []
  const isSent = !notConnected.test(reason) && !untrusted.test(reason)
  return {
    message:
      words === undefined
        ? `${url} does not answer (${reason})`
        : `${url} cannot be used (${reason}): ${words}${isService ? ofService : ''}`,
    isSent,
    isFinal: reason === 'ENOTFOUND' || untrusted.test(reason) || /redirect/i.test(reason),
  }
}
