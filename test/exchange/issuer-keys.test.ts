import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { errors, jwtVerify } from 'jose'
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { openIssuerKeys } from '../../src/exchange/issuer-keys.ts'
import { behindTls } from '../support/behind-tls.ts'
import { atEnd, discoveryPath, type Issuer, startIssuer } from '../support/kit.ts'

let issuer: Issuer
let verify: (jwt: string) => Promise<unknown>

/** How often the issuer was asked in earlier tests. */
let before: readonly number[]

beforeAll(async () => {
  issuer = await startIssuer()
})

beforeEach(async () => {
  for (const path of [discoveryPath, '/jwks']) await issuer.answer(path)
  await issuer.rotate({ keep: false })
  before = await requests()
  verify = verifierOf()
  later(0)
})

afterEach(() => void vi.useRealTimers())

/** What verifies tokens of the issuer, with a memory of its own. */
function verifierOf(timeoutMs = 60_000) {
  const keysOf = openIssuerKeys({ privateIssuers: [issuer.url] }, { timeoutMs })
  return (jwt: string) => jwtVerify(jwt, keysOf({ issuer: issuer.url, jwks: null }), { issuer: issuer.url })
}

const requests = async () => [await issuer.requests(discoveryPath), await issuer.requests('/jwks')]

/** How often each path was asked in this test. */
const asked = async () => (await requests()).map((count, index) => count - (before[index] ?? 0))

/** Lets time pass for this process, whose clock stands still otherwise. */
function later(seconds: number): void {
  const now = new Date(Date.now() + 1_000 * seconds)
  vi.useRealTimers()
  vi.useFakeTimers({ toFake: ['Date'], now })
}

/** Names with other addresses each time. */
function addressesOf(...answers: string[][]) {
  const names: string[] = []
  return {
    names,
    async lookup(name: string) {
      names.push(name)
      return (answers[names.length - 1] ?? []).map((address) => ({ address, family: 4 }))
    },
  }
}

const reasonOf = async (work: Promise<unknown>): Promise<string> => {
  const error = await work.then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(error).toBeInstanceOf(errors.JWKSInvalid)
  return (error as Error).message
}

describe('the keys of an issuer', () => {
  test('are fetched once for many tokens at once, and for those after them', async () => {
    const jwts = await Promise.all([1, 2, 3, 4, 5].map(() => issuer.sign()))
    await Promise.all(jwts.map(verify))
    await verify(await issuer.sign())
    expect(await asked()).toEqual([1, 1])
  })

  test('are fetched again after ten minutes, from where the issuer has moved them', async () => {
    const jwt = await issuer.sign({}, { expiresIn: 3_600 })
    await verify(jwt)
    await issuer.answer(discoveryPath, { json: { issuer: issuer.url, jwks_uri: `${issuer.url}/moved` } })
    await issuer.answer('/moved', { json: await issuer.jwks() })
    await issuer.answer('/jwks', { json: {}, status: 410 })
    later(599)
    await verify(jwt)
    expect(await asked()).toEqual([1, 1])
    later(2)
    await verify(jwt)
    expect([...(await asked()), await issuer.requests('/moved')]).toEqual([2, 1, 1])
  })

  test('are fetched once for a new kid, not sooner than half a minute after the last time', async () => {
    await verify(await issuer.sign())
    await issuer.rotate({ keep: false })
    const jwt = await issuer.sign()
    later(29)
    await expect(verify(jwt)).rejects.toThrow(errors.JWKSNoMatchingKey)
    expect(await asked()).toEqual([1, 1])
    later(2)
    await Promise.all([verify(jwt), verify(jwt)])
    await verify(jwt)
    expect(await asked()).toEqual([2, 2])
  })

  test('are fetched once for a flood of tokens with kids that do not exist', async () => {
    await verify(await issuer.sign())
    const flood = await Promise.all(Array.from({ length: 40 }, (_, index) => issuer.sign({}, { kid: `none-${index}` })))
    later(31)
    const results = await Promise.allSettled(flood.map(verify))
    for (const jwt of flood) results.push(...(await Promise.allSettled([verify(jwt)])))
    expect(new Set(results.map((result) => result.status))).toEqual(new Set(['rejected']))
    expect(await asked()).toEqual([2, 2])
  })

  test('are used while the issuer is away, until they are old', async () => {
    const jwt = await issuer.sign({}, { expiresIn: 3_600 })
    await verify(jwt)
    await issuer.answer(discoveryPath, { json: {}, status: 500 })
    later(31)
    expect(await reasonOf(verify(await issuer.sign({}, { kid: 'new' })))).toMatch(/answers 500\.$/)
    await verify(jwt)
    later(570)
    expect(await reasonOf(verify(jwt))).toMatch(/answers 500\.$/)
  })

  test('may be several, of several algorithms', async () => {
    for (const alg of ['ES256', 'EdDSA', 'PS256'] as const) await issuer.rotate({ alg })
    for (const { kid = '' } of (await issuer.jwks()).keys) await verify(await issuer.sign({}, { kid }))
    expect(await asked()).toEqual([1, 1])
  })

  test('are never a secret: a token signed with the text of the public key is refused', async () => {
    for (const alg of ['HS256', 'none'])
      await expect(verify(await issuer.sign({}, { alg }))).rejects.toThrow(errors.JOSENotSupported)
    expect((await asked())[0]).toBeLessThanOrEqual(1)
  })

  test('are those that it was given, and nothing is fetched', async () => {
    const jwks = await issuer.jwks()
    const source = { issuer: issuer.url, jwks }
    const keysOf = openIssuerKeys({ privateIssuers: [] })
    await jwtVerify(await issuer.sign(), keysOf(source))
    expect(keysOf({ ...source })).toBe(keysOf(source))
    await issuer.rotate()
    await expect(jwtVerify(await issuer.sign(), keysOf(source))).rejects.toThrow(errors.JWKSNoMatchingKey)
    // Other keys of the same issuer are others at once.
    await jwtVerify(await issuer.sign(), keysOf({ ...source, jwks: await issuer.jwks() }))
    expect(await asked()).toEqual([0, 0])
    expect(() => keysOf({ ...source, jwks: { keys: 'none' } })).toThrow(errors.JWKSInvalid)
  })

  test('are kept for a hundred issuers: the one that was not used for longest goes', async () => {
    const keysOf = openIssuerKeys({ privateIssuers: [] })
    const keysOfThe = (index: number) => keysOf({ issuer: `https://ci-${index}.example`, jwks: null })
    const keys = Array.from({ length: 100 }, (_, index) => keysOfThe(index))
    expect(keysOfThe(0)).toBe(keys[0])
    const last = keysOfThe(100)
    expect([keysOfThe(100), keysOfThe(0), keysOfThe(2)]).toEqual([last, keys[0], keys[2]])
    expect(keysOfThe(1)).not.toBe(keys[1])
  })
})

describe('an answer that is not good', () => {
  const other = 'http://127.0.0.1:9/jwks'
  const withKeysAt = (jwks_uri: unknown) => ({ json: { issuer: issuer.url, jwks_uri } })

  test.each<[string, () => [string, Parameters<Issuer['answer']>[1]], RegExp]>([
    ['an error', () => [discoveryPath, { json: {}, status: 500 }], /openid-configuration answers 500\.$/],
    ['an error for the keys', () => ['/jwks', { json: {}, status: 503 }], /\/jwks answers 503\.$/],
    ['a redirect', () => [discoveryPath, { redirect: other }], /answers 302, which redirects/],
    [
      'a redirect for the keys',
      () => ['/jwks', { redirect: '/jwks2', status: 308 }],
      /\/jwks answers 308, which redirects/,
    ],
    [
      'an endless one',
      () => [discoveryPath, { sends: 'endless' }],
      /openid-configuration answers more than 262144 char/,
    ],
    ['another protocol', () => [discoveryPath, { sends: 'upgrade' }], /openid-configuration answers 101\.$/],
    ['another protocol for the keys', () => ['/jwks', { sends: 'upgrade' }], /\/jwks answers 101\.$/],
    ['endless keys', () => ['/jwks', { sends: 'endless' }], /\/jwks answers more than 262144 characters\.$/],
    ['a page', () => [discoveryPath, { body: '<html>' }], /is not valid JSON/],
    ['null', () => [discoveryPath, { json: null }], /has another issuer/],
    ['another issuer', () => [discoveryPath, { json: { issuer: `${issuer.url}/` } }], /has another issuer/],
    ['no place of keys', () => [discoveryPath, withKeysAt(undefined)], /openid-configuration has no jwks_uri\.$/],
    ['a place that is no URL', () => [discoveryPath, withKeysAt({})], /openid-configuration has no jwks_uri\.$/],
    [
      'another port of a private host',
      () => [discoveryPath, withKeysAt(other)],
      /^.*: http:\/\/127.0.0.1:9\/jwks is not https/,
    ],
    [
      'a private host',
      () => [discoveryPath, withKeysAt('https://10.1.2.3/k')],
      /10\.1\.2\.3 has the address 10\.1\.2\.3 \(private\)/,
    ],
    ['a file', () => [discoveryPath, withKeysAt('file:///etc/passwd')], /file:\/\/\/etc\/passwd is not https/],
    ['no key set', () => ['/jwks', { json: [] }], /JSON Web Key Set malformed\.$/],
    ['keys that are none', () => ['/jwks', { json: { keys: [1] } }], /JSON Web Key Set malformed\.$/],
  ])('is %s: a sentence says so, and five seconds later it is asked again', async (_, answerOf, reason) => {
    const [path, how] = answerOf()
    await issuer.answer(path, how)
    const jwt = await issuer.sign()
    const reasons = await Promise.all([verify(jwt), verify(jwt)].map(reasonOf))
    reasons.push(await reasonOf(verify(jwt)))
    expect(reasons[0]).toMatch(reason)
    expect(reasons[0]?.startsWith(`The keys of ${issuer.url} could not be fetched: `)).toBe(true)
    await issuer.answer(path)
    later(4)
    reasons.push(await reasonOf(verify(jwt)))
    expect(new Set(reasons).size).toBe(1)
    expect((await asked())[0]).toBe(1)
    later(2)
    await verify(jwt)
    expect((await asked())[0]).toBe(2)
  })

  test.each([
    ['that never comes', discoveryPath, 'nothing'],
    ['with keys that never come', '/jwks', 'nothing'],
    ['that comes a byte at a time', discoveryPath, 'slowly'],
    ['with keys a byte at a time', '/jwks', 'slowly'],
  ] as const)('%s is waited for no longer than the limit', async (_, path, sends) => {
    await issuer.answer(path, { sends })
    expect(await reasonOf(verifierOf(300)(await issuer.sign()))).toMatch(/: no whole answer came within 300 ms\.$/)
  })

  test('is none at all', async () => {
    const keysOf = openIssuerKeys({ privateIssuers: ['http://127.0.0.1:9'] })
    const jwt = await issuer.sign()
    const reason = await reasonOf(jwtVerify(jwt, keysOf({ issuer: 'http://127.0.0.1:9', jwks: null })))
    expect(reason).toMatch(/could not be fetched: connect ECONNREFUSED 127\.0\.0\.1:9\.$/)
  })
})

describe('an issuer', () => {
  const refusalOf = async (url: string, privateIssuers: string[] = []): Promise<string> => {
    const keysOf = openIssuerKeys({ privateIssuers })
    return await reasonOf(jwtVerify(await issuer.sign(), keysOf({ issuer: url, jwks: null })))
  }

  test('whose host has an address that is not public is not asked', async () => {
    let connections = 0
    const server = createServer((socket) => {
      connections += 1
      socket.destroy()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    atEnd(async () => void server.close())
    const { port } = server.address() as { port: number }
    const hosts = [
      '127.0.0.1',
      '127.1',
      '2130706433',
      '0x7f000001',
      '017700000001',
      'localhost',
      'LOCALHOST',
      '0.0.0.0',
      '[::]',
    ]
    for (const host of [...hosts, '[::1]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::127.0.0.1]'])
      expect(await refusalOf(`https://${host}:${port}`), host).toMatch(
        /has the address \S+ \((loopback|unspecified|ipv4Mapped|unicast)\), which PRIVATE_ISSUERS alone allows/,
      )
    expect(connections).toBe(0)
  })

  test.each([
    ['10.0.0.1', 'private'],
    ['172.16.0.1', 'private'],
    ['192.168.0.1', 'private'],
    ['169.254.169.254', 'linkLocal'],
    ['100.64.0.1', 'carrierGradeNat'],
    ['224.0.0.1', 'multicast'],
    ['255.255.255.255', 'broadcast'],
    ['240.0.0.1', 'reserved'],
    ['192.0.2.1', 'reserved'],
    ['[::ffff:10.0.0.1]', 'ipv4Mapped'],
    ['[::ffff:8.8.8.8]', 'ipv4Mapped'],
    ['[::10.0.0.1]', 'unicast'],
    ['[2::1]', 'unicast'],
    ['[4000::1]', 'unicast'],
    ['[64:ff9b::a00:1]', 'rfc6052'],
    ['[2002:a00:1::]', '6to4'],
    ['[2001::1]', 'teredo'],
    ['[fd00::1]', 'uniqueLocal'],
    ['[fe80::1]', 'linkLocal'],
    ['[fec0::1]', 'deprecatedSiteLocal'],
    ['[ff02::1]', 'multicast'],
    ['[2001:db8::1]', 'reserved'],
  ])('at %s (%s) is not asked', async (host, range) => {
    expect(await refusalOf(`https://${host}`)).toContain(` (${range}), which PRIVATE_ISSUERS alone allows, by https.`)
  })

  test('whose name has a public and a private address is not asked', async () => {
    for (const addresses of [
      ['8.8.8.8', '10.0.0.1'],
      ['10.0.0.1', '8.8.8.8'],
    ]) {
      const { lookup, names } = addressesOf(addresses)
      const keysOf = openIssuerKeys({ privateIssuers: [] }, { lookup })
      const reason = await reasonOf(jwtVerify(await issuer.sign(), keysOf({ issuer: 'https://ci.test', jwks: null })))
      expect(reason).toContain('ci.test has the address 10.0.0.1 (private), which PRIVATE_ISSUERS alone allows')
      expect(names).toEqual(['ci.test'])
    }
  })

  test('is connected to the addresses that were judged: each request asks once for its name', async () => {
    const url = issuer.url.replace('127.0.0.1', 'ci.test')
    await issuer.answer(discoveryPath, { json: { issuer: url, jwks_uri: `${url}/jwks` } })
    const { lookup, names } = addressesOf(['127.0.0.1'], ['127.0.0.1'], ['10.0.0.1'])
    const keysOf = openIssuerKeys({ privateIssuers: [url] }, { lookup })
    const verified = async () => jwtVerify(await issuer.sign({ iss: url }), keysOf({ issuer: url, jwks: null }))
    await verified()
    expect(names).toEqual(['ci.test', 'ci.test'])
    expect(await asked()).toEqual([1, 1])
    later(601)
    expect(await reasonOf(verified())).toContain(' has the address 10.0.0.1 (private)')
    expect(await asked()).toEqual([1, 1])
  })

  test('without https is not asked, also when another one of its host may be private', async () => {
    const others = [`${issuer.url}/other`, issuer.url.replace('127.0.0.1', 'localhost')]
    expect(await refusalOf(issuer.url, others)).toContain(`${discoveryPath} is not https`)
    expect(await refusalOf('http://ci.example', [issuer.url])).toContain(`${discoveryPath} is not https`)
    expect(await refusalOf('http://10.0.0.1', ['http://10.0.0.1'])).toContain('has the address 10.0.0.1 (private)')
    expect(await asked()).toEqual([0, 0])
  })

  test('may have a name for its loopback address, a path and capital letters', async () => {
    const url = `${issuer.url.replace('127.0.0.1', 'localhost')}/Acme/`
    await issuer.answer(`/Acme${discoveryPath}`, { json: { issuer: url, jwks_uri: new URL('/jwks', url) } })
    const keysOf = openIssuerKeys({ privateIssuers: [url.toLowerCase()] })
    await jwtVerify(await issuer.sign({ iss: url }), keysOf({ issuer: url, jwks: null }), { issuer: url })
    expect(await asked()).toEqual([0, 1])
  })

  test('with https is asked if its certificate is of a known authority, and for keys by https alone', async () => {
    const { port, authority } = await behindTls(issuer.url, 'localhost')
    const url = `https://localhost:${port}`
    const jwt = await issuer.sign({ iss: url })
    const attempt = async () => {
      const keysOf = openIssuerKeys({ privateIssuers: [url] })
      return await jwtVerify(jwt, keysOf({ issuer: url, jwks: null }), { issuer: url })
    }
    await issuer.answer(discoveryPath, { json: { issuer: url, jwks_uri: `${url}/jwks` } })
    expect(await reasonOf(attempt())).toMatch(/could not be fetched: self-signed certificate/)
    const authorities = getCACertificates()
    setDefaultCACertificates([...authorities, readFileSync(authority, 'utf8')])
    try {
      await attempt()
      expect(await asked()).toEqual([1, 1])
      await issuer.answer(discoveryPath, { json: { issuer: url, jwks_uri: `http://localhost:${port}/jwks` } })
      expect(await reasonOf(attempt())).toContain('/jwks is not https')
    } finally {
      setDefaultCACertificates(authorities)
    }
  })
})
