import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { bearerToken, type ClientConfig, ConfigError, readJobConfig, readVariable } from '../config.ts'
import { type Answer, type Ask, addressOf, askerOf, codeOf, isLater, isLost, type NoAnswer, refusalOf } from './ask.ts'
import { UsageError } from './exit.ts'
import type { IdToken } from './id-token.ts'
import type { Output } from './output.ts'
import { isLocal } from './proxy.ts'

/** The access tokens of a client. */
export type Token = {
  /** Where it comes from: `GATEWRIGHT_TOKEN`. */
  readonly from: string
  readonly isExchanged: boolean
  /** @param refused by the service @returns the reason when there is none, and the request was not sent, or is refused */
  get(withinMs: number, refused?: string): Promise<string | Answer | NoAnswer>
}

/** @throws {UsageError} without a token, and where it could be read on the network; @throws {ConfigError} */
export async function tokenFor({ url, token, dataDir }: ClientConfig, ask: Ask, note: Output['note']): Promise<Token> {
  if (!isLocal(url) && new URL(url).protocol === 'http:')
    throw new UsageError(`${url} would send the access token unencrypted: use https://.`)
  // Its token is for this machine only.
  const file = join(dataDir, 'admin-token')
  const isOwn = token === null && isLocal(url) && readJobConfig().gatewrightIdToken === null
  const stored = token ?? (isOwn ? (await readFile(file, 'utf8').catch(() => '')).trim() : '')
  const variable = readVariable('GATEWRIGHT_TOKEN') ? 'GATEWRIGHT_TOKEN' : 'GATEWRIGHT_TOKEN_FILE'
  const from = token === null ? file : variable
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
    const why = refusalOf(answer).join(' ')
    const whole = why.replace(/(?<= )(?=\/admin\/)/, url.replace(/\/+$/, ''))
    const message = `${url} answered ${answer.status} to ${from}: ${whole}`
    const mayCome = isLater(answer.status) || answer.status >= 500
    if (mayCome || codeOf(answer) === null)
      return { message: message.replace(/\.$/, ''), isSent: false, isFinal: !mayCome }
    if (answer.status === 404)
      throw new UsageError(`${url} exchanges no identity tokens: it is older than this program. Set GATEWRIGHT_TOKEN.`)
    const { claimsOf } = await import('./id-token.ts')
    throw new UsageError(`${message} ${claimsOf(idToken)}`)
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
