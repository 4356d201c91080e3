import { randomUUID } from 'node:crypto'
import {
  type Answer,
  type Asker,
  applied,
  type Claims,
  githubClaims,
  type HowToSign,
  type Installation,
  type Issuer,
} from '../support/kit.ts'

/** A trusted issuer in front of an installation, and jobs that exchange their identity tokens. */

export const exchangePath = '/api/v3/auth/token/'
export const audience = 'https://iam.example.com'

export type Rule = {
  readonly name: string
  readonly claims: Readonly<Record<string, string>>
  readonly user: string
  readonly owners?: readonly string[]
  readonly stacks?: readonly string[]
}

/** A rule that takes the tokens of `githubClaims`. */
export const ruleFor = (user: string, more: Partial<Rule> = {}): Rule => ({
  name: 'main',
  claims: { repository: 'acme/shop', ref: 'refs/heads/main' },
  user,
  ...more,
})

export const anIssuer = (name: string, attrs: object = {}) => ({
  model: 'service_rbac.trustedissuer',
  identifiers: { name },
  attrs,
})

export type Exchanged = Answer & { readonly accessToken: string; readonly id: string }

export function exchangeStand(on: Installation, issuer: Issuer) {
  const attrsOf = (rules: readonly Rule[], more: object = {}) => ({ issuer: issuer.url, audience, rules, ...more })

  /** Makes an issuer the only one. */
  async function trust(
    rules: readonly Rule[],
    {
      by = on.admin,
      name = `github-${randomUUID()}`,
      ...more
    }: { by?: Asker; name?: string } & Record<string, unknown> = {},
  ) {
    await on.db.trustedIssuer.deleteMany()
    await applied(by.apply([anIssuer(name, attrsOf(rules, more))]))
    return name
  }

  const fieldsOf = (jwt: string) => ({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: jwt,
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
  })

  /** Sends a form, or a text as it is. */
  async function post(
    body: Readonly<Record<string, string>> | readonly (readonly [string, string])[] | string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Exchanged> {
    const id = randomUUID()
    const form = new URLSearchParams(body as Record<string, string>).toString()
    const answer = await on.as('').send({
      method: 'POST',
      url: exchangePath,
      headers: {
        authorization: '',
        'content-type': 'application/x-www-form-urlencoded',
        'x-request-id': id,
        ...headers,
      },
      payload: typeof body === 'string' ? body : form,
    })
    const { access_token: accessToken = '' } = Object(answer.json) as { access_token?: string }
    return { ...answer, accessToken, id }
  }

  const sign = (claims: Claims = {}, how?: HowToSign) =>
    issuer.sign({ ...githubClaims(), aud: audience, ...claims }, how)
  const exchange = async (claims?: Claims, how?: HowToSign) => post(fieldsOf(await sign(claims, how)))
  /** A job that has an access token. */
  async function job(claims?: Claims): Promise<Asker & { readonly token: string }> {
    const { accessToken, text } = await exchange(claims)
    if (accessToken === '') throw new Error(text)
    return { ...on.as(accessToken), token: accessToken }
  }
  return { attrsOf, trust, fieldsOf, post, sign, exchange, job }
}
