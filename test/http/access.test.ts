import Fastify, { type FastifyInstance } from 'fastify'
import type pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Db } from '../../src/db/client.ts'
import { guardRoutes, validTokensOf } from '../../src/http/access.ts'
import { answerProblems } from '../../src/http/problems.ts'
import { openLimiter, type RateLimits } from '../../src/http/rate-limit.ts'
import type { Access } from '../../src/permissions.ts'
import { type Answer, askAs } from '../support/asker.ts'
import { freshDatabase } from '../support/database.ts'
import { wide } from '../support/limits.ts'
import { makers } from '../support/make.ts'
import { statementsOf } from '../support/statements.ts'

let db: Db
let pool: pg.Pool
beforeAll(async () => {
  ;({ db, pool } = await freshDatabase())
})

function guarded(
  permission: Access | undefined,
  work: () => unknown = () => 'in',
  limits: Partial<RateLimits> = {},
): FastifyInstance {
  const app = Fastify()
  answerProblems(app)
  const known = new Set(['view_user', 'add_user', 'change_user', 'manage_queue'])
  guardRoutes(app, db, {
    known,
    limiter: openLimiter(
      app,
      { ...wide, ...limits },
      { redis: null, validOf: validTokensOf(db), metrics: { countFailedLogin: () => {}, countLimited: () => {} } },
    ),
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
    const anonymous = await askAs(guarded(access), null).get('/x')
    expect(anonymous.status).toBe(access === 'anyone' ? 200 : 401)
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

describe('failed authentications', () => {
  const max = 5
  const open = async () => {
    const app = guarded('authenticated', undefined, { rateLimitFailuresPerMinute: max })
    await app.ready()
    let count = 0
    const wrong = () => {
      count += 1
      return askAs(app, `gw_a_wrong-${count}`).get('/x')
    }
    return { app, wrong, many: (times: number) => Promise.all(Array.from({ length: times }, wrong)) }
  }
  const statusesOf = (answers: readonly Answer[]) => Map.groupBy(answers, ({ status }) => status)

  test('cost no query of their own after too many, and a valid token is taken all the same', async () => {
    const { app, wrong, many } = await open()
    const { token } = await makers(db, (secret) => askAs(guarded('anyone'), secret)).user()
    // Each that may fail asks a second time, whether the token has expired.
    for (let failed = 1; failed <= max; failed += 1)
      expect(await statementsOf(async () => expect(await wrong()).toMatchObject({ status: 401 }))).toHaveLength(
        failed < max ? 2 : 1,
      )
    let valid: readonly Answer[] = []
    const sent = await statementsOf(async () => {
      const [answers, ...others] = await Promise.all([
        many(200),
        askAs(app, token).get('/x'),
        askAs(app, token).get('/x'),
      ])
      valid = others
      expect([...statusesOf(answers).keys()]).toEqual([429])
    })
    expect(valid.map(({ status }) => status)).toEqual([200, 200])
    // One that judges all of them together, and the one of the valid token.
    expect(sent).toHaveLength(2)
    expect(await statementsOf(() => askAs(app, token).get('/x'))).toHaveLength(1)
  })

  test('at the same time are looked up a few at a time, so that most cost no query', async () => {
    const { many } = await open()
    let answers: readonly Answer[] = []
    const sent = await statementsOf(async () => {
      answers = await many(200)
    })
    expect(statusesOf(answers).get(401)).toHaveLength(max)
    expect(statusesOf(answers).get(429)).toHaveLength(200 - max)
    // Up to eight are under way when the last that may fail has failed, and one judges the others. Those before the last
    // ask whether the token has expired.
    expect(sent.length).toBeLessThanOrEqual(max + 8 + 1 + max - 1)
  })

  test('with one wrong token at the same time are one query', async () => {
    const { app } = await open()
    let answers: readonly Answer[] = []
    const sent = await statementsOf(async () => {
      answers = await Promise.all(Array.from({ length: 100 }, () => askAs(app, 'gw_a_wrong').get('/x')))
    })
    expect(statusesOf(answers).get(401)).toHaveLength(max)
    expect(sent).toHaveLength(1)
  })

  test('of many valid tokens at once there are none', async () => {
    const { app } = await open()
    const people = makers(db, (secret) => askAs(guarded('anyone'), secret))
    const made = await Promise.all(Array.from({ length: 40 }, () => people.user()))
    const answers = await Promise.all(made.map(({ token }) => askAs(app, token).get('/x')))
    expect([...statusesOf(answers).keys()]).toEqual([200])
  })

  test('of a token that is expired, of an inactive user or deleted are refused after too many, too', async () => {
    const { app, many } = await open()
    const people = makers(db, (secret) => askAs(guarded('anyone'), secret))
    const [gone, owner, inactive] = [await people.user(), await people.user(), await people.user({ isActive: false })]
    const expired = await people.token(owner.pk, { expires: new Date(Date.now() - 1_000) })
    const recovery = await people.token(owner.pk, { intent: 'recovery' })
    expect(await askAs(app, gone.token).get('/x')).toMatchObject({ status: 200 })
    await many(max)
    await pool.query('DELETE FROM tokens WHERE user_pk = $1', [gone.pk])
    const refused = [gone.token, inactive.token, expired, recovery]
    const answers = await Promise.all(refused.map((each) => askAs(app, each).get('/x')))
    expect(answers.map(({ status }) => status)).toEqual([429, 429, 429, 429])
  })
})

test('a bug is a 500 with the request id, and without internals', async () => {
  const app = guarded('anyone', () => {
    throw new Error('password=hunter2 at /src/x.ts')
  })
  const answer = await askAs(app, null).get('/x')
  expect(answer).toMatchObject({
    status: 500,
    json: {
      detail: expect.stringMatching(/^Something went wrong inside\. Ask for request \S+\.$/),
      code: 'server_error',
    },
  })
  expect(answer.text).not.toMatch(/hunter2|\.ts/)
})
