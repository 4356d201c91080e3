import { existsSync } from 'node:fs'
import { z } from 'zod'
import { attempt } from '../attempt.ts'
import { readJobConfig, readVariable } from '../config.ts'
import { type Ask, isLost, type NoAnswer } from './ask.ts'
import { UsageError } from './exit.ts'
import { shown } from './output.ts'
import { isLocal } from './proxy.ts'

/** The identity token that a CI system or a cluster gives to a job. */

export type IdToken = {
  /** Where it comes from: `GATEWRIGHT_ID_TOKEN`. */
  readonly from: string
  /** Reads it each time, because it lasts for minutes. @throws {ConfigError} */
  read(withinMs: number): Promise<string | NoAnswer>
}

type AskerOf = (url: string, isService: boolean) => Promise<Ask>

/** A projected volume with a token of the service account of the pod. */
const projectedFile = '/var/run/secrets/gatewright/token'

/** @param url that of the service @returns null when there is none @throws {UsageError} @throws {ConfigError} */
export async function findIdToken(url: string, askerOf: AskerOf, projected = projectedFile): Promise<IdToken | null> {
  const job = readJobConfig()
  const given = (name: string, env?: Record<string, string>): IdToken => ({
    from: `the identity token in ${name}`,
    read: async () => readJobConfig(env).gatewrightIdToken ?? '',
  })
  if (job.gatewrightIdToken !== null)
    return given(readVariable('GATEWRIGHT_ID_TOKEN') ? 'GATEWRIGHT_ID_TOKEN' : 'GATEWRIGHT_ID_TOKEN_FILE')
  if (job.actionsIdTokenRequestUrl === null || job.actionsIdTokenRequestToken === null)
    return existsSync(projected) ? given(projected, { GATEWRIGHT_ID_TOKEN_FILE: projected }) : null
  // https://docs.github.com/en/actions/reference/security/oidc
  const address = new URL(job.actionsIdTokenRequestUrl)
  if (address.protocol !== 'https:' && !isLocal(address.href))
    throw new UsageError('ACTIONS_ID_TOKEN_REQUEST_URL does not start with https://.')
  address.searchParams.set('audience', job.gatewrightAudience ?? url.replace(/\/+$/, ''))
  const ask = await askerOf(address.origin, false)
  const headers = { authorization: `Bearer ${job.actionsIdTokenRequestToken}` }
  return {
    from: 'the identity token of GitHub Actions (ACTIONS_ID_TOKEN_REQUEST_URL)',
    async read(withinMs) {
      const answer = await ask(address, { headers }, withinMs)
      if (isLost(answer)) return answer
      const { data } = z.object({ value: z.string() }).safeParse(answer.body)
      if (answer.status === 200 && data !== undefined) return data.value
      const message = `${address.origin} gives no identity token (${answer.status})`
      return { message, isSent: false, isFinal: answer.status < 500 && answer.status !== 429 }
    },
  }
}

/** A sentence with what an identity token says of itself, which nothing has verified. */
export const claimsOf = (jwt: string): string =>
  attempt(() => {
    const { iss, aud, sub, exp } = JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString('utf8'))
    const claims = shown(JSON.stringify({ iss, aud, sub, exp: new Date(exp * 1_000) })).slice(0, 1_000)
    return `It says ${claims}, which a rule of a trusted issuer has to match.`
  }) ?? 'It is no JWT: an access token belongs in GATEWRIGHT_TOKEN.'
