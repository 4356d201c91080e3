import Fastify, { type FastifyInstance } from 'fastify'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Db } from '../../src/db/client.ts'
import { guardRoutes } from '../../src/http/access.ts'
import { answerProblems } from '../../src/http/problems.ts'
import type { Access } from '../../src/permissions.ts'
import { askAs } from '../support/asker.ts'
import { freshDatabase } from '../support/database.ts'
import { makers } from '../support/make.ts'

let db: Db
beforeAll(async () => {
  db = (await freshDatabase()).db
})

function guarded(permission: Access | undefined, work: () => unknown = () => 'in', from = db): FastifyInstance {
  const app = Fastify()
  answerProblems(app)
  guardRoutes(app, from)
  app.get('/x', { config: permission === undefined ? {} : { permission } }, async () => work())
  return app
}

test('a route without a permission does not start', async () => {
  await expect(guarded(undefined).ready()).rejects.toThrow('routes without a permission do not start: GET /x')
})

describe('who comes in', () => {
  test.each<[Access, string[], number]>([
    ['anyone', [], 200],
    ['authenticated', [], 200],
    ['view_user', [], 403],
    ['view_user', ['view_user'], 200],
    ['view_user', ['view_users', 'add_user', 'view'], 403],
    [['add_user', 'change_user'], ['change_user'], 200],
    [['add_user', 'change_user'], ['view_user'], 403],
    [[], ['view_user'], 403],
  ])('to %j with %j: %i', async (access, permissions, status) => {
    const { token } = await makers(db, (secret) => askAs(guarded('anyone'), secret)).user({ permissions })
    expect(await askAs(guarded(access), token).get('/x')).toMatchObject({ status })
    const nobody = await askAs(guarded(access), null).get('/x')
    expect(nobody.status).toBe(access === 'anyone' ? 200 : 401)
  })

  test('a superuser, everywhere', async () => {
    const { token } = await makers(db, (secret) => askAs(guarded('anyone'), secret)).user({ superuser: true })
    expect(await askAs(guarded('manage_queue'), token).get('/x')).toMatchObject({ status: 200 })
  })
})

describe('those who come at the same time with one token', () => {
  test('are let in by one question', async () => {
    const { token } = await makers(db, (secret) => askAs(guarded('anyone'), secret)).user()
    let asked = 0
    const counting: Db = {
      ...db,
      query: (statement) => {
        asked += 1
        return db.query(statement)
      },
    }
    const app = guarded('authenticated', () => 'in', counting)
    await app.ready()
    const answers = await Promise.all(Array.from({ length: 10 }, () => askAs(app, token).get('/x')))
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200))
    expect(asked).toBe(1)
    await askAs(app, token).get('/x')
    expect(asked).toBe(2)
  })

  test('do not let anybody in who comes when it was taken away', async () => {
    const app = guarded('authenticated')
    for (let round = 0; round < 20; round += 1) {
      const { pk, token } = await makers(db, (secret) => askAs(app, secret)).user()
      const early = Array.from({ length: 5 }, () => askAs(app, token).get('/x'))
      const taken = db.pool.query('DELETE FROM tokens WHERE user_pk = $1', [pk])
      const between = Array.from({ length: 5 }, () => askAs(app, token).get('/x'))
      await taken
      const late = await Promise.all(Array.from({ length: 5 }, () => askAs(app, token).get('/x')))
      expect(late.map(({ status }) => status)).toEqual(Array(5).fill(401))
      await Promise.all([...early, ...between])
    }
  })
})

test('a bug is a 500 that says nothing of the inside, and whom to ask', async () => {
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
