import Fastify, { type FastifyInstance } from 'fastify'
import type pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Db } from '../../src/db/client.ts'
import { guardRoutes } from '../../src/http/access.ts'
import { answerProblems } from '../../src/http/problems.ts'
import { openLimiter } from '../../src/http/rate-limit.ts'
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

function guarded(permission: Access | undefined, work: () => unknown = () => 'in'): FastifyInstance {
  const app = Fastify()
  answerProblems(app)
  const known = new Set(['view_user', 'add_user', 'change_user', 'manage_queue'])
  guardRoutes(app, db, { known, limiter: openLimiter(app, wide, null) })
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
