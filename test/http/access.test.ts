import Fastify, { type FastifyInstance } from 'fastify'
import { describe, expect, test } from 'vitest'
import { keyring } from '../../src/db/seal.ts'
import { guardRoutes } from '../../src/http/access.ts'
import { plausibleTokens } from '../../src/http/plausible.ts'
import { answerProblems } from '../../src/http/problems.ts'
import { openRate } from '../../src/http/rate-limit.ts'
import { randomText, sha256, uuid7 } from '../../src/ids.ts'
import type { Access } from '../../src/permissions.ts'
import { newSecret } from '../../src/token-secret.ts'
import { answered } from '../support/asker.ts'
import { type Answer, askAs, freshDatabase, makers, secretKey, statementsOf, testKeys } from '../support/kit.ts'

const { db, pool } = await freshDatabase()

function guarded(permission: Access | undefined, work: () => unknown = () => 'in', key = testKeys): FastifyInstance {
  const app = Fastify()
  answerProblems(app)
  guardRoutes(app, db, {
    known: new Set(['view_user', 'add_user', 'change_user', 'manage_queue']),
    countRequest: openRate(app, 1_000_000, { redis: null, onRefused: () => {} }),
    countFailedLogin: () => {},
    plausible: plausibleTokens(db, key, Number.POSITIVE_INFINITY),
  })
  app.get('/x', { config: permission === undefined ? {} : { permission } }, async () => work())
  return app
}

test('a route without a permission does not start', async () => {
  await expect(guarded(undefined).ready()).rejects.toThrow('routes without a permission do not start: GET /x')
})

test('a route with a mistyped permission does not start', async () => {
  const app = guarded('view_usr')
  await expect(app.ready()).rejects.toThrow('routes with an unknown permission do not start: GET /x: view_usr')
})

describe('access to a route', () => {
  test.each<[Access, string[], number]>([
    ['anyone', [], 200],
    ['authenticated', [], 200],
    ['view_user', [], 403],
    ['view_user', ['view_user'], 200],
    ['view_user', ['view_users', 'add_user', 'view'], 403],
    [['add_user', 'change_user'], ['change_user'], 200],
    [['add_user', 'change_user'], ['view_user'], 403],
    [[], ['view_user'], 403],
    ['superuser', ['manage_queue'], 403],
  ])('to %j with %j: %i', async (access, permissions, status) => {
    const { token } = await makers(db, (secret) => askAs(guarded('anyone'), secret)).user({ permissions })
    expect(await askAs(guarded(access), token).get('/x')).toMatchObject({ status })
    await answered(access === 'anyone' ? 200 : 401, askAs(guarded(access), null).get('/x'))
  })

  test('a superuser, everywhere', async () => {
    const { token } = await makers(db, (secret) => askAs(guarded('anyone'), secret)).user({ superuser: true })
    for (const access of ['manage_queue', 'superuser'] as const)
      expect(await askAs(guarded(access), token).get('/x')).toMatchObject({ status: 200 })
  })
})

describe('simultaneous requests with one token', () => {
  test('are authenticated by one query', async () => {
    const { token } = await makers(db, (secret) => askAs(guarded('anyone'), secret)).user()
    const app = guarded('authenticated')
    await app.ready()
    const ask = () => askAs(app, token).get('/x')
    let answers: Answer[] = []
    const sent = await statementsOf(async () => {
      answers = await Promise.all(Array.from({ length: 10 }, ask))
    })
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200))
    expect(sent).toHaveLength(1)
    expect(await statementsOf(ask)).toHaveLength(1)
  })

  test('do not admit a request that comes after the token was deleted', async () => {
    const app = guarded('authenticated')
    for (let round = 0; round < 20; round += 1) {
      const { pk, token } = await makers(db, (secret) => askAs(app, secret)).user()
      const early = Array.from({ length: 5 }, () => askAs(app, token).get('/x'))
      const taken = pool.query('DELETE FROM tokens WHERE user_pk = $1', [pk])
      const between = Array.from({ length: 5 }, () => askAs(app, token).get('/x'))
      await taken
      const late = await Promise.all(Array.from({ length: 5 }, () => askAs(app, token).get('/x')))
      expect(late.map(({ status }) => status)).toEqual(Array(5).fill(401))
      await Promise.all([...early, ...between])
    }
  })
})

describe('a flood of forged tokens', () => {
  const people = () => makers(db, (secret) => askAs(guarded('anyone'), secret))
  const foreign = keyring('another secret key, of 32 characters or more')
  /** Every form that a forged token may have: one that was made under another key, an older one, and any text. */
  const forged = (count: number) =>
    Array.from({ length: count }, (_, index) =>
      index % 3 === 0 ? newSecret('api', foreign) : index % 3 === 1 ? `gw_a_${randomText(36)}` : randomText(20),
    )
  /** A token that is not keyed: made by an earlier version, or chosen by an operator. */
  const older = async (userPk: number, secret: string) => {
    const token = { pk: uuid7(), identifier: uuid7(), userPk, expiring: false }
    await db.token.create({ data: { ...token, keyHash: new Uint8Array(sha256(secret)) } })
    return secret
  }
  const flood = (app: FastifyInstance, secrets: readonly string[]) =>
    Promise.all(secrets.map(async (secret) => (await askAs(app, secret).get('/x')).status))

  test('costs no query, and valid tokens that the process has not seen are taken amid of it', async () => {
    const { pk } = await people().user()
    const app = guarded('authenticated')
    await app.ready()
    const valid = await Promise.all(Array.from({ length: 40 }, () => people().token(pk)))
    const others = [await older(pk, `gw_a_${randomText(36)}`), await older(pk, 'chosen-by-an-operator-of-old')]
    const wrong = forged(3_000)
    let answers: number[] = []
    const sent = await statementsOf(async () => {
      answers = await flood(app, [...wrong.slice(0, 1_500), ...valid, ...others, ...wrong.slice(1_500)])
    })
    expect(answers.slice(1_500, 1_542)).toEqual(Array(42).fill(200))
    expect(answers.filter((status) => status === 401)).toHaveLength(3_000)
    // One for each valid token, and one that finds the others.
    expect(sent.length).toBeLessThanOrEqual(43)
    expect(await statementsOf(() => flood(app, forged(3_000)))).toEqual([])
  })

  test('costs no query at all when no other token is left', async () => {
    await db.token.deleteMany({ where: { checksumKey: null } })
    const app = guarded('authenticated')
    await app.ready()
    expect(await statementsOf(() => flood(app, forged(10)))).toHaveLength(1)
    expect(await statementsOf(() => flood(app, forged(3_000)))).toEqual([])
  })

  test('a token of the previous key is keyed while that is set, and found as one of the others afterwards', async () => {
    const { pk, token } = await people().user()
    const next = 'the next secret key of tests, 32 or more'
    for (const key of [keyring(next, secretKey), keyring(next)]) {
      const app = guarded('authenticated', undefined, key)
      await app.ready()
      expect(await statementsOf(() => flood(app, [token]))).toHaveLength(key.ids.length === 2 ? 1 : 2)
      expect(await flood(app, [token, await people().token(pk)])).toEqual([200, key.ids.length === 2 ? 200 : 401])
    }
  })

  test('of one token that is deleted, expired, of an inactive user or of another intent is 401', async () => {
    const app = guarded('authenticated')
    await app.ready()
    const gone = await people().user()
    const owner = await people().user()
    const inactive = await people().user({ isActive: false })
    const expired = await people().token(owner.pk, { expires: new Date(Date.now() - 1_000) })
    const recovery = await people().token(owner.pk, { intent: 'recovery' })
    expect(await flood(app, [gone.token])).toEqual([200])
    await pool.query('DELETE FROM tokens WHERE user_pk = $1', [gone.pk])
    expect(await flood(app, [gone.token, inactive.token, expired, recovery])).toEqual([401, 401, 401, 401])
    let answers: number[] = []
    const sent = await statementsOf(async () => {
      answers = await flood(app, Array(100).fill(gone.token))
    })
    expect([new Set(answers), sent.filter((text) => text.includes('"tokenPk"')).length]).toEqual([new Set([401]), 1])
  })
})

test('a bug is a 500 with the request id, and without internals', async () => {
  const app = guarded('anyone', () => {
    throw new Error('password=hunter2 at /src/x.ts')
  })
  const answer = await answered(500, askAs(app, null).get('/x'), {
    detail: expect.stringMatching(/^Something went wrong inside\. Ask for request \S+\.$/),
    code: 'server_error',
  })
  expect(answer.text).not.toMatch(/hunter2|\.ts/)
})
