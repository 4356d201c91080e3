import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { eraseExpired } from '../../src/runs/retention.ts'
import { answered, everything, type Installation, installation, type Made, rows, sql } from '../support/kit.ts'

let identifier: string
const there = await installation({ workers: 'none' })
const { make } = there
beforeEach(() => {
  identifier = randomUUID()
})

const path = '/api/v3/core/tokens/'
const keyOf = (who: Made | Installation['admin'], name = identifier) => who.get(`${path}${name}/view_key/`)
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()

test('a token is created for the caller and shown without its secret', async () => {
  const ada = await make.user()
  const { json, text } = await answered(201, ada.post(path, { identifier, description: 'CI' }))
  expect(json).toEqual({
    pk: expect.stringMatching(/^[0-9a-f-]{36}$/),
    managed: null,
    identifier,
    intent: 'api',
    user: ada.pk,
    user_obj: expect.objectContaining({ pk: ada.pk, username: ada.username }),
    description: 'CI',
    expires: expect.stringMatching(/^20\d\d-.*Z$/),
    expiring: true,
  })
  const { expires } = json as { expires: string }
  expect(Date.parse(expires) - Date.now()).toBeGreaterThan(29.9 * 86_400_000)
  expect(text).not.toContain('gw_')
})

describe('a token for a user who is not active', () => {
  const entries = (username: string, isActive: boolean) => ({
    version: 1,
    metadata: { name: identifier },
    entries: [
      { model: 'service_core.user', identifiers: { username }, attrs: { is_active: isActive } },
      { model: 'service_core.token', identifiers: { identifier }, attrs: { user: username } },
    ],
  })
  const apply = (document: object) => there.admin.put('/api/v3/blueprints/?dry_run=true', document)

  test('is refused on that field, by key, name and entry; an active one is taken', async () => {
    const { pk, username } = await make.user()
    await there.db.user.update({ where: { pk }, data: { isActive: false } })
    const said = [expect.stringMatching(/^The user .* has the is_active false: this field takes true\.$/)]
    for (const user of [pk, username]) await answered(400, there.admin.post(path, { identifier, user }), { user: said })
    const { username: active } = await make.user()
    const inDocument = { status: 400, json: { entries: { 1: { user: said } } } }
    await answered(400, apply({ ...entries(username, true), entries: entries(username, true).entries.slice(1) }), {
      entries: { 0: { user: said } },
    })
    expect(await apply(entries(active, false))).toMatchObject(inDocument)
  })

  test('stays, and may be changed, when the user is deactivated later', async () => {
    const ada = await make.user()
    await there.admin.post(path, { identifier, user: ada.pk })
    await there.db.user.update({ where: { pk: ada.pk }, data: { isActive: false } })
    const fields = { user: ada.pk, description: 'kept' }
    expect(await there.admin.patch(`${path}${identifier}/`, fields)).toMatchObject({ status: 200, json: fields })
  })

  test('does not keep the user from being deactivated', async () => {
    const { pk, username } = await make.user()
    await there.admin.post(path, { identifier, user: pk })
    const {
      entries: [user],
    } = entries(username, false)
    const answer = await there.admin.put('/api/v3/blueprints/?dry_run=true', {
      version: 1,
      metadata: { name: 'x' },
      entries: [user],
    })
    expect(answer.status).not.toBe(400)
  })
})

describe('its key', () => {
  test('is viewed once, by its owner, and works; then it is gone', async () => {
    const ada = await make.user()
    await ada.post(path, { identifier })
    const { json, headers } = await answered(200, keyOf(ada))
    expect(headers['cache-control']).toBe('no-store')
    const { key } = json as { key: string }
    expect(key).toMatch(/^gw_a_[0-9A-Za-z]{36}$/)
    expect((await there.as(key).get('/api/v3/core/users/me/')).json).toMatchObject({ user: { pk: ada.pk } })
    expect(await keyOf(ada)).toMatchObject({ status: 410, json: { code: 'key_gone' } })
    expect(await everything(there.db)).not.toContain(key)
    expect(there.log.join('')).not.toContain(key)
    const audited = await there.db.auditRow.findMany({ where: { action: 'view_key', actorPk: ada.pk } })
    expect(audited).toHaveLength(1)
    expect(audited[0]?.changes).toMatchObject([{ model: 'service_core.token', action: 'view_key', fields: [] }])
  })

  test('is not used up by a HEAD request', async () => {
    const ada = await make.user()
    await ada.post(path, { identifier })
    const asked = await ada.send({ method: 'HEAD', url: `${path}${identifier}/view_key/` })
    expect([asked.status, asked.headers.allow]).toEqual([405, 'GET'])
    expect((await keyOf(ada)).status).toBe(200)
  })

  test('is shown to one of two simultaneous requests', async () => {
    const ada = await make.user()
    await ada.post(path, { identifier })
    const statuses = (await Promise.all(Array.from({ length: 8 }, () => keyOf(ada)))).map(({ status }) => status)
    expect(statuses.sort()).toEqual([200, ...Array.from({ length: 7 }, () => 410)])
  })

  test('is shown to others only with view_token_key and all rights of its owner', async () => {
    const ada = await make.user({ permissions: ['view_user'] })
    await ada.post(path, { identifier })
    expect(await keyOf(await make.user())).toMatchObject({ status: 404, json: { code: 'not_found' } })
    expect((await keyOf(await make.user({ permissions: ['view_token_key'] }))).status).toBe(404)
    expect((await keyOf(await make.user({ permissions: ['view_token_key', 'view_user'] }))).status).toBe(200)
  })

  test('is not shown to an impersonator by `impersonate` alone, nor is a token that they created', async () => {
    const bob = await make.user()
    const acting = { headers: { 'impersonate-user': bob.username } }
    const ada = await make.user({ permissions: ['impersonate'] })
    const made = await ada.post(path, { identifier }, { headers: { 'impersonate-user': bob.username } })
    expect(made).toMatchObject({ status: 403, json: { code: 'permission_denied' } })
    expect(await there.db.token.count({ where: { identifier } })).toBe(0)
    await bob.post(path, { identifier })
    const url = `${path}${identifier}/view_key/`
    expect(await ada.get(url, acting)).toMatchObject({ status: 403, json: { code: 'permission_denied' } })
    const changed = await ada.patch(`${path}${identifier}/`, { intent: 'app_password' }, { headers: acting.headers })
    expect(changed).toMatchObject({ status: 403, json: { code: 'permission_denied' } })
    const cyd = await make.user({ permissions: ['impersonate', 'view_token_key'] })
    expect((await cyd.get(url, acting)).status).toBe(200)
  })

  test('of a superuser is shown to superusers only', async () => {
    const root = await make.user({ superuser: true })
    await root.post(path, { identifier })
    expect((await keyOf(await make.user({ permissions: ['view_token_key'] }))).status).toBe(404)
    expect((await keyOf(there.admin)).status).toBe(200)
  })

  test('is gone after a day, viewed or not, and then erased', async () => {
    const ada = await make.user()
    await ada.post(path, { identifier })
    await rows(
      there.db,
      sql`UPDATE tokens SET created_at = now() - interval '24 hours 1 second' WHERE identifier = ${identifier}`,
    )
    expect((await keyOf(ada)).status).toBe(410)
    await eraseExpired(there.db)
    const { sealedKey } = await there.db.token.findUniqueOrThrow({ where: { identifier } })
    expect(sealedKey).toBeNull()
  })

  test('of a missing token', async () => {
    expect((await keyOf(there.admin)).status).toBe(404)
    expect((await keyOf(there.admin, 'no%20such')).status).toBe(404)
  })
})

describe('a change', () => {
  test('changes the sent fields, and resets none', async () => {
    const ada = await make.user()
    const made = await ada.post(path, { identifier, intent: 'app_password', description: 'd', expires: inDays(9) })
    const { status, json } = await ada.patch(`${path}${identifier}/`, { description: 'e' })
    expect([status, json]).toEqual([200, { ...(made.json as object), description: 'e' }])
    const renamed = await ada.patch(`${path}${identifier}/`, { ...(json as object), identifier: `${identifier}-2` })
    expect(renamed.json).toEqual({ ...(json as object), identifier: `${identifier}-2` })
    expect((await ada.patch(`${path}${identifier}/`, {})).status).toBe(404)
  })

  test('of a foreign token needs change_token: without it there is no such token', async () => {
    const ada = await make.user()
    await ada.post(path, { identifier })
    const bob = await make.user()
    const hidden = await bob.patch(`${path}${identifier}/`, { description: 'x' })
    const missing = await bob.patch(`${path}${randomUUID()}/`, { description: 'x' })
    expect(hidden.status).toBe(404)
    expect(hidden.json).toEqual(missing.json)
    const cyd = await make.user({ permissions: ['change_token'] })
    expect((await cyd.patch(`${path}${identifier}/`, { description: 'x' })).status).toBe(200)
  })

  test('of the intent is refused, and never opens the API to its key', async () => {
    const ada = await make.user()
    await ada.post(path, { identifier, intent: 'app_password' })
    const { key } = (await keyOf(ada)).json as { key: string }
    expect(key).toMatch(/^gw_p_/)
    for (const who of [ada, there.admin]) {
      const { status, json } = await who.patch(`${path}${identifier}/`, { intent: 'api' })
      const message = 'Is fixed when a token is created: leave this field out, or create another token.'
      expect([status, json]).toEqual([400, { code: 'invalid', intent: [message] }])
    }
    expect((await there.as(key).get('/api/v3/core/users/me/')).status).toBe(401)
    expect((await ada.patch(`${path}${identifier}/`, { intent: 'app_password' })).status).toBe(200)
  })

  test('never moves it to another user (CVE-2024-37905)', async () => {
    const ada = await make.user({ permissions: ['change_token', 'add_token'] })
    const root = await make.user({ superuser: true })
    await ada.post(path, { identifier })
    expect((await answered(400, ada.patch(`${path}${identifier}/`, { user: root.pk }))).json).toEqual({
      code: 'invalid',
      user: ['A token stays with its user: leave this field out.'],
    })
    expect(await there.db.token.findUnique({ where: { identifier } })).toMatchObject({ userPk: ada.pk })
  })
})

test.each([
  [{ user: 'root' }, 403, 'add_token'],
  [{ intent: 'recovery' }, 403, 'only a superuser'],
  [{ intent: 'verification' }, 403, 'only a superuser'],
  [{ expiring: false }, 403, 'only a superuser'],
  [{ managed: 'x' }, 400, 'Only a superuser may set this field.'],
  [{ expires: inDays(366) }, 400, 'Must be at most 365 days from now.'],
] as const)('fields that the caller may not set: %j: %i', async (sent, expected, words) => {
  const root = await make.user({ superuser: true })
  const ada = await make.user()
  const body = { identifier, ...sent, ...('user' in sent && { user: root.pk }) }
  expect((await answered(expected, ada.post(path, body))).text).toEqual(expect.stringContaining(words))
  expect(await there.db.token.count({ where: { identifier } })).toBe(0)
  expect((await there.admin.post(path, body)).status).toBe(201)
})

test('taken values of a field that the caller may not set are not shown', async () => {
  await there.admin.post(path, { identifier, managed: `m-${identifier}` })
  const { status, json } = await (await make.user()).post(path, {
    identifier: `${identifier}-2`,
    managed: `m-${identifier}`,
  })
  expect([status, json]).toEqual([400, { code: 'invalid', managed: ['Only a superuser may set this field.'] }])
})

describe('errors are reported by field', () => {
  test('all at once', async () => {
    await there.admin.post(path, { identifier, managed: `m-${identifier}` })
    const bad = {
      ...{ identifier, managed: `m-${identifier}`, intent: 'x', user: 9_999_999, expires: 'soon' },
      ...{ expiring: 1, description: 5, key: 'chosen' },
    }
    const { json } = await answered(400, there.admin.post(path, bad))
    expect(json).toEqual({
      code: 'invalid',
      identifier: [`"${identifier}" is taken by token "${identifier}".`],
      managed: [`"m-${identifier}" is taken by token "${identifier}".`],
      intent: ['Must be one of: verification, api, recovery, app_password.'],
      user: ['There is no user with the key 9999999.'],
      expires: ['Must be a date and time such as 2027-01-31T12:00:00Z.'],
      expiring: ['Must be true or false.'],
      description: ['Must be text.'],
      key: ['Unknown field.'],
    })
  })

  test('a user by name; who exists is not told to callers who may only have tokens of their own', async () => {
    const [ada, bob] = [await make.user(), await make.user()]
    await answered(201, there.admin.post(path, { identifier, user: ada.username }), { user: ada.pk })
    await answered(201, ada.post(path, { identifier: `${identifier}-own`, user: ada.username }))
    const answers = async (user: string) => [
      await ada.post(path, { identifier: `${identifier}-2`, user }),
      await ada.patch(`${path}${identifier}/`, { user }),
    ]
    const [known, unknown] = [await answers(bob.username), await answers(`${bob.username}-not`)]
    expect(known.map(({ status }) => status)).toEqual([403, 403])
    expect(unknown.map(({ status, json }) => [status, json])).toEqual(known.map(({ status, json }) => [status, json]))
    await answered(400, there.admin.post(path, { identifier: `${identifier}-3`, user: `${bob.username}-not` }), {
      user: [expect.stringContaining(`No user is called "${bob.username}-not".`)],
    })
  })

  test('a malformed user, also to a caller who may not create tokens for others', async () => {
    const { status, json } = await (await make.user()).post(path, { identifier, user: true })
    expect([status, json]).toEqual([400, { code: 'invalid', user: ['Must be a whole number.'] }])
  })

  test.each(['', 'a b', 'é', 'x'.repeat(256), 'a\n'])('an identifier %j', async (bad) => {
    const { status, json } = await there.admin.post(path, { identifier: bad })
    expect([status, json]).toEqual([400, { code: 'invalid', identifier: [expect.any(String)] }])
  })

  test.each(['9999-12-31T23:59:59-14:00', '0000-01-01T00:00:00Z', '+010000-01-01T00:00:00Z', '2027-02-30T00:00:00Z'])(
    'an expiry %s',
    async (expires) => {
      const { status, json } = await there.admin.post(path, { identifier, expires })
      expect([status, json]).toEqual([400, { code: 'invalid', expires: [expect.any(String)] }])
    },
  )

  test('an identifier that is taken, on a change', async () => {
    await there.admin.post(path, { identifier })
    await there.admin.post(path, { identifier: `${identifier}-2` })
    const { status, json } = await there.admin.patch(`${path}${identifier}/`, { identifier: `${identifier}-2` })
    const taken = `"${identifier}-2" is taken by token "${identifier}-2".`
    expect([status, json]).toEqual([400, { code: 'invalid', identifier: [taken] }])
  })
})
