import { randomUUID } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import * as client from 'openid-client'
import { escaped, page } from './pages.ts'
import { application, listen, signIn } from './settings.ts'

/** A small application: its users sign in by OpenID Connect, and it shows what it learns of them. */

const { port, clientId, clientSecret } = application
const { issuer } = signIn
const origin = `http://127.0.0.1:${port}`
const redirect_uri = `${origin}/callback`
const scope = 'openid email profile groups'

/** Sign-ins that began, by the cookie of the browser. */
const begun = new Map<string, { code_verifier: string; state: string; nonce: string }>()

let discovered: Promise<client.Configuration> | undefined
/** Discovered once; when that fails, again at the next sign-in. */
async function discover(): Promise<client.Configuration> {
  discovered ??= client.discovery(
    new URL(issuer),
    clientId,
    undefined,
    clientSecret === '' ? client.None() : client.ClientSecretBasic(clientSecret),
    // The example has no certificate.
    issuer.startsWith('http:') ? { execute: [client.allowInsecureRequests] } : {},
  )
  return discovered.catch((error: unknown) => {
    discovered = undefined
    throw error
  })
}

async function begin(response: ServerResponse): Promise<void> {
  const config = await discover()
  const checks = {
    code_verifier: client.randomPKCECodeVerifier(),
    state: client.randomState(),
    nonce: client.randomNonce(),
  }
  const location = client.buildAuthorizationUrl(config, {
    redirect_uri,
    scope,
    state: checks.state,
    nonce: checks.nonce,
    code_challenge: await client.calculatePKCECodeChallenge(checks.code_verifier),
    code_challenge_method: 'S256',
  })
  const id = randomUUID()
  begun.set(id, checks)
  if (begun.size > 1_000) begun.delete(begun.keys().next().value ?? '')
  response
    .writeHead(302, { location: location.href, 'set-cookie': `hello=${id}; HttpOnly; SameSite=Lax; Path=/` })
    .end()
}

async function end(url: URL, cookie: string, response: ServerResponse): Promise<void> {
  const [, id = ''] = /(?:^|; )hello=([\w-]+)/.exec(cookie) ?? []
  const checks = begun.get(id)
  if (checks === undefined) throw new Error('No sign-in began in this browser.')
  begun.delete(id)
  const config = await discover()
  const tokens = await client.authorizationCodeGrant(config, url, {
    pkceCodeVerifier: checks.code_verifier,
    expectedState: checks.state,
    expectedNonce: checks.nonce,
    idTokenExpected: true,
  })
  const id_token = tokens.claims()
  const userinfo = await client.fetchUserInfo(config, tokens.access_token, id_token?.sub ?? '')
  const shown = escaped(JSON.stringify({ id_token, userinfo }, null, 2))
  response
    .writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
    .end(page(`Hello ${userinfo.name ?? userinfo.sub}`, `<pre>${shown}</pre>`))
}

function reasonOf(error: unknown): string {
  if (error instanceof client.WWWAuthenticateChallengeError)
    return error.cause.map(({ parameters }) => parameters.error ?? '').join()
  if (error instanceof client.ResponseBodyError || error instanceof client.AuthorizationResponseError)
    return error.error
  return error instanceof Error ? error.message : 'unknown'
}

const server = createServer((request, response) => {
  const url = new URL(request.url ?? '/', origin)
  const answer = async () => {
    if (url.pathname === '/sign-in') return begin(response)
    if (url.pathname === '/callback') return end(url, request.headers.cookie ?? '', response)
    response
      .writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
      .end(page('Hello', '<p><a href="/sign-in">Sign in</a></p>'))
  }
  answer().catch((error: unknown) => {
    response
      .writeHead(400, { 'content-type': 'text/html; charset=utf-8' })
      .end(page('Not signed in', escaped(reasonOf(error))))
  })
})
listen(server, 'APP_PORT', port, `application: ${origin}`)
