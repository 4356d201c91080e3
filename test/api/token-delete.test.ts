import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { answered, type Installation, installation, type Made, rows, sql } from '../support/kit.ts'

/** DELETE /api/v3/core/tokens/{identifier}/ */

let identifier: string
const there = await installation({ workers: 'none' })
const { make } = there
beforeEach(() => {
  identifier = randomUUID()
})

const path = '/api/v3/core/tokens/'

describe('a token is deleted', () => {
  const remove = (who: Made | Installation['admin'], name = identifier, headers = {}) =>
    who.delete(`${path}${name}/`, { headers })
  const count = () => there.db.token.count({ where: { identifier } })

  test('by its owner: its key authenticates no more, and the deletion is audited', async () => {
    const ada = await make.user()
    await ada.post(path, { identifier })
    const { key } = (await ada.get(`${path}${identifier}/view_key/`)).json as { key: string }
    const { pk } = await there.db.token.findUniqueOrThrow({ where: { identifier } })
    const { status, text, headers } = await remove(ada)
    expect([status, text, headers['content-type']]).toEqual([204, '', undefined])
    expect((await there.as(key).get('/api/v3/core/users/me/')).status).toBe(401)
    const audited = await there.db.auditRow.findMany({ where: { action: 'delete', actorPk: ada.pk } })
    expect(audited.map(({ changes }) => changes)).toMatchObject([
      [{ model: 'service_core.token', key: pk, action: 'delete', fields: [] }],
    ])
    expect((await remove(ada)).status).toBe(404)
  })

  test('also the one that authenticates the request', async () => {
    const ada = await make.user()
    await rows(there.db, sql`UPDATE tokens SET identifier = ${identifier} WHERE user_pk = ${ada.pk}`)
    expect((await remove(ada)).status).toBe(204)
    expect((await remove(ada)).status).toBe(401)
  })

  test.each([
    {},
    { 'content-type': 'application/json' },
    { 'content-type': 'application/json', 'content-length': '0' },
  ])('with the headers %j and no body', async (headers) => {
    await there.admin.post(path, { identifier })
    expect((await remove(there.admin, identifier, headers)).status).toBe(204)
  })

  test('by others with delete_token who hold all rights of its owner; else there is no such token', async () => {
    const ada = await make.user({ permissions: ['view_user'] })
    await ada.post(path, { identifier })
    const missing = await remove(ada, randomUUID())
    for (const permissions of [[], ['delete_token'], ['change_token', 'view_token', 'view_user']]) {
      expect((await answered(404, remove(await make.user({ permissions })))).json).toEqual(missing.json)
    }
    expect(await count()).toBe(1)
    expect((await remove(await make.user({ permissions: ['delete_token', 'view_user'] }))).status).toBe(204)
    expect(await count()).toBe(0)
  })

  test('by one of two requests at the same time', async () => {
    const ada = await make.user()
    await ada.post(path, { identifier })
    const statuses = (await Promise.all([remove(ada), remove(ada)])).map(({ status }) => status)
    expect(statuses.sort()).toEqual([204, 404])
  })

  test.each(['a b', 'x'.repeat(256), '%00'])('not under the malformed identifier %j', async (name) => {
    expect((await remove(there.admin, encodeURIComponent(name))).status).toBe(404)
  })
})

test('the last token by which a superuser can authenticate is neither deleted nor ended', async () => {
  const fresh = await installation({ workers: 'none' })
  const url = `${path}bootstrap/`
  const message = expect.stringMatching(
    /^Would leave no superuser who can authenticate: first give .* another api token/,
  )
  expect((await answered(400, fresh.admin.delete(url))).json).toEqual({ code: 'invalid', non_field_errors: [message] })
  const soon = new Date(Date.now() + 60_000).toISOString()
  const ended = await fresh.admin.patch(url, { expiring: true, expires: soon })
  expect([ended.status, ended.json]).toEqual([400, { code: 'invalid', expires: [message], expiring: [message] }])
  await fresh.admin.post(path, { identifier })
  expect((await fresh.admin.patch(url, { expiring: true, expires: soon })).status).toBe(200)
  expect((await fresh.admin.delete(url)).status).toBe(204)
})
