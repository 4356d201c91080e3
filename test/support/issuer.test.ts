import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from 'jose'
import { expect, test } from 'vitest'
import { githubClaims, type Issuer, startIssuer } from './kit.ts'

let issuer: Issuer

const read = async <Body>(url: string, headers: Record<string, string> = {}): Promise<Body> =>
  (await (await fetch(url, { headers })).json()) as Body

test('an issuer shows its keys, and signs with them', async () => {
  issuer = await startIssuer()
  const discovery = await read<{ jwks_uri: string }>(`${issuer.url}/.well-known/openid-configuration`)
  expect(discovery).toMatchObject({ issuer: issuer.url, jwks_uri: `${issuer.url}/jwks` })
  const keys = await read<JSONWebKeySet>(discovery.jwks_uri)
  expect(keys).toEqual(await issuer.jwks())
  const jwt = await issuer.sign({ sub: 'a', jti: null })
  const { payload } = await jwtVerify(jwt, createLocalJWKSet(keys), { issuer: issuer.url, audience: 'gatewright' })
  expect(payload).toEqual({
    iss: issuer.url,
    aud: 'gatewright',
    sub: 'a',
    iat: expect.any(Number),
    exp: expect.any(Number),
  })
  expect(await issuer.requests('/jwks')).toBe(1)
})

test('a rotated issuer signs with the new key, and shows the old one if it is kept', async () => {
  const [before] = (await issuer.jwks()).keys
  const kid = await issuer.rotate({ alg: 'ES256' })
  expect(decodeProtectedHeader(await issuer.sign())).toEqual({ typ: 'JWT', alg: 'ES256', kid })
  expect((await issuer.jwks()).keys.map((key) => key.kid)).toEqual([before?.kid, kid])
  const last = await issuer.rotate({ keep: false })
  expect((await issuer.jwks()).keys.map((key) => key.kid)).toEqual([last])
  expect(decodeProtectedHeader(await issuer.sign({}, { alg: 'none' })).alg).toBe('none')
  expect(decodeProtectedHeader(await issuer.sign({}, { alg: 'HS256', kid: null }))).toEqual({
    typ: 'JWT',
    alg: 'HS256',
  })
})

test("GitHub's endpoint answers who has the request token", async () => {
  await issuer.job(githubClaims({ ref: 'refs/heads/next' }))
  const { ACTIONS_ID_TOKEN_REQUEST_URL: url, ACTIONS_ID_TOKEN_REQUEST_TOKEN: token } = issuer.github
  expect((await fetch(`${url}&audience=x`)).status).toBe(401)
  const { value } = await read<{ value: string }>(`${url}&audience=x`, { authorization: `bearer ${token}` })
  expect(decodeJwt(value)).toMatchObject({ aud: 'x', repository: 'acme/shop', ref: 'refs/heads/next' })
  expect(await issuer.requests('/github/token')).toBe(2)
})

test('a path answers otherwise until it may answer as it should', async () => {
  await issuer.answer('/jwks', { json: {}, status: 500 })
  expect((await fetch(`${issuer.url}/jwks`)).status).toBe(500)
  await issuer.answer('/jwks')
  expect((await fetch(`${issuer.url}/jwks`)).status).toBe(200)
})
