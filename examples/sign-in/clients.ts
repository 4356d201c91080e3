import { timingSafeEqual } from 'node:crypto'
import type { Adapter, AdapterPayload, ClientMetadata, JWK } from 'oidc-provider'
import type { Mapping } from './claims.ts'
import type { Known, Row, Secrets } from './gatewright.ts'
import type { RedirectUri } from './redirects.ts'

/** Clients of oidc-provider from configurations of Gatewright, and its storage in memory. */

export type Oauth2 = Row & {
  readonly client_type: 'confidential' | 'public'
  readonly client_id: string
  readonly client_secret: Secrets
  readonly redirect_uris: readonly RedirectUri[]
  readonly property_mappings: readonly Mapping[]
  readonly authorization_flow: { readonly title: string; readonly asks_for_consent: boolean } | null
  readonly signing_key: { readonly private_jwk: JWK | null } | null
  readonly encryption_key: object | null
  readonly include_claims_in_id_token: boolean
  readonly sub_mode: string
  readonly access_code_validity: string
  readonly access_token_validity: string
  readonly refresh_token_validity: string
  readonly application: { readonly name: string; readonly slug: string } | null
}

/** The values that are valid now. Null and a mask are no secrets: what nobody knows opens nothing. */
const validSecrets = ({ client_secret }: Oauth2): string[] =>
  (Array.isArray(client_secret) ? (client_secret as NonNullable<Secrets>) : [])
    .filter(
      ({ value, until }) => value !== '' && !/^\*+$/.test(value) && (until === null || new Date(until) > new Date()),
    )
    .map(({ value }) => value)

/** Compares in a time that does not depend on where they differ. */
export const isSecretOf = (row: Oauth2, sent: string): boolean =>
  validSecrets(row)
    .map((value) => [Buffer.from(value), Buffer.from(sent)] as const)
    .filter(([value, actual]) => value.length === actual.length && timingSafeEqual(value, actual)).length > 0

export const scopesOf = ({ property_mappings }: Oauth2): string[] => [
  ...new Set(['openid', ...property_mappings.map(({ scope_name }) => scope_name).filter((scope) => scope !== '')]),
]

const algorithms: Record<string, string> = {
  RSA: 'RS256',
  'P-256': 'ES256',
  'P-384': 'ES384',
  'P-521': 'ES512',
  Ed25519: 'EdDSA',
}

/** The algorithm of a private key; undefined for what this server cannot sign with. */
export const algorithmOf = (key: JWK): string | undefined => algorithms[key.crv ?? key.kty ?? '']

const units: Record<string, number> = {
  milliseconds: 0.001,
  seconds: 1,
  minutes: 60,
  hours: 3_600,
  days: 86_400,
  weeks: 604_800,
}

/** @param validity such as `hours=1;minutes=30` @returns whole seconds, at least one */
export const secondsOf = (validity: string): number =>
  Math.max(
    1,
    validity
      .split(';')
      .map((part) => part.split('='))
      .reduce((sum, [unit = '', value]) => sum + Math.round((units[unit] ?? 0) * Number(value)), 0),
  )

/** Redirect URIs are compared by redirects.ts: this one stands in for them, and is none of them. */
const noRedirect = 'https://redirects.invalid/'

/** @returns undefined for a client that this server must not serve */
function toClient(row: Oauth2): ClientMetadata | undefined {
  const [secret] = validSecrets(row)
  const isPublic = row.client_type === 'public'
  // It has no secret, or this server may not read it. Tokens that are to be encrypted must not leave in the clear.
  if ((!isPublic && secret === undefined) || row.encryption_key !== null) return undefined
  const key = row.signing_key?.private_jwk
  return {
    client_id: row.client_id,
    client_name: row.application?.name ?? row.name,
    token_endpoint_auth_method: isPublic ? 'none' : 'client_secret_basic',
    ...(!isPublic && { client_secret: secret }),
    redirect_uris: [noRedirect],
    response_types: ['code'],
    grant_types: ['authorization_code', 'refresh_token'],
    id_token_signed_response_alg: (key && algorithmOf(key)) ?? 'RS256',
    scope: scopesOf(row).join(' '),
  } as ClientMetadata
}

type Stored = { readonly payload: AdapterPayload; readonly endsAt: number }

const mostStored = 100_000
const stored = new Map<string, Stored>()

/** Clients are what Gatewright says; sessions, codes and tokens are in memory, and end with this process. */
export const adapterOn =
  (known: Known<Oauth2>) =>
  (model: string): Adapter => {
    const key = (id: string) => `${model}:${id}`
    const find = async (id: string) => {
      if (model === 'Client') {
        const row = known.get(id)
        return row && toClient(row)
      }
      const { payload, endsAt = 0 } = stored.get(key(id)) ?? {}
      return endsAt > Date.now() ? payload : undefined
    }
    const findBy = async (wanted: Partial<AdapterPayload>) =>
      stored
        .entries()
        .filter(([name]) => name.startsWith(`${model}:`))
        .map(([, { payload }]) => payload)
        .find((payload) => Object.entries(wanted).every(([field, value]) => payload[field] === value))
    return {
      find,
      findByUid: (uid) => findBy({ uid }),
      findByUserCode: (userCode) => findBy({ userCode }),
      async upsert(id, payload, expiresIn) {
        stored.delete(key(id))
        stored.set(key(id), { payload, endsAt: Date.now() + 1_000 * (expiresIn ?? Number.POSITIVE_INFINITY) })
        if (stored.size > mostStored) stored.delete(stored.keys().next().value ?? '')
      },
      async consume(id) {
        const { payload } = stored.get(key(id)) ?? {}
        if (payload !== undefined) payload.consumed = Math.floor(Date.now() / 1_000)
      },
      async destroy(id) {
        stored.delete(key(id))
      },
      async revokeByGrantId(grantId) {
        for (const [name, { payload }] of stored) if (payload.grantId === grantId) stored.delete(name)
      },
    }
  }
