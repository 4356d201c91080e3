import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { answered, applied, askAs, installation, rows, sql, until } from '../support/kit.ts'

/** What servers that sign users in tell back: consents, and when users logged in. */

const on = await installation()
const { db } = on

const [toConsents, toUsers] = ['/api/v3/consumers/oauth2/consents/', '/api/v3/consumers/users/']

async function client(owner?: string): Promise<{ slug: string; client_id: string }> {
  const slug = `app-${randomUUID()}`
  await applied(on.admin.submit('oauth2', slug, owner === undefined ? {} : { owner }))
  return { slug, client_id: `client-${slug}` }
}

const server = await on.make.user({ permissions: ['record_sign_in', 'view_oauth2provider'] })
const { username: ada, pk } = await on.make.user()
const known = await client()

type Consent = {
  pk: number
  permissions: string
  expires: string | null
  expiring: boolean
  application: { slug: string }
}

/** The consents of a user, as operation 4 of the contract lists them, and as the list counts them. */
async function consentsOf(user: number): Promise<Consent[]> {
  const { json } = await answered(200, on.admin.get(`/api/v3/core/user_consent/?user=${user}&ordering=pk`))
  return (json as { results: Consent[] }).results
}

const audited = (request: string) => db.auditRow.findMany({ where: { requestId: request } })
const asRequest = (id: string) => ({ headers: { 'x-request-id': id } })

test('a consent is listed, is the same when it is sent again, and has one audit row', async () => {
  const [user, first, again, later] = [await on.make.user(), randomUUID(), randomUUID(), randomUUID()]
  const consent = { user: user.username, client_id: known.client_id, permissions: 'openid email openid' }
  const send = (body: object, id: string) =>
    answered(200, server.post(toConsents, { consents: [body] }, asRequest(id)), { recorded: 1, unknown: [] })
  const { pagination } = (await on.admin.get('/api/v3/core/user_consent/')).json as { pagination: { count: number } }
  await send(consent, first)
  const [listed] = await consentsOf(user.pk)
  expect(listed).toMatchObject({
    permissions: 'email openid',
    expires: null,
    expiring: false,
    application: { slug: known.slug },
  })
  expect(await consentsOf(user.pk)).toHaveLength(1)
  expect((await on.admin.get('/api/v3/core/user_consent/')).json).toMatchObject({
    pagination: { count: pagination.count + 1 },
  })
  // Two orders of the same words are one consent.
  await send({ ...consent, user: user.pk, permissions: 'email openid' }, again)
  expect(await audited(again)).toEqual([])
  const expires = '2031-01-31T12:00:00.000Z'
  await send({ ...consent, expires: '2031-01-31T13:00:00+01:00' }, later)
  expect(await consentsOf(user.pk)).toEqual([{ ...listed, expires, expiring: true }])
  const change = { model: 'service_core.userconsent', key: listed?.pk }
  expect(await audited(first)).toMatchObject([
    { action: 'record_consents', actorPk: server.pk, changes: [{ ...change, action: 'create' }] },
  ])
  expect(await audited(later)).toMatchObject([
    { changes: [{ ...change, action: 'update', fields: ['expires', 'expiring'] }] },
  ])
})

test('of one consent that is sent twice, the last counts; other permissions are another consent', async () => {
  const user = await on.make.user()
  const consent = { user: user.pk, client_id: known.client_id, permissions: 'openid' }
  const consents = [
    { ...consent, expires: '2031-01-01T00:00:00Z' },
    { ...consent, permissions: 'openid email' },
    { ...consent, expires: '2032-01-01T00:00:00Z' },
  ]
  await answered(200, server.post(toConsents, { consents }), { recorded: 3, unknown: [] })
  const found = (await consentsOf(user.pk)).map(({ permissions, expires }) => [permissions, expires])
  expect(new Map(found as [string, string][])).toEqual(
    new Map<string, string | null>([
      ['openid', '2032-01-01T00:00:00.000Z'],
      ['email openid', null],
    ]),
  )
})

test('what names nothing is left out and listed; so is a client of others', async () => {
  const user = await on.make.user()
  const [own, foreign, alone] = [await client('team-a'), await client('team-b'), `alone-${randomUUID()}`]
  const flow = (await on.db.flow.findFirstOrThrow({ where: { designation: 'authorization' } })).pk
  const provider = { name: alone, client_id: alone, authorization_flow: flow }
  await applied(on.admin.apply([{ model: 'service_providers_oauth2.oauth2provider', identifiers: provider }]))
  const consents = [
    { user: user.username, client_id: own.client_id },
    { user: user.username, client_id: foreign.client_id },
    { user: 'no-such-user', client_id: own.client_id },
    { user: 2_000_000_000, client_id: own.client_id },
    { user: user.username, client_id: alone },
    { user: user.username.toUpperCase(), client_id: own.client_id },
    { user: user.username, client_id: 'no-such-client' },
  ].map((each) => ({ ...each, permissions: 'openid' }))
  const bound = await on.make.user({ permissions: ['record_sign_in', 'view_oauth2provider'], owners: ['team-a'] })
  await answered(200, bound.post(toConsents, { consents }), { recorded: 1, unknown: [1, 2, 3, 4, 5, 6] })
  expect((await consentsOf(user.pk)).map(({ application }) => application.slug)).toEqual([own.slug])
  await answered(200, server.post(toConsents, { consents }), { recorded: 2, unknown: [2, 3, 4, 5, 6] })
  const blind = await on.make.user({ permissions: ['record_sign_in'] })
  await answered(200, blind.post(toConsents, { consents }), { recorded: 0, unknown: [0, 1, 2, 3, 4, 5, 6] })
})

test('a last login is listed, and only grows; one in the future is now', async () => {
  const loginOf = async () => {
    const { json } = await answered(200, on.admin.get(`/api/v3/core/users/?pk=${pk}`))
    return (json as { results: { last_login: string | null }[] }).results[0]?.last_login
  }
  const send = (logins: object[]) => server.patch(toUsers, { logins }, asRequest('logins'))
  const at = (hour: number) => ({ user: ada, last_login: `2026-01-01T0${hour}:00:00Z` })
  expect(await loginOf()).toBeNull()
  const users = [at(2), { ...at(4), user: pk }, at(3), { ...at(5), user: 'no-such-user' }]
  for (const _ of ['first', 'again']) await answered(200, send(users), { recorded: 3, unknown: [3] })
  expect(await loginOf()).toBe('2026-01-01T04:00:00.000Z')
  await answered(200, send([at(1)]), { recorded: 1 })
  expect(await loginOf()).toBe('2026-01-01T04:00:00.000Z')
  await answered(200, send([{ ...at(1), last_login: '9999-01-01T00:00:00Z' }]), { recorded: 1 })
  const [row] = await rows<{ past: boolean }>(
    db,
    sql`SELECT last_login <= now() + '1 ms' AS past FROM users WHERE pk = ${pk}`,
  )
  expect(row).toEqual({ past: true })
  expect(await audited('logins')).toEqual([])
})

test('a thousand at once are recorded, in any order beside each other, and no more', async () => {
  const made = await rows<{ username: string }>(
    db,
    sql`INSERT INTO users (uuid, username) SELECT gen_random_uuid(), 'many-' || n FROM generate_series(1, 1000) n RETURNING username`,
  )
  const consents = made.map(({ username }) => ({ user: username, client_id: known.client_id, permissions: 'openid' }))
  const users = made.map(({ username }) => ({ user: username, last_login: '2026-02-01T00:00:00Z' }))
  const [backwards, later] = [consents.toReversed(), users.toReversed()]
  const answers = await Promise.all([
    ...[consents, backwards].map((each) => server.post(toConsents, { consents: each })),
    ...[users, later].map((each) => server.patch(toUsers, { logins: each })),
  ])
  for (const answer of answers) await answered(200, answer, { recorded: 1_000, unknown: [] })
  const where = { user: { username: { startsWith: 'many-' } } }
  expect(await db.userConsent.count({ where })).toBe(1_000)
  expect(await db.user.count({ where: { ...where.user, lastLogin: new Date('2026-02-01') } })).toBe(1_000)
  for (const list of [[], [...consents, ...consents.slice(0, 1)]])
    await on.refused(400, () => server.post(toConsents, { consents: list }))
  await on.refused(400, () => server.patch(toUsers, { logins: [...users, ...users.slice(0, 1)] }))
})

test('a user who is deleted meanwhile is not known', async () => {
  const user = await on.make.user()
  const body = { consents: [{ user: user.pk, client_id: known.client_id, permissions: 'openid' }] }
  const waiting = await db.$transaction(async (tx) => {
    await tx.user.delete({ where: { pk: user.pk } })
    const answer = server.post(toConsents, body)
    await until('the consent waits', async () => {
      const found = await rows(
        db,
        sql`SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
      )
      return found.length > 0
    })
    return { answer }
  })
  await answered(200, waiting.answer, { recorded: 0, unknown: [0] })
})

test('it takes the permission, and no token that is bound to a stack', async () => {
  const consents = [{ user: ada, client_id: known.client_id, permissions: 'openid' }]
  const users = [{ user: ada, last_login: '2026-01-01T00:00:00Z' }]
  const other = await on.make.user({
    permissions: ['view_oauth2provider', 'view_user', 'change_user', 'add_userconsent'],
  })
  const bound = askAs(on.app, await on.make.token(server.pk, { ceiling: ['record_sign_in', 'stack:one'] }))
  for (const by of [other, bound]) {
    await on.refused(403, () => by.post(toConsents, { consents }))
    await on.refused(403, () => by.patch(toUsers, { logins: users }))
  }
  const wrong = { consents: [{ user: true, client_id: 1, permissions: 'a\nb', expires: 'soon', scope: 'openid' }] }
  const { errors } = await on.refused(400, () => server.post(toConsents, wrong))
  expect(errors.map(({ code, pointer }) => [pointer, code])).toEqual([
    ['/consents/0/user', 'wrong_type'],
    ['/consents/0/client_id', 'wrong_type'],
    ['/consents/0/permissions', 'wrong_format'],
    ['/consents/0/expires', 'wrong_format'],
    ['/consents/0/scope', 'unknown_field'],
  ])
})
