import { randomUUID } from 'node:crypto'
import { describe, expect, inject, test } from 'vitest'
import { held } from '../runs/stand.ts'
import { answered, installation, name, rows, sql, until } from '../support/kit.ts'

const there = await installation({ workers: 'none' })
const { make } = there

const path = '/api/v3/core/groups/'

test('names of groups, users and roles stand where keys do', async () => {
  const [parent, ada, role] = [await make.group(), await make.user(), await make.role(['view_user'])]
  const made = await there.admin.post(path, { name, parent: parent.name, users: [ada.username], roles: [role.name] })
  const stored = { parent: parent.pk, users: [ada.pk], roles: [role.pk] }
  expect(made).toMatchObject({ status: 201, json: stored })
  const { pk } = made.json as { pk: string }
  const changed = { parent: null, users: [ada.username.toUpperCase()], roles: [] }
  await answered(200, there.admin.patch(`${path}${pk}/`, changed), { parent: null, users: [ada.pk], roles: [] })
})

test('a group is created and answered in full', async () => {
  const parent = await make.group()
  const ada = await make.user()
  const role = await make.role(['view_user'])
  const body = { name, parent: parent.pk, users: [ada.pk], roles: [role.pk], attributes: { team: 'A' } }
  const { json } = await answered(201, there.admin.post(path, body))
  expect(json).toEqual({
    pk: expect.stringMatching(/^[0-9a-f-]{36}$/),
    num_pk: expect.any(Number),
    name,
    is_superuser: false,
    parent: parent.pk,
    parent_name: parent.name,
    users: [ada.pk],
    users_obj: [expect.objectContaining({ pk: ada.pk, username: ada.username })],
    attributes: { team: 'A' },
    roles: [role.pk],
    roles_obj: [{ pk: role.pk, name: role.name }],
  })
})

test('only a name is required; other fields have defaults', async () => {
  const { json } = await answered(201, there.admin.post(path, { name }))
  expect(json).toMatchObject({ parent: null, parent_name: null, users: [], users_obj: [], roles: [], attributes: {} })
})

test('a write is answered without its users on request', async () => {
  const ada = await make.user()
  const shortly = '?include_users=false'
  const made = await there.admin.post(`${path}${shortly}`, { name, users: [ada.pk] })
  expect(made).toMatchObject({ status: 201, json: { users: [ada.pk], users_obj: null } })
  const url = `${path}${(made.json as { pk: string }).pk}/`
  const changed = await there.admin.patch(`${url}${shortly}`, { attributes: { a: 1 } })
  expect(changed).toMatchObject({ status: 200, json: { users: [ada.pk], users_obj: null, attributes: { a: 1 } } })
  expect(changed.headers.etag).toBe((await there.admin.get(`${url}${shortly}`)).headers.etag)
  await answered(400, there.admin.patch(`${url}?include_user=false`, {}), { include_user: expect.anything() })
})

test('a change changes the sent fields, and read values can be sent back', async () => {
  const ada = await make.user()
  const made = (await there.admin.post(path, { name, users: [ada.pk], attributes: { a: 1 } })).json
  const { pk } = made as { pk: string }
  const changed = await answered(200, there.admin.patch(`${path}${pk}/`, { is_superuser: true, users: [ada.pk] }))
  expect(changed.json).toEqual({ ...(made as object), is_superuser: true })
  const back = await there.admin.patch(`${path}${pk.toUpperCase()}/`, changed.json)
  expect(back.json).toEqual(changed.json)
})

describe('who may', () => {
  test('create with add_group, change with change_group; more by what it gives', async () => {
    const ada = await make.user({ permissions: ['view_group'] })
    expect(await ada.post(path, { name })).toMatchObject({ status: 403, json: { code: 'permission_denied' } })
    const { pk } = await make.group()
    expect(await ada.patch(`${path}${pk}/`, { name })).toMatchObject({ status: 403 })
    const bea = await make.user({ permissions: ['add_group', 'change_group'] })
    expect((await bea.post(path, { name })).status).toBe(201)
    expect((await bea.patch(`${path}${pk}/`, { attributes: { a: 1 } })).status).toBe(200)
    const flagged = await bea.patch(`${path}${bea.group}/`, { is_superuser: true })
    expect(flagged).toMatchObject({ status: 403, json: { code: 'permission_denied' } })
    expect(JSON.stringify(flagged.json)).toContain('enable_group_superuser')
    expect((await bea.post(path, { name: `${name} 2`, users: [bea.pk] })).status).toBe(403)
  })

  test('see members in answers: a caller without view_user gets their keys only', async () => {
    const bob = await make.user()
    const permissions = ['view_group', 'add_group', 'change_group', 'add_user_to_group']
    const ada = await make.user({ permissions })
    const bea = await make.user({ permissions: [...permissions, 'view_user'] })
    for (const [caller, shown] of [
      [ada, null],
      [bea, [expect.objectContaining({ pk: bob.pk, username: bob.username })]],
    ] as const) {
      const expected = { users: [bob.pk], users_obj: shown }
      const made = await caller.post(path, { name: `${name} ${caller.pk}`, users: [bob.pk] })
      expect(made).toMatchObject({ status: 201, json: expected })
      const { pk } = made.json as { pk: string }
      expect(await caller.patch(`${path}${pk}/`, { attributes: { a: 1 } })).toMatchObject({
        status: 200,
        json: expected,
      })
      const query = `?name=${encodeURIComponent(`${name} ${caller.pk}`)}`
      for (const include of ['', '&include_users=true'])
        expect((await caller.get(`${path}${query}${include}`)).json).toMatchObject({ results: [expected] })
      expect((await caller.get(`${path}${query}&include_users=false`)).json).toMatchObject({
        results: [{ users: [bob.pk], users_obj: null }],
      })
    }
  })

  test('not without a token', async () => {
    expect((await there.as('x').post(path, { name })).status).toBe(401)
  })
})

describe('errors are reported by field, all at once', () => {
  test('on create', async () => {
    await there.admin.post(path, { name })
    const bad = { name, is_superuser: 1, parent: 'x', users: ['a'], roles: 'r', attributes: [], nam: 1 }
    const { json } = await answered(400, there.admin.post(path, bad))
    expect(json).toEqual({
      code: 'invalid',
      name: [`"${name}" is taken by group "${name}".`],
      is_superuser: ['Must be true or false.'],
      parent: ['No group is called "x".'],
      users: { 0: ['No user is called "a".'] },
      roles: ['Must be a list.'],
      attributes: ['Must be an object.'],
      nam: ['Unknown field. Did you mean name?'],
    })
  })

  test('a circle, and text that cannot be stored', async () => {
    const top = await make.group()
    const low = await make.group({ parent: top.pk })
    const bad = `{"parent": "${low.pk}", "attributes": {"a": "\\u0000"}}`
    const { json } = await answered(400, there.admin.patch(`${path}${top.pk}/`, bad))
    expect(json).toMatchObject({
      parent: [expect.stringContaining('circle')],
      attributes: { a: [expect.stringContaining('NUL')] },
    })
  })

  test('a missing group', async () => {
    expect((await there.admin.patch(`${path}${randomUUID()}/`, { name })).status).toBe(404)
    expect((await there.admin.patch(`${path}no-uuid/`, { name })).status).toBe(404)
  })
})

test('an impersonated change is recorded with both users', async () => {
  const root = await make.user({ superuser: true })
  const bea = await make.user({ permissions: ['add_group'] })
  const asBea = { 'impersonate-user': bea.username }
  await answered(201, root.post(path, { name }, { headers: { ...asBea, 'x-request-id': name.replace(' ', '-') } }))
  expect((await root.post(path, { name: `${name} 2`, is_superuser: true }, { headers: asBea })).status).toBe(403)
  const rows = await there.db.auditRow.findMany({ where: { requestId: name.replace(' ', '-') } })
  expect(rows).toMatchObject([
    { action: 'create', actorPk: bea.pk, actorName: bea.username, realPk: root.pk, realName: root.username },
  ])
})

test('a change that waits for the deletion of its group finds none', async () => {
  const { pk } = await make.group()
  const release = await held(there, (tx) => tx.group.delete({ where: { pk } }))
  const change = there.admin.patch(`${path}${pk}/`, { attributes: { a: 1 } })
  const waiting = sql`SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  await until('the change to wait', async () => (await rows(there.db, waiting)).length > 0)
  await release()
  await answered(404, change)
})

test('concurrent moves never close a circle', async () => {
  const [a, b] = [(await make.group()).pk, (await make.group()).pk]
  for (let round = 0; round < 40 * inject('rounds'); round += 1) {
    const moves = await Promise.all([
      there.admin.patch(`${path}${a}/`, { parent: b }),
      there.admin.patch(`${path}${b}/`, { parent: a }),
    ])
    expect(moves.map(({ status }) => status).sort()).toEqual([200, 400])
    await there.db.group.updateMany({ where: { pk: { in: [a, b] } }, data: { parentPk: null } })
  }
})

test('the last superuser stays in the group', async () => {
  const group = await there.db.group.findUniqueOrThrow({ where: { name: 'gatewright Admins' } })
  await there.db.group.updateMany({ where: { pk: { not: group.pk } }, data: { isSuperuser: false } })
  for (const [member, value] of [
    ['is_superuser', false],
    ['users', []],
  ] as const) {
    const { status, json } = await there.admin.patch(`${path}${group.pk}/`, { [member]: value })
    const message = expect.stringMatching(/^Would leave no superuser who can authenticate: /)
    expect([status, json]).toEqual([400, { code: 'invalid', [member]: [message] }])
  }
})
