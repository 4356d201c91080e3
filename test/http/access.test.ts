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

function guarded(permission: Access | undefined, work: () => unknown = () => 'in'): FastifyInstance {
  const app = Fastify()
  answerProblems(app)
  guardRoutes(app, db)
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
