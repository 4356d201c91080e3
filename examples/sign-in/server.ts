import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import Provider, { type JWK } from 'oidc-provider'
import { claimsOf } from './claims.ts'
import { adapterOn, algorithmOf, isSecretOf, type Oauth2, scopesOf, secondsOf } from './clients.ts'
import { follow, type Known, register, reporter } from './gatewright.ts'
import { consentPage, escaped, logInPage, page } from './pages.ts'
import { isRegistered } from './redirects.ts'
import { listen, signIn } from './settings.ts'
import { findUser, isPasswordOf, subjectOf } from './users.ts'

/** A sign-in server: oidc-provider with the clients, keys, scopes and mappings of Gatewright, and users of its own. */

const { port, issuer } = signIn

const recordConsent = reporter('POST', 'oauth2/consents/', 'consents')
const recordLogIn = reporter('PATCH', 'users/', 'logins')

const cookieKeys = [randomBytes(32).toString('hex')]
/** It signs for providers that have no key, or none that this server may read. Applications read the new one after a start. */
const ownKey = generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey.export({ format: 'jwk' }) as JWK

/** What oidc-provider takes at its start alone: when it changes, another one takes over. Sessions and tokens stay. */
function fixedPart(known: Known<Oauth2>) {
  const rows = [...known.values()]
  const keys = rows.map(({ signing_key }) => signing_key?.private_jwk).filter((key) => key && algorithmOf(key))
  const different = [...new Set([...keys, ownKey].map((key) => JSON.stringify(key)))]
  return {
    jwks: { keys: different.map((key): JWK => JSON.parse(key)) },
    scopes: [...new Set(['offline_access', ...rows.flatMap(scopesOf)])].sort(),
  }
}

function openProvider(known: Known<Oauth2>, { jwks, scopes }: ReturnType<typeof fixedPart>): Provider {
  const rowOf = (clientId: string | undefined) => known.get(clientId ?? '')
  const ttl =
    (field: 'access_code_validity' | 'access_token_validity' | 'refresh_token_validity') =>
    (_: unknown, __: unknown, client: { clientId: string }) =>
      secondsOf(rowOf(client.clientId)?.[field] ?? '')
  const oidc = new Provider(issuer, {
    adapter: adapterOn(known),
    jwks,
    scopes,
    cookies: { keys: cookieKeys },
    responseTypes: ['code'],
    clientAuthMethods: ['client_secret_basic', 'client_secret_post', 'none'],
    features: {
      devInteractions: { enabled: false },
      pushedAuthorizationRequests: { enabled: false },
      rpInitiatedLogout: { enabled: false },
    },
    renderError(ctx, { error, error_description = '' }) {
      ctx.type = 'html'
      ctx.body = page('Not signed in', `<p>${escaped(`${error}: ${error_description}`)}</p>`)
    },
    allowOmittingSingleRegisteredRedirectUri: false,
    enabledJWA: { idTokenSigningAlgValues: ['RS256', 'ES256', 'ES384', 'ES512', 'EdDSA'] },
    subjectTypes: ['pairwise'],
    pairwiseIdentifier: async (_, accountId, { clientId }) => {
      const user = findUser(accountId)
      if (user === undefined) throw new Error('The user is gone.')
      return subjectOf(user, rowOf(clientId)?.sub_mode ?? '')
    },
    ttl: {
      AuthorizationCode: ttl('access_code_validity'),
      AccessToken: ttl('access_token_validity'),
      RefreshToken: ttl('refresh_token_validity'),
      IdToken: 3_600,
      Interaction: 600,
      Session: 86_400,
      Grant: 14 * 86_400,
    },
    async findAccount(ctx, username) {
      const user = findUser(username)
      const row = rowOf(ctx.oidc.client?.clientId)
      return (
        user && {
          accountId: username,
          async claims(use, scope) {
            if (row === undefined || (use === 'id_token' && !row.include_claims_in_id_token)) return { sub: username }
            const { pk, name, client_id, application } = row
            const provider = { pk, name, client_id, application }
            return { ...(await claimsOf(user, provider, row.property_mappings, scope.split(' '))), sub: username }
          },
        }
      )
    },
    async loadExistingGrant(ctx) {
      const { client, session, params, result, provider } = ctx.oidc
      const { clientId = '' } = client ?? {}
      const grantId = result?.consent?.grantId ?? session?.grantIdFor(clientId)
      const found = grantId === undefined ? undefined : await provider.Grant.find(grantId)
      if (rowOf(clientId)?.authorization_flow?.asks_for_consent !== false || session?.accountId === undefined)
        return found
      const grant = found ?? new provider.Grant({ clientId, accountId: session.accountId })
      grant.addOIDCScope(String(params?.scope ?? ''))
      await grant.save()
      return grant
    },
  })
  const { prototype } = oidc.Client
  prototype.redirectUriAllowed = function (uri: string) {
    return isRegistered(rowOf(this.clientId)?.redirect_uris ?? [], uri)
  }
  Object.assign(prototype, {
    async compareClientSecret(this: { clientId: string }, sent: string) {
      const row = rowOf(this.clientId)
      return row !== undefined && isSecretOf(row, sent)
    },
  })
  // Expressions decide which claims there are: no list of names masks them.
  const { Claims } = oidc as unknown as { Claims: { prototype: { available: object; result(): Promise<object> } } }
  const { result } = Claims.prototype
  Claims.prototype.result = async function () {
    return { ...this.available, ...(await result.call(this)) }
  }
  oidc.proxy = issuer.startsWith('https:')
  return oidc
}

const longestForm = 10_000

async function readForm(request: IncomingMessage): Promise<URLSearchParams> {
  let text = ''
  for await (const chunk of request) {
    text += chunk
    if (text.length > longestForm) break
  }
  return new URLSearchParams(text.slice(0, longestForm))
}

const headers = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
}

/** Asks the user for a password, or for consent. */
async function interact(oidc: Provider, known: Known<Oauth2>, request: IncomingMessage, response: ServerResponse) {
  const { prompt, params, session, grantId } = await oidc.interactionDetails(request, response)
  const row = known.get(String(params.client_id))
  // Meanwhile, the application or its address may have been taken away.
  if (row === undefined || !isRegistered(row.redirect_uris, String(params.redirect_uri))) throw new Error('It is gone.')
  const client = row.application?.name ?? row.name
  const form = request.method === 'POST' ? await readForm(request) : undefined
  const show = (status: number, text: string) => response.writeHead(status, headers).end(text)
  const finish = (result: object) => oidc.interactionFinished(request, response, result as never)

  if (prompt.name === 'login') {
    const username = form?.get('username') ?? ''
    if (form === undefined) return show(200, logInPage(client, false))
    if (!(await isPasswordOf(username, form.get('password') ?? ''))) return show(401, logInPage(client, true))
    recordLogIn({ user: username, last_login: new Date().toISOString() })
    return finish({ login: { accountId: username } })
  }

  const { missingOIDCScope = [] } = prompt.details as { missingOIDCScope?: string[] }
  if (form === undefined)
    return show(200, consentPage(client, row.authorization_flow?.title || `Allow ${client}`, missingOIDCScope))
  if (form.get('answer') !== 'allow') return finish({ error: 'access_denied', error_description: 'The user refused.' })
  const accountId = session?.accountId ?? ''
  const found = grantId === undefined ? undefined : await oidc.Grant.find(grantId)
  const grant = found ?? new oidc.Grant({ accountId, clientId: row.client_id })
  grant.addOIDCScope(missingOIDCScope.join(' '))
  const permissions = grant.getOIDCScope()
  recordConsent({ user: accountId, client_id: row.client_id, permissions, expires: null })
  return finish({ consent: { grantId: await grant.save() } })
}

let fixed = ''
let oidc: Provider | undefined
const known = await follow<Oauth2>(
  'oauth2',
  ({ client_id }) => client_id,
  (now) => {
    const part = fixedPart(now)
    if (fixed === JSON.stringify(part)) return
    oidc = openProvider(now, part)
    fixed = JSON.stringify(part)
  },
)

const server = createServer((request, response) => {
  const current = oidc as Provider
  if (!request.url?.startsWith('/interaction/')) return current.callback()(request, response)
  interact(current, known, request, response).catch((error: unknown) => {
    console.error(error)
    response.writeHead(400, headers).end('This sign-in has ended, or it began elsewhere. Please start again.')
  })
})
listen(server, 'SIGN_IN_PORT', port, `sign-in server: ${issuer}`)
void register('oauth2', issuer)
