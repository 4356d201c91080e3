import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { applyPath, counts, installation, type Made, named, versions } from '../support/kit.ts'

/** Who may apply, and what a refusal shows. */

const there = await installation()
const { make } = there

async function unwritten<Result>(act: () => Promise<Result>): Promise<Result> {
  const before = [await counts(there.db), await versions(there.db)]
  const result = await act()
  expect([await counts(there.db), await versions(there.db)]).toEqual(before)
  return result
}

describe('every unauthenticated caller gets the same answer', () => {
  const refused = {
    detail: 'Send a valid access token: Authorization: Bearer <ACCESS_TOKEN>.',
    code: 'not_authenticated',
  }
  const past = new Date(Date.now() - 1_000)

  test.each<[string, () => Promise<string | undefined>]>([
    ['no header', async () => undefined],
    ['an empty header', async () => ''],
    ['no token', async () => 'Bearer'],
    ['another scheme', async () => `Basic ${(await make.user({ superuser: true })).token}`],
    ['no scheme', async () => (await make.user({ superuser: true })).token],
    ['two tokens', async () => `Bearer ${(await make.user({ superuser: true })).token} x`],
    ['a token with a letter more', async () => `Bearer ${(await make.user({ superuser: true })).token}x`],
    ['an unknown token', async () => 'Bearer gw_a_0000000000000000000000000000000000000000'],
    ['a token as long as a novel', async () => `Bearer ${'x'.repeat(10_000)}`],
    [
      'an expired token with a letter less',
      async () =>
        `Bearer ${(await make.token((await make.user({ superuser: true })).pk, { expires: past })).slice(0, -1)}`,
    ],
    [
      'an expired token of another intent',
      async () =>
        `Bearer ${await make.token((await make.user({ superuser: true })).pk, { intent: 'recovery', expires: past })}`,
    ],
    [
      'an expired token of an inactive owner',
      async () => `Bearer ${await make.token((await make.user({ isActive: false })).pk, { expires: past })}`,
    ],
    [
      'a token for verification',
      async () => `Bearer ${await make.token((await make.user({ superuser: true })).pk, { intent: 'verification' })}`,
    ],
    [
      'a token for recovery',
      async () => `Bearer ${await make.token((await make.user({ superuser: true })).pk, { intent: 'recovery' })}`,
    ],
    [
      'an app password',
      async () => `Bearer ${await make.token((await make.user({ superuser: true })).pk, { intent: 'app_password' })}`,
    ],
    ['an inactive owner', async () => `Bearer ${(await make.user({ superuser: true, isActive: false })).token}`],
  ])('%s', async (_, header) => {
    const authorization = await header()
    const headers = { 'content-type': 'application/json', ...(authorization !== undefined && { authorization }) }
    const anonymous = there.as('')
    const answer = await unwritten(() =>
      anonymous.send({
        method: 'PUT',
        url: applyPath,
        payload: '{"not":"looked at"',
        headers: { authorization: '', ...headers },
      }),
    )
    expect(answer).toMatchObject({ status: 401, json: refused, headers: { 'www-authenticate': 'Bearer' } })
    expect(answer.headers['x-request-id']).toBeDefined()
  })

  test('except who sends the whole of an expired token: it is named, with the day', async () => {
    const identifier = `pipeline-${randomUUID()}`
    const expires = new Date('2026-01-22T23:59:59Z')
    const token = await make.token((await make.user({ superuser: true })).pk, { identifier, expires })
    const answer = await there.as(token).get('/api/v3/core/users/me/')
    const detail = `The token "${identifier}" expired on 2026-01-22. ${refused.detail}`
    const headers = { 'www-authenticate': 'Bearer' }
    expect(answer).toMatchObject({ status: 401, headers, json: { ...refused, detail } })
  })

  test('a token that has not expired is accepted, with any case of the scheme', async () => {
    const user = await make.user()
    const token = await make.token(user.pk, { expires: new Date(Date.now() + 60_000) })
    expect(await there.as(token).put(applyPath, {})).toMatchObject({ status: 403 })
    expect(
      await there.as('').send({ method: 'PUT', url: applyPath, headers: { authorization: `bearer ${token}` } }),
    ).toMatchObject({ status: 403 })
  })
})

describe('a submission requires the permissions for its changes', () => {
  const applicationOnly = ['add_application', 'change_application']
  const both = ['add_application', 'add_oauth2provider', 'change_application', 'change_oauth2provider']

  test.each<[string, string[], 'new' | 'there', number]>([
    ['nothing', [], 'new', 403],
    ['the application only', applicationOnly, 'new', 403],
    ['the provider only', ['add_oauth2provider'], 'new', 403],
    ['another kind of provider', [...applicationOnly, 'add_samlprovider', 'change_samlprovider'], 'new', 403],
    ['to view', ['view_application', 'view_oauth2provider'], 'new', 403],
    ['to delete', ['delete_application', 'delete_oauth2provider'], 'new', 403],
    ['to add both', ['add_application', 'add_oauth2provider'], 'new', 200],
    ['to change both', ['change_application', 'change_oauth2provider'], 'new', 403],
    ['to add both', ['add_application', 'add_oauth2provider'], 'there', 403],
    ['to change both', ['change_application', 'change_oauth2provider'], 'there', 200],
    ['to change the provider and add the application', ['add_application', 'change_oauth2provider'], 'there', 403],
    ['all of it', both, 'new', 200],
    ['all of it', both, 'there', 200],
  ])('who may do %s (%j) with what is %s: %i', async (_, permissions, where, status) => {
    const name = `n${crypto.randomUUID().slice(0, 8)}`
    const body = await named('oauth2', name)
    if (where === 'there') expect((await there.admin.put(applyPath, body)).status).toBe(200)
    const user = await make.user({ permissions })
    const changed = {
      ...body,
      app: { ...body.app, group: 'Changed' },
      provider: { ...body.provider, sub_mode: 'user_id' },
    }
    const act = () => user.put(applyPath, changed)
    const answer = status === 403 ? await unwritten(act) : await act()
    expect(answer.status).toBe(status)
    if (status === 403)
      expect(answer.json).toEqual({ detail: expect.stringMatching(/permission/), code: 'permission_denied' })
  })

  test('a provider to add and an application to change: each by its actual change', async () => {
    const body = await named('oauth2', 'each-its-own')
    await there.admin.put(applyPath, body)
    const moved = { ...body, provider: { ...body.provider, name: 'each-its-own-2', client_id: 'each-its-own-2' } }
    const wrong = await make.user({ permissions: ['add_application', 'change_oauth2provider'] })
    expect(await unwritten(() => wrong.put(applyPath, moved))).toMatchObject({
      status: 403,
      json: { detail: expect.stringContaining('add_oauth2provider') },
    })
    const right = await make.user({ permissions: ['change_application', 'add_oauth2provider'] })
    expect(await right.put(applyPath, moved)).toMatchObject({ status: 200, json: { applied: true } })
  })

  test('rights flow down from ancestors, and flags too', async () => {
    const role = await make.role(both)
    const top = await make.group({ roles: [role.pk] })
    const middle = await make.group({ parent: top.pk })
    const user = await make.user({ groups: [(await make.group({ parent: middle.pk })).pk] })
    expect(await user.submit('oauth2', 'inherited')).toMatchObject({ status: 200 })
    const flagged = await make.group({ superuser: true })
    const heir = await make.user({ groups: [(await make.group({ parent: flagged.pk })).pk] })
    expect(await heir.submit('saml', 'inherited-flag')).toMatchObject({ status: 200 })
  })

  test('a missing permission is reported before anything is looked up', async () => {
    const user = await make.user({ permissions: applicationOnly })
    const body = await named('oauth2', 'each-its-own', {
      provider: { signing_key: '6f7e0000-0000-4000-8000-00000000ffff' },
    })
    const { text } = await user.put(applyPath, body, { ifNoneMatch: '*' })
    expect(text).toBe(
      JSON.stringify({
        detail: 'You lack the permission add_oauth2provider or change_oauth2provider.',
        code: 'permission_denied',
      }),
    )
  })
})

describe('rights that were removed between queueing and applying do not apply', () => {
  const permissions = ['add_application', 'add_oauth2provider']
  const removals: Record<string, [(user: Made) => Promise<unknown>, RegExp]> = {
    'the role loses the permission': [
      ({ group }) =>
        there.db.role.updateMany({
          where: { groups: { some: { groupPk: group } } },
          data: { permissions: ['add_application'] },
        }),
      /^rolled back: user-\S+ may not write provider oauth2 "\S+": the permission add_oauth2provider, .* is missing$/,
    ],
    'the user leaves the group': [
      ({ pk }) => there.db.membership.deleteMany({ where: { userPk: pk } }),
      /may not write provider/,
    ],
    'the user is deactivated': [
      ({ pk }) => there.db.user.update({ where: { pk }, data: { isActive: false } }),
      /^rolled back: the submitter is gone or no longer active$/,
    ],
    'the user is deleted': [
      ({ pk }) => there.db.user.delete({ where: { pk } }),
      /^rolled back: the submitter is gone or no longer active$/,
    ],
  }

  test.each(Object.entries(removals))('%s', async (_, [remove, why]) => {
    const user = await make.user({ permissions })
    const name = `late-${crypto.randomUUID().slice(0, 8)}`
    const release = there.hold()
    const answering = user.submit('oauth2', name, { headers: { 'x-request-id': name } })
    await there.queued(1)
    await remove(user)
    const before = await versions(there.db)
    release()
    const { status, json } = await answering
    expect({ status, json }).toEqual({ status: 200, json: { applied: false, logs: [expect.stringMatching(why)] } })
    expect(await versions(there.db)).toEqual(before)
    expect(await there.db.provider.count({ where: { name } })).toBe(0)
    expect(await there.db.auditRow.count({ where: { requestId: name } })).toBe(0)
    expect(await there.db.run.findFirst({ where: { requestId: name } })).toMatchObject({
      state: 'done',
      applied: false,
      reason: 'permission_denied',
    })
  })
})

test('a slug that was taken between queueing and applying is 412 for a create', async () => {
  const release = there.hold()
  const bodies = [await named('rac', 'meanwhile'), await named('saml', 'meanwhile-2', { app: { slug: 'meanwhile' } })]
  const answers = bodies.map((body) => there.admin.put(applyPath, body, { ifNoneMatch: '*' }))
  await there.queued(2)
  release()
  const settled = await Promise.all(answers)
  expect(settled.map(({ status }) => status).sort()).toEqual([200, 412])
  const refused = settled.find(({ status }) => status === 412)
  expect(refused?.json).toEqual({
    detail: expect.stringContaining('rolled back: application "meanwhile" is there already'),
    code: 'precondition_failed',
  })
  expect(await there.db.provider.count({ where: { name: { startsWith: 'meanwhile' } } })).toBe(1)
})
