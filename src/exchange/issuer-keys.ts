import dns from 'node:dns/promises'
import http, { type IncomingMessage } from 'node:http'
import https from 'node:https'
import type { LookupFunction } from 'node:net'
import { aborted } from 'node:util'
import ipaddr from 'ipaddr.js'
import * as jose from 'jose'
import { forgetOldest } from '../forget-oldest.ts'
import { reasonOf } from '../start-error.ts'

/** Of an answer. GitHub's key set has 7 KiB. */
const maxLength = 256 * 1_024
const maxIssuers = 100

/** Between two fetches from one issuer after one that failed. For a key that is missing it is half a minute, as jose has it. */
const failedMs = 5_000

/**
 * Opens the memory of the keys of issuers. They are fetched again after ten minutes, and for a `kid` that they do not have.
 *
 * @param timeoutMs of discovery and keys together
 * @param lookup the addresses of a host
 * @returns gives `jwtVerify` the keys of an issuer: its `jwks`, or when null by OpenID Connect Discovery
 * @throws {jose.errors.JWKSInvalid} (what is returned, too) with a message for operators, when there are no keys
 */
export function openIssuerKeys(
  { privateIssuers }: { readonly privateIssuers: readonly string[] },
  { timeoutMs = 5_000, lookup = addressesOf } = {},
): (source: { readonly issuer: string; readonly jwks: unknown }) => jose.JWTVerifyGetKey {
  const byDiscovery = (issuer: string): jose.JWTVerifyGetKey => {
    const isPrivate = privateIssuers.includes(issuer.toLowerCase())
    let failed: { readonly error: Error; readonly until: number } | undefined
    return jose.createRemoteJWKSet(new URL(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`), {
      timeoutDuration: timeoutMs,
      // Discovery and keys are one fetch: the issuer may have moved its keys.
      [jose.customFetch]: async (place, { signal }) => {
        if (failed !== undefined && Date.now() < failed.until) throw failed.error
        try {
          return Response.json(await fetchKeys(issuer, new URL(place), isPrivate, signal, lookup))
        } catch (cause) {
          const late = `no whole answer came within ${timeoutMs} ms`
          const reason = signal.aborted ? late : (cause as Error).message || reasonOf(cause)
          const error = new jose.errors.JWKSInvalid(`The keys of ${issuer} could not be fetched: ${reason}.`, { cause })
          failed = { error, until: Date.now() + failedMs }
          throw error
        }
      },
    })
  }
  const known = new Map<string, jose.JWTVerifyGetKey>()
  return ({ issuer, jwks }) => {
    const open = () => (jwks === null ? byDiscovery(issuer) : jose.createLocalJWKSet(jwks as jose.JSONWebKeySet))
    const id = JSON.stringify([issuer, jwks])
    const keys = known.getOrInsertComputed(id, open)
    // The first is the one that was not used for longest: to forget one that is used would forget when it was last fetched.
    known.delete(id)
    known.set(id, keys)
    forgetOldest(known, maxIssuers)
    return keys
  }
}

const addressesOf = (host: string) => dns.lookup(host, { all: true })

type How = [signal: AbortSignal, lookup: typeof addressesOf]

async function fetchKeys(issuer: string, place: URL, isPrivate: boolean, ...how: How): Promise<object> {
  const found = (await read(place, isPrivate, ...how)) as { issuer?: unknown; jwks_uri?: unknown } | null
  if (found?.issuer !== issuer) throw new Error(`${place} has another issuer than this one, compared as text`)
  const uri = URL.parse(`${found.jwks_uri}`)
  if (uri === null) throw new Error(`${place} has no jwks_uri`)
  const keys = (await read(uri, isPrivate && uri.origin === place.origin, ...how)) as jose.JSONWebKeySet
  return jose.createLocalJWKSet(keys).jwks()
}

/** Reads JSON. Not by `fetch`, whose addresses cannot be judged. */
async function read(url: URL, isPrivate: boolean, ...[signal, lookup]: How): Promise<unknown> {
  const isSecure = url.protocol === 'https:'
  if (!isSecure && !isPrivate) throw new Error(`${url} is not https; http is for loopback addresses of PRIVATE_ISSUERS`)
  const late = aborted(signal, url).then(() => Promise.reject(signal.reason))
  const addresses = await Promise.race([lookup(url.hostname.replace(/^\[|\]$/g, '')), late])
  for (const { address } of addresses) {
    const range = ipaddr.parse(address).range()
    // Of IPv6, public addresses are in 2000::/3 alone. Elsewhere are forms such as ::10.0.0.1.
    const isPublic = range === 'unicast' && /^(\d+\.|[23][\da-f]{3}:)/i.test(address)
    if (isSecure ? !isPrivate && !isPublic : range !== 'loopback')
      throw new Error(`${url.host} has the address ${address} (${range}), which PRIVATE_ISSUERS alone allows, by https`)
  }
  // The socket gets the addresses that were judged. Each request has its own: another issuer may not share it.
  const judged: LookupFunction = (_host, _options, done) => done(null, addresses)
  const options = { signal, lookup: judged, agent: false, autoSelectFamily: true }
  const answer = new Promise<IncomingMessage>((resolve, reject) => {
    ;(isSecure ? https : http).get(url, options, resolve).on('upgrade', resolve).on('error', reject)
  })
  const response = await Promise.race([answer, late])
  try {
    const { statusCode = 0 } = response
    const hint = statusCode >= 300 && statusCode < 400 ? ', which redirects, and is not followed' : ''
    if (statusCode !== 200) throw new Error(`${url} answers ${statusCode}${hint}`)
    let text = ''
    for await (const chunk of response.setEncoding('utf8')) {
      text += chunk
      if (text.length > maxLength) throw new Error(`${url} answers more than ${maxLength} characters`)
    }
    return JSON.parse(text)
  } finally {
    response.destroy()
  }
}
