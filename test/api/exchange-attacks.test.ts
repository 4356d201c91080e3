import { createHash, createSign, generateKeyPairSync, randomUUID } from 'node:crypto'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { beforeEach, describe, expect, test } from 'vitest'
import { held } from '../runs/stand.ts'
import { answered, applied, installation, rows, sql, startIssuer, until } from '../support/kit.ts'
import { anIssuer, audience, type Exchanged, exchangePath, exchangeStand, ruleFor } from './exchange-stand.ts'

/** Identity tokens that get no access token, and what callers and operators learn of them. */

const issuer = await startIssuer()
/** One whose keys are too short. */
const weak = await startIssuer()
const on = await installation({ privateIssuers: [issuer.url, weak.url] })
const { db } = on
const stand = exchangeStand(on, issuer)
/** One whose keys are stored with it. */
const rotating = await startIssuer()
const onRotating = exchangeStand(on, rotating)
const { trust, exchange, post, sign, fieldsOf, attrsOf } = stand

const member = await on.make.user({ permissions: ['view_application'] })
const rule = ruleFor(member.username)
let name: string
beforeEach(async () => {
  name = await trust([rule])
})

/** What each 401 has, byte by byte. */
const bare = ({ status, text, headers }: Exchanged) => {
  const { 'x-request-id': _, date, ratelimit, ...others } = headers
  return { status, text, others }
}
let usual: ReturnType<typeof bare> | undefined

/** What operators must have seen at the end: refusals are written once a second. */
const expected: { id: string; why: string | RegExp; isVerified: boolean; of: string }[] = []

/** Expects the 401 that all of them get. @param why a part of the reason, for operators */
async function refused(asked: Promise<Exchanged>, isVerified: boolean, why: string | RegExp): Promise<void> {
  const answer = await asked
  expect(answer.status, answer.text).toBe(401)
  expect(answer.detail).toMatch(/^This identity token gets no access token\./)
  usual ??= bare(answer)
  expect(bare(answer)).toEqual(usual)
  expect(await db.exchangedToken.count({ where: { issuer: { name } } })).toBe(0)
  expected.push({ id: answer.id, why, isVerified, of: expect.getState().currentTestName ?? '' })
}
/** Refused with a token that is not verified. */
const unverified = (asked: Promise<Exchanged>, why: string | RegExp = /./) => refused(asked, false, why)
/** Refused though the issuer signed it. */
const verified = (asked: Promise<Exchanged>, why: string | RegExp = /./) => refused(asked, true, why)

const base64 = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
const payloadOf = (jwt: string) => JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString())

/** The answer to a text as identity token. */
const send = (jwt: string) => post(fieldsOf(jwt))

describe('times', () => {
  test('an expired token', async () => {
    await verified(exchange({}, { expiresIn: -100, issuedIn: -200 }), /"exp" claim.*repo:acme\/shop:ref/)
  })
  test('one that is not valid yet', async () => {
    await verified(exchange({ nbf: Math.floor(Date.now() / 1_000) + 200 }), /"nbf" claim/)
  })
  test('one from the future', async () => {
    await verified(exchange({}, { issuedIn: 200 }), /"iat" claim/)
  })
  test('one that is older than a day', async () => {
    await verified(exchange({}, { issuedIn: -90_000 }), /"iat" claim/)
  })
  test.each(['exp', 'iat', 'sub'])('one without %s', async (claim) => {
    await verified(exchange({ [claim]: null }), `"${claim}"`)
  })
  test.each(['exp', 'nbf', 'iat'])('one whose %s is no number', async (claim) => {
    await verified(exchange({ [claim]: 'tomorrow' }), `"${claim}"`)
  })
  test('the skew that the issuer allows, and no more', async () => {
    await trust([rule], { clock_skew: 200 })
    for (const how of [{ expiresIn: -100, issuedIn: -200 }, { issuedIn: 100 }]) await answered(200, exchange({}, how))
    name = await trust([rule], { clock_skew: 0 })
    await verified(exchange({}, { expiresIn: -30, issuedIn: -60 }))
  })
})

describe('for others', () => {
  test('another audience', async () => {
    await verified(
      exchange({ aud: 'https://iam.example.com/' }),
      /"aud" claim.*for \["https:\/\/iam\.example\.com\/"\]/,
    )
  })
  test('no audience', async () => await verified(exchange({ aud: null }), '"aud"'))
  test.each([[[]], [{ aud: audience }], [7], [['a', 'b']], [[[audience]]]])('the audience %j', async (aud) => {
    await verified(exchange({ aud }), '"aud"')
  })
  test('a list of audiences with the wanted one is taken', async () => {
    await answered(200, exchange({ aud: ['other', audience] }))
  })
  test('an audience that no text can be made of', async () => {
    const odd = { toString: 1, valueOf: 1 }
    await answered(200, exchange({ aud: [audience, odd] }))
    await db.exchangedToken.deleteMany()
    await verified(exchange({ aud: [odd] }), /"aud" claim.*for \[null\]/)
  })
  test.each(['https://evil.example', `${issuer.url}/`, issuer.url.toUpperCase(), `${issuer.url}@evil.example`])(
    'the issuer %s',
    async (iss) => {
      await unverified(exchange({ iss }), `No trusted issuer is ${JSON.stringify(iss)}.`)
    },
  )
  test.each([[null], [7], [[]], [{}], [[issuer.url]], [true]])('the issuer %j', async (iss) => {
    await unverified(send(`${base64({ alg: 'RS256' })}.${base64({ ...payloadOf(await sign()), iss })}.c2ln`))
  })
  test('another repository, and another case of it', async () => {
    for (const repository of ['acme/other', 'ACME/shop', 'acme/shop ', 'acme/shop/x'])
      await verified(
        exchange({ repository }),
        `No rule of trusted issuer ${JSON.stringify(name)} fits "repo:acme/shop:ref:refs/heads/main", job "1234567890", for ["${audience}"].`,
      )
  })
})

describe('signatures', () => {
  test('none', async () => {
    const [head, body] = (await sign()).split('.')
    await answered(400, exchange({}, { alg: 'none' }))
    await unverified(send(`${base64({ alg: 'none' })}.${body}.c2ln`))
    for (const jwt of [`${head}.${body}.`, `${head}.${body}`]) await answered(400, send(jwt))
  })
  test('with the public key as the secret', async () => {
    for (const alg of ['HS256', 'HS384', 'HS512']) await unverified(exchange({}, { alg }), /"alg"/)
  })
  test('with an algorithm that the issuer is not trusted with', async () => {
    await trust([rule], { algorithms: ['ES256', 'PS256'] })
    name = (await db.trustedIssuer.findFirstOrThrow()).name
    await unverified(exchange(), /"alg"/)
  })
  test('of another token', async () => {
    const [one = '', other = ''] = await Promise.all([sign(), sign({ ref: 'refs/heads/other' })])
    const [head, body] = one.split('.')
    await unverified(send(`${head}.${body}.${other.split('.')[2]}`), /signature/)
  })
  test('with changed claims', async () => {
    const [head, , signature] = (await sign({ repository: 'evil/shop' })).split('.')
    const jwt = `${head}.${base64({ ...payloadOf(await sign()) })}.${signature}`
    await unverified(send(jwt), /signature/)
  })
  test('of a key of the sender, in or behind the header', async () => {
    const { publicKey, privateKey } = await generateKeyPair('RS256', { extractable: true })
    const jwk = { ...(await exportJWK(publicKey)), kid: 'mine', alg: 'RS256', use: 'sig' }
    const payload = payloadOf(await sign())
    const own = await startIssuer()
    const before = await own.requests('/jwks')
    const evil = `${own.url}/jwks`
    for (const header of [{ jwk }, { jku: evil }, { x5u: evil }, { x5c: ['MIIB'] }, { jku: evil, jwk, x5u: evil }])
      for (const kid of ['mine', 'key-1', undefined]) {
        const signer = new SignJWT(payload).setProtectedHeader({ alg: 'RS256', ...(kid && { kid }), ...header })
        await unverified(send(await signer.sign(privateKey)))
      }
    expect(await own.requests('/jwks')).toBe(before)
    // They are ignored in a good token, too.
    await answered(200, exchange({}, { header: { jku: evil, x5u: evil, jwk } }))
    expect(await own.requests('/jwks')).toBe(before)
  })
  test('with a critical extension that is not understood', async () => {
    const [, body, signature] = (await sign()).split('.')
    for (const more of [{ crit: ['exp'], exp: 1 }, { crit: ['b64'], b64: false }, { crit: [] }, { crit: 'x' }])
      await unverified(send(`${base64({ alg: 'RS256', kid: 'key-1', ...more })}.${body}.${signature}`))
  })
})

describe('names of keys', () => {
  test.each([
    '../../../../etc/passwd',
    "key-1' OR '1'='1",
    '',
    'key-99',
    '__proto__',
    'toString',
    '\u0000',
    'key-1\nX: y',
  ])('%j', async (kid) => {
    await unverified(exchange({}, { header: { kid } }))
  })
  test.each([[null], [7], [['key-1']], [{ toString: 'key-1' }], [true]])('%j', async (kid) => {
    const [, body, signature] = (await sign()).split('.')
    await unverified(send(`${base64({ alg: 'RS256', typ: 'JWT', kid })}.${body}.${signature}`))
  })
  test('that of another key', async () => {
    const next = await rotating.rotate()
    const [old = ''] = (await rotating.jwks()).keys.map(({ kid }) => `${kid}`)
    const jwks = await rotating.jwks()
    name = await onRotating.trust([rule], { jwks })
    await unverified(onRotating.exchange({}, { kid: next, header: { kid: old } }), /signature/)
    await answered(200, onRotating.exchange({}, { kid: old }))
  })
})

describe('keys that rotate', () => {
  test('are taken as they are stored, and nothing is fetched', async () => {
    const jwks = await rotating.jwks()
    name = await onRotating.trust([rule], { jwks })
    await answered(200, onRotating.exchange())
    await db.exchangedToken.deleteMany()
    await rotating.rotate()
    await unverified(onRotating.exchange())
    await applied(on.admin.apply([anIssuer(name, { jwks: await rotating.jwks() })]))
    await answered(200, onRotating.exchange())
    await rotating.rotate({ keep: false })
    await applied(on.admin.apply([anIssuer(name, { jwks: await rotating.jwks() })]))
    await answered(200, onRotating.exchange())
    await db.exchangedToken.deleteMany()
    await unverified(onRotating.exchange({}, { kid: 'key-1' }))
    expect(await rotating.requests('/jwks')).toBe(0)
  })
  test('of other kinds verify other algorithms', async () => {
    for (const alg of ['PS256', 'ES256', 'EdDSA'] as const) {
      await rotating.rotate({ alg, keep: false })
      name = await onRotating.trust([rule], { jwks: await rotating.jwks(), algorithms: [alg] })
      await answered(200, onRotating.exchange())
      await applied(on.admin.apply([anIssuer(name, { algorithms: ['RS256'] })]))
      await db.exchangedToken.deleteMany()
      await unverified(onRotating.exchange(), /"alg"/)
    }
  })
})

describe('texts that are no tokens', () => {
  test.each([
    '',
    'a',
    'a.b',
    'a.b.',
    '.b.c',
    'a.b.c.d',
    'a.b.c.d.e',
    'ä.b.c',
    'a.b.c=',
    'a.b .c',
    'a.b.c\n',
    '[]',
    '{}',
  ])('%j is a 400 that names the field', async (jwt) => {
    const answer = await answered(400, send(jwt))
    expect(Object.keys(Object(answer.json))).toContain('subject_token')
  })
  test('parts that are no JSON, or no objects', async () => {
    const [head = '', body = '', signature = ''] = (await sign()).split('.')
    const parts = ['a', base64('x'), base64('[]'), base64('null'), base64('7'), base64('"text"'), base64('{"iss":')]
    for (const part of parts)
      for (const jwt of [`${part}.${body}.${signature}`, `${head}.${part}.${signature}`]) await unverified(send(jwt))
    await unverified(send(`${head}.${Buffer.from([0xff, 0xfe, 0x7b]).toString('base64url')}.${signature}`))
  })
  test('giants', async () => {
    const [head, , signature] = (await sign()).split('.')
    await answered(400, send(`${head}.${'a'.repeat(17_000)}.${signature}`))
    await answered(413, send(`${head}.${'a'.repeat(30_000)}.${signature}`))
    await answered(413, send(`${head}.${'a'.repeat(8_000_000)}.${signature}`))
    await unverified(send(`${head}.${base64(`${'['.repeat(6_000)}`)}.${signature}`))
    await unverified(exchange({ iss: `https://${'a'.repeat(9_000)}` }))
  })
})

describe('claims', () => {
  const wanted = { repository: ['acme/shop'] }
  test.each<object>([
    wanted,
    { repository: { 0: 'acme/shop' } },
    { repository: 7 },
    { repository: true },
    { ref: ['refs/heads/main'] },
    { ref: { toString: 'refs/heads/main' } },
    { ref: '' },
  ])('%j', async (claims) => {
    await verified(exchange(claims as Record<string, unknown>), /^No rule of trusted issuer/)
  })
  test('of the prototype match no rule', async () => {
    for (const claim of ['constructor', 'toString', 'hasOwnProperty']) {
      name = await trust([ruleFor(member.username, { claims: { ...rule.claims, [claim]: 'x' } })])
      await verified(exchange())
      await answered(200, exchange({ [claim]: 'x' }))
    }
    const made = anIssuer(name, attrsOf([]))
    const text = JSON.stringify({ version: 1, metadata: { name: 'proto' }, entries: [made] }).replace(
      '"rules":[]',
      `"rules":[{"name":"a","user":"x","claims":{"sub":"x","__proto__":"x"}}]`,
    )
    await answered(400, on.admin.put('/api/v3/blueprints/', text))
  })
  test('with any texts are kept, and are no secret of the service', async () => {
    const odd = '\u0000<script>"\\\u202e\ud800'
    await answered(200, exchange({ actor: odd, sha: 'x'.repeat(5_000), jti: odd, run_id: { a: 1 } }))
    await answered(200, exchange({ actor: { name: 'ann' }, sha: ['x'], jti: ['x'], sub: odd }))
    await db.exchangedToken.deleteMany()
    await verified(exchange({ sub: odd, repository: 'x' }))
  })
  test('a subject that is no text', async () => {
    for (const sub of [7, ['x'], {}, true]) {
      await answered(200, exchange({ sub }))
      await db.exchangedToken.deleteMany()
      await verified(exchange({ sub, repository: 'x' }))
    }
  })
})

describe('the request', () => {
  test('takes forms alone', async () => {
    const fields = fieldsOf(await sign())
    for (const type of ['application/json', 'text/plain', 'multipart/form-data; boundary=x', 'application/yaml'])
      expect((await post(JSON.stringify(fields), { 'content-type': type })).status, type).toBe(415)
    await answered(200, post(fields, { 'content-type': 'application/x-www-form-urlencoded; charset=UTF-8' }))
  })
  test('names missing, doubled, wrong and unknown fields', async () => {
    const fields = fieldsOf(await sign())
    const pairs = Object.entries(fields)
    const namesOf = async (body: Parameters<typeof post>[0]) =>
      Object.keys(Object((await answered(400, post(body))).json)).filter((each) => each !== 'code' && each !== 'error')
    for (const field of Object.keys(fields)) {
      expect(await namesOf(pairs.filter(([each]) => each !== field))).toEqual([field])
      expect(await namesOf([...pairs, [field, fields.subject_token]])).toEqual([field])
      expect(await namesOf({ ...fields, [field]: 'x' })).toEqual([field])
    }
    expect(await namesOf([...pairs, ['requested_token_type', 'x']])).toEqual(['requested_token_type'])
    for (const field of ['actor_token', 'client_secret', '__proto__', 'subject_token[]'])
      expect(await namesOf([...pairs, [field, 'x']]), field).toEqual([field])
    expect(await namesOf('')).toEqual(expect.arrayContaining(Object.keys(fields)))
  })
  test('may have what standard clients of RFC 8693 send, and a refusal is one of RFC 6749', async () => {
    const standard = {
      client_id: 'shop',
      scope: 'openid',
      audience: 'https://x.example',
      resource: 'https://x.example',
    }
    await answered(200, post({ ...fieldsOf(await sign()), ...standard }))
    const more = ['audience', 'resource'].map((each) => [each, 'https://y.example'] as const)
    await answered(200, post([...Object.entries({ ...fieldsOf(await sign()), ...standard }), ...more]))
    const wrong = await answered(400, post({ ...fieldsOf(await sign()), grant_type: 'password' }))
    expect(wrong.json).toMatchObject({ error: 'invalid_request', code: 'invalid', grant_type: [expect.any(String)] })
    const { json } = await answered(401, exchange({ repository: 'acme/other' }))
    expect(json).toEqual({ error: 'invalid_grant', code: 'not_authenticated', detail: expect.any(String) })
  })
  test('has no query, and a token of the caller counts for nothing', async () => {
    const fields = fieldsOf(await sign())
    const url = `${exchangePath}?subject_token=x`
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const payload = new URLSearchParams(fields).toString()
    await answered(400, on.admin.send({ method: 'POST', url, headers, payload }))
    const { json } = await answered(200, on.admin.send({ method: 'POST', url: exchangePath, headers, payload }))
    const { access_token: token } = json as { access_token: string }
    const me = await answered(200, on.as(token).get('/api/v3/core/users/me/'))
    expect(me.json).toMatchObject({ user: { pk: member.pk } })
  })
  test('the identity token is no bearer token', async () => {
    const jwt = await sign()
    for (const path of ['/api/v3/core/users/me/', exchangePath, '/api/v3/core/applications/'])
      await answered(401, on.as(jwt).get(path))
    await answered(401, on.as(jwt).apply([]))
    const { accessToken } = await send(jwt)
    await answered(401, on.as(jwt).get(exchangePath))
    expect((await send(accessToken)).status).toBe(400)
  })
})

test('unknown issuer, bad signature, no rule and no user are one answer, byte by byte', async () => {
  usual = undefined
  const [head, body] = (await sign()).split('.')
  const answers = [
    await exchange({ iss: 'https://evil.example' }),
    await send(`${head}.${body}.${base64('x'.repeat(256))}`),
    await exchange({ repository: 'acme/other' }),
    await exchange({ aud: 'other' }),
    await exchange({}, { expiresIn: -100, issuedIn: -200 }),
    await send('a.b.c'),
  ]
  await trust([ruleFor(`nobody-${randomUUID()}`)])
  answers.push(await exchange())
  for (const answer of answers) expect(bare(answer)).toEqual(bare(answers[0] as Exchanged))
  expect(answers[0]?.text).not.toMatch(/issuer|signature|rule|evil/)
})

describe('the user of the rule', () => {
  const reason = (user: string) =>
    `Rule "main" of trusted issuer ${JSON.stringify(name)} is for user ${JSON.stringify(user)}, who is not there or not active; or the issuer was changed meanwhile.`

  test('is missing', async () => {
    const user = `user-${randomUUID()}`
    name = await trust([ruleFor(user)])
    await verified(exchange(), reason(user))
  })
  test('is not active', async () => {
    const { username } = await on.make.user({ isActive: false })
    name = await trust([ruleFor(username)])
    await verified(exchange(), reason(username))
  })
})

describe('what goes while a token is exchanged', () => {
  const waiting = sql`SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`
  /** Exchanges a token, for which the API waits until another transaction has done this. */
  async function meanwhile(take: ReturnType<typeof sql>, more: () => Promise<unknown> = async () => {}) {
    const jwt = await sign()
    const release = await held(on, (tx) => tx.$executeRaw(take))
    const asked = send(jwt)
    await until('the exchange to wait', async () => (await rows(db, waiting)).length > 0)
    await more()
    await release()
    return asked
  }

  test('its user, for thirty jobs at once: few of them wait for the lock, and requests of others are answered', async () => {
    const { username } = await on.make.user()
    name = await trust([ruleFor(username)])
    const jwts = await Promise.all(Array.from({ length: 30 }, () => sign()))
    const release = await held(on, (tx) =>
      tx.$executeRaw(sql`SELECT FROM users WHERE username = ${username} FOR UPDATE`),
    )
    const asked = jwts.map(send)
    await until('four exchanges to wait', async () => (await rows(db, waiting)).length >= 4)
    await answered(200, on.as(member.token).get('/api/v3/core/users/me/'))
    expect(await rows(db, waiting)).toHaveLength(4)
    await release()
    for (const each of asked) await answered(200, each)
  })
  test('its issuer', async () => {
    await verified(
      meanwhile(sql`DELETE FROM trusted_issuers WHERE name = ${name}`),
      /or the issuer was changed meanwhile/,
    )
  })
  test('its user', async () => {
    const { username } = await on.make.user()
    name = await trust([ruleFor(username)])
    await verified(meanwhile(sql`DELETE FROM users WHERE username = ${username}`), JSON.stringify(username))
  })
  test('the activity of its user', async () => {
    const { username } = await on.make.user()
    name = await trust([ruleFor(username)])
    await verified(meanwhile(sql`UPDATE users SET is_active = false WHERE username = ${username}`), 'not active')
  })
  test('its rule', async () => {
    const locked = sql`LOCK TABLE users IN EXCLUSIVE MODE`
    const change = () => db.trustedIssuer.updateMany({ where: { name }, data: { rules: [] } })
    await verified(meanwhile(locked, change), /or the issuer was changed meanwhile/)
  })
  test.each([
    { audience: 'other' },
    { algorithms: ['ES512'] },
    { jwks: { keys: [] } },
    { issuer: 'https://other.example' },
    { ceilings: [[]] },
  ])('what its issuer is trusted by: %o', async (data) => {
    const change = () => db.trustedIssuer.updateMany({ where: { name }, data })
    await verified(meanwhile(sql`LOCK TABLE users IN EXCLUSIVE MODE`, change), /or the issuer was changed meanwhile/)
  })
})

describe('again', () => {
  const audited = async ({ id }: Exchanged) => (await db.auditRow.findFirstOrThrow({ where: { requestId: id } })).action

  test('the same token gets another access token with the same rights, which the audit says', async () => {
    const jwt = await sign()
    const [one, other] = [await send(jwt), await send(jwt)]
    expect([await audited(one), await audited(other)]).toEqual(['exchange', 'exchange_again'])
    expect(one.accessToken).not.toBe(other.accessToken)
    const seen = await Promise.all([one, other].map((each) => answered(200, on.as(each.accessToken).get(exchangePath))))
    const rest = seen.map(({ json }) => ({ ...Object(json), expires: null }))
    expect(rest[0]).toEqual(rest[1])
    // Another token with the same `jti` is the same by the issuer's word; without one, the token itself counts.
    expect(await audited(await exchange({ jti: payloadOf(jwt).jti }))).toBe('exchange_again')
    const without = await sign({ jti: null })
    expect([await audited(await send(without)), await audited(await send(without))]).toEqual([
      'exchange',
      'exchange_again',
    ])
    // The last character of a signature has bits that are not read.
    const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const spelt = `${without.slice(0, -1)}${digits[digits.indexOf(without.at(-1) ?? '') ^ 1]}`
    expect(await audited(await send(spelt))).toBe('exchange_again')
    expect(await audited(await exchange({ jti: null, run_id: '7' }))).toBe('exchange')
  })
  test('together, twenty times: all are answered', async () => {
    const jwt = await sign()
    const answers = await Promise.all(Array.from({ length: 20 }, () => send(jwt)))
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    expect(new Set(answers.map(({ accessToken }) => accessToken)).size).toBe(20)
    // One of them was the first.
    const actions = await Promise.all(answers.map(audited))
    expect(actions.toSorted()).toEqual(['exchange', ...Array(19).fill('exchange_again')])
  })
  test('names of tokens differ in each of their characters, however long they are', async () => {
    const long = 'x'.repeat(300)
    for (const jti of [`${long}1`, `${long}2`, long, ['x'], ['y']])
      expect(await audited(await exchange({ jti })), JSON.stringify(jti)).toBe('exchange')
    for (const jti of [`${long}1`, ['y']]) expect(await audited(await exchange({ jti }))).toBe('exchange_again')
  })
})

/** Copies the access tokens of the member. @param identity of each copy, in SQL */
const multiply = (count: number, identity: ReturnType<typeof sql>) =>
  db.$executeRaw(sql`INSERT INTO exchanged_tokens (pk, key_hash, user_pk, issuer_pk, rule, ceiling, pipeline, identity, trust, expires)
    SELECT gen_random_uuid(), decode(md5(i::text), 'hex'), e.user_pk, e.issuer_pk, e.rule, e.ceiling, e.pipeline, ${identity}, e.trust, e.expires
    FROM exchanged_tokens e, generate_series(1, ${count}::integer) i WHERE e.user_pk = ${member.pk}`)

test('the jobs of one rule have at most 1 000 access tokens at a time', async () => {
  await answered(200, exchange())
  await multiply(999, sql`i::text`)
  const answer = await answered(429, exchange())
  expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
  // Others have their own, and an expired one does not count.
  const other = await on.make.user()
  await applied(on.admin.apply([anIssuer(name, { rules: [rule, ruleFor(other.username, { name: 'a-first' })] })]))
  await answered(200, exchange())
  await applied(on.admin.apply([anIssuer(name, { rules: [rule] })]))
  await db.$executeRaw(sql`UPDATE exchanged_tokens SET expires = now() WHERE identity = '7'`)
  // Of many at once, one is the last.
  const jwts = await Promise.all(Array.from({ length: 12 }, () => sign()))
  const statuses = await Promise.all(jwts.map(async (jwt) => (await send(jwt)).status))
  expect(statuses.toSorted()).toEqual([200, ...Array(11).fill(429)])
  await answered(429, exchange())
  // Another team has another rule, for the same user.
  const claims = { repository: 'acme/other' }
  await applied(
    on.admin.apply([anIssuer(name, { rules: [rule, ruleFor(member.username, { name: 'other', claims })] })]),
  )
  await answered(200, exchange({ repository: 'acme/other' }))
})

test('one identity token has at most 200 access tokens at a time, and stops no other job', async () => {
  const jwt = await sign()
  await answered(200, send(jwt))
  await multiply(199, sql`e.identity`)
  await answered(429, send(jwt))
  await answered(200, exchange())
})

describe('several rules', () => {
  const ruleOf = async (asked: Promise<Exchanged>) => {
    const { accessToken, text } = await asked
    expect(accessToken, text).not.toBe('')
    const { json } = await answered(200, on.as(accessToken).get(exchangePath))
    const { pipeline } = json as { pipeline: { issuer: string; rule: string } }
    return [pipeline.issuer, pipeline.rule]
  }
  const rules = ['zebra', 'b', 'B', '10', '9'].map((each) => ruleFor(member.username, { name: each }))

  test('the first by name wins, in whatever order they are sent', async () => {
    for (const sent of [rules, rules.toReversed()]) {
      name = await trust(sent)
      expect(await ruleOf(exchange())).toEqual([name, '10'])
    }
  })
})

describe('keys that are away', () => {
  test('503 with Retry-After, and nothing is given or recorded as refused', async () => {
    const other = await startIssuer()
    await db.trustedIssuer.deleteMany()
    await applied(on.admin.apply([anIssuer(name, { ...attrsOf([rule]), issuer: other.url })]))
    await other.answer('/.well-known/openid-configuration', { json: {}, status: 500 })
    await other.answer('/jwks', { json: {}, status: 500 })
    const jwt = await other.sign({ aud: audience, repository: 'acme/shop', ref: 'refs/heads/main' })
    const answer = await answered(503, send(jwt))
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
    expect(answer.text).not.toContain(other.url)
    expect(await db.auditRow.count({ where: { requestId: answer.headers['x-request-id'] ?? '' } })).toBe(0)
    expect(await db.exchangedToken.count()).toBe(0)
  })
  test('a fetched key that is too short is no key that is away', async () => {
    const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 1_024 })
    const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'short', alg: 'RS256' }
    await weak.answer('/jwks', { json: { keys: [jwk] } })
    await db.trustedIssuer.deleteMany()
    await applied(on.admin.apply([anIssuer(name, { ...attrsOf([rule]), issuer: weak.url })]))
    const claims = payloadOf(await sign())
    const signed = `${base64({ alg: 'RS256', kid: 'short' })}.${base64({ ...claims, iss: weak.url })}`
    const signature = createSign('sha256').update(signed).sign(privateKey).toString('base64url')
    await unverified(send(`${signed}.${signature}`), /2048 bits/)
  })
})

test('rules are read of tokens that are verified, alone', async () => {
  const [forged, good] = [await sign(), await sign()]
  const [head, body] = forged.split('.')
  await db.$executeRaw(sql`ALTER TABLE trusted_issuers RENAME COLUMN rules TO away`)
  try {
    await unverified(send(`${head}.${body}.${good.split('.')[2]}`), /signature/)
    await answered(500, send(good))
  } finally {
    await db.$executeRaw(sql`ALTER TABLE trusted_issuers RENAME COLUMN away TO rules`)
  }
  await answered(200, send(good))
})

test('a flood of refusals of one project hides no refusal of another', async () => {
  const actions = async ({ id }: Exchanged) => (await db.auditRow.findMany({ where: { requestId: id } })).length
  await exchange({ repository: 'stranger/shop' })
  const flood = await Promise.all(Array.from({ length: 5 }, () => exchange({ repository: 'stranger/shop' })))
  expect((await Promise.all(flood.map(actions))).reduce((sum, each) => sum + each, 0)).toBeLessThan(5)
  expect(await actions(await exchange({ repository: 'acme/shop', ref: 'refs/heads/typo' }))).toBe(1)
  // What can be sent again and again is on the page of refusals alone.
  for (const claims of [
    { repository: 'x/late', exp: 1 },
    { repository: 'x/aud', aud: 'other' },
  ])
    expect(await actions(await exchange(claims))).toBe(0)
  const more = { jwks: await rotating.jwks(), algorithms: ['RS256', 'EdDSA'] }
  await applied(on.admin.apply([anIssuer(`own-${randomUUID()}`, onRotating.attrsOf([rule], more))]))
  expect(await actions(await onRotating.exchange({ repository: 'acme/typo' }))).toBe(1)
})

test('no secret is kept in clear: neither the identity token nor the access token', async () => {
  const jwt = await sign()
  const { accessToken } = await send(jwt)
  const kept = await rows<{ text: string }>(
    db,
    sql`SELECT row_to_json(e)::text AS text FROM exchanged_tokens e UNION ALL SELECT row_to_json(a)::text FROM audit_rows a
      UNION ALL SELECT row_to_json(r)::text FROM refusals r`,
  )
  const all = [...kept.map(({ text }) => text), ...on.log].join('\n')
  for (const secret of [accessToken, jwt, jwt.split('.')[2] ?? '']) expect(all.includes(secret)).toBe(false)
  expect(all).toContain(createHash('sha256').update(accessToken).digest('hex'))
})

test('operators see why each token was refused, and the audit has none that was not signed', async () => {
  expect(expected.length).toBeGreaterThan(60)
  const last = expected.at(-1)?.id ?? ''
  await until('the last refusal', () => db.refusal.findFirst({ where: { requestId: last } }))
  for (const { id, why, isVerified, of } of expected) {
    const row = await db.refusal.findFirstOrThrow({ where: { requestId: id } })
    expect.soft(row, of).toMatchObject({ status: 401, route: exchangePath, userPk: null, username: null })
    expect.soft(row.sentence, of).toMatch(why)
    const audited = await db.auditRow.findMany({ where: { requestId: id } })
    const change = { reason: row.sentence, action: 'exchange', fields: [] }
    // What is expired, or not for this service, can be sent again and again.
    const isOfJob = isVerified && /^(No rule|Rule) /.test(row.sentence)
    expect.soft(audited.length, of).toBeLessThanOrEqual(isOfJob ? 1 : 0)
    for (const each of audited) expect.soft(each, of).toMatchObject({ action: 'refuse_exchange', changes: [change] })
  }
})
