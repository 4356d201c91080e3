import { createHash, randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { permissionNames } from '../../src/models/registry.ts'
import { me as schema } from '../../src/views/me.ts'
import {
  type Asker,
  aGroup,
  answered,
  applied,
  execute,
  type Installation,
  installation,
  named,
  rows,
  sql,
} from '../support/kit.ts'
import { statementsOf } from '../support/statements.ts'

/** GET /api/v3/core/users/me/, and impersonation, which it shows. */

const path = '/api/v3/core/users/me/'

const on = await installation()

const read = async (asker: Installation['admin'], as?: string) => {
  const answer = await answered(200, asker.get(path, { headers: as === undefined ? {} : { 'impersonate-user': as } }))
  return schema.strict().parse(answer.json)
}

test('the admin gets their own user, with every permission', async () => {
  const { user, ...rest } = await read(on.admin)
  expect(rest).toEqual({})
  expect(user).toMatchObject({ pk: 1, username: 'admin', name: 'Administrator', is_active: true, is_superuser: true })
  expect(user).toMatchObject({ email: '', type: 'internal', settings: {} })
  expect(user.groups).toEqual([{ name: 'gatewright Admins', pk: '6f7e0000-0000-4000-8000-000000000501' }])
  expect(user.system_permissions).toEqual(permissionNames(on.engine.registry))
  const [installed] = await rows<{ id: string }>(on.db, sql`SELECT id FROM installation`)
  expect(user.uid).toBe(createHash('sha256').update(`1-${installed?.id}`).digest('hex'))
  expect(user.avatar).toMatch(/^data:image\/svg\+xml;base64,/)
})

test('inherited from groups above: roles, the superuser flag and settings', async () => {
  const top = await on.make.group({ roles: [(await on.make.role(['view_user'])).pk] })
  const middle = await on.make.group({ parent: top.pk })
  const someone = await on.make.user({ permissions: ['view_group'], groups: [middle.pk] })
  const settings = (pk: string, name: string, value: unknown) =>
    rows(
      on.db,
      sql`UPDATE groups SET name = ${name}, attributes = ${JSON.stringify({ settings: value, other: 1 })}::jsonb,
        settings_by_superuser = true WHERE pk = ${pk}`,
    )
  await settings(top.pk, 'me b', { theme: { dark: true, size: 1 }, order: 'b' })
  await settings(middle.pk, 'me a', { theme: { size: 2 }, order: 'a', mine: 'group' })
  await settings(someone.group, 'me c', 'no object')
  await rows(
    on.db,
    sql`UPDATE users SET attributes = '{"settings": {"mine": "user"}, "avatar": "https://example.com/me.png"}' WHERE pk = ${someone.pk}`,
  )
  const { user } = await read(someone)
  expect(user.groups.map(({ name }) => name)).toEqual(['me a', 'me b', 'me c'])
  expect(user.settings).toEqual({ theme: { dark: true, size: 1 }, order: 'b', mine: 'user' })
  expect(user.system_permissions).toEqual(['view_group', 'view_user'])
  expect(user).toMatchObject({ is_superuser: false, avatar: 'https://example.com/me.png' })
})

describe('settings of a group', () => {
  const write = async (asker: Asker, group: string, attributes: object, as?: string) => {
    const headers = { 'content-type': 'application/json', ...(as !== undefined && { 'impersonate-user': as }) }
    const payload = JSON.stringify({ attributes })
    await answered(200, asker.send({ method: 'PATCH', url: `/api/v3/core/groups/${group}/`, headers, payload }))
  }
  const settingsOf = async (asker: Asker) => (await read(asker)).user.settings
  const theme = (of: string) => ({ settings: { theme: of } })

  test('reach only users all of whose rights the caller held who wrote them', async () => {
    const { pk } = await on.make.group()
    const writer = await on.make.user({ permissions: ['change_group', 'view_user'] })
    const plain = await on.make.user({ groups: [pk] })
    const weaker = await on.make.user({ groups: [pk], permissions: ['view_user'] })
    const stronger = await on.make.user({ groups: [pk], permissions: ['view_user', 'view_group'] })
    const root = await on.make.user({ groups: [pk], superuser: true })
    await on.db.user.update({ where: { pk: stronger.pk }, data: { attributes: theme('own') } })
    await write(writer, pk, theme('of the writer'))
    for (const user of [plain, weaker]) expect(await settingsOf(user)).toEqual({ theme: 'of the writer' })
    expect(await settingsOf(stronger)).toEqual({ theme: 'own' })
    expect(await settingsOf(root)).toEqual({})
    await write(on.admin, pk, theme('of the admin'))
    expect(await settingsOf(root)).toEqual({ theme: 'of the admin' })
    await write(writer, pk, theme('of the writer again'))
    expect(await settingsOf(root)).toEqual({})
  })

  test('of a group above, and of a new group, too', async () => {
    const writer = await on.make.user({ permissions: ['add_group'] })
    const body = { name: `settings ${randomUUID()}`, attributes: theme('of the writer') }
    const made = await writer.send({
      ...{ method: 'POST', url: '/api/v3/core/groups/', headers: { 'content-type': 'application/json' } },
      payload: JSON.stringify(body),
    })
    const { pk } = z.object({ pk: z.string() }).parse(made.json)
    const low = await on.make.group({ parent: pk })
    const plain = await on.make.user({ groups: [low.pk] })
    const stronger = await on.make.user({ groups: [low.pk], permissions: ['view_user'] })
    expect(await settingsOf(plain)).toEqual({ theme: 'of the writer' })
    expect(await settingsOf(stronger)).toEqual({})
  })

  test('keep their writer while others change other attributes, and are confirmed by a caller who holds more', async () => {
    const { pk } = await on.make.group()
    const weak = await on.make.user({ permissions: ['change_group'] })
    const root = await on.make.user({ groups: [pk], superuser: true })
    await write(weak, pk, theme('dark'))
    await write(on.admin, pk, { ...theme('dark'), room: 1 })
    expect(await settingsOf(root)).toEqual({ theme: 'dark' })
    await write(weak, pk, { ...theme('dark'), room: 2 })
    await write(weak, pk, { ...theme('dark'), room: 2 })
    expect(await settingsOf(root)).toEqual({ theme: 'dark' })
    await write(weak, pk, theme('light'))
    expect(await settingsOf(root)).toEqual({})
    // Nothing changes but who stands for it.
    await write(on.admin, pk, theme('light'))
    expect(await settingsOf(root)).toEqual({ theme: 'light' })
  })

  test('of a weaker writer are not put back by a roll back, which would be their writer', async () => {
    const [name, member] = [`settings ${randomUUID()}`, await on.make.user({ superuser: true })]
    const weak = await on.make.user({ permissions: ['add_group'] })
    await applied(weak.apply([aGroup(name, { attributes: theme('of the weak') })]))
    const { run } = await applied(on.admin.apply([aGroup(name, { users: [member.pk] })]))
    await applied(on.admin.apply([aGroup(name, { attributes: theme('of the admin') })]))
    const back = await applied(on.admin.post(`${run}apply/`))
    expect((await on.admin.runOf(back)).not_put_back).toContain(`group "${name}": attributes`)
    expect(await settingsOf(member)).toEqual({ theme: 'of the admin' })
  })

  test('written while impersonating have the rights of both users', async () => {
    const { pk } = await on.make.group()
    const support = await on.make.user({ permissions: ['impersonate', 'view_group'] })
    const helped = await on.make.user({ permissions: ['change_group', 'view_user', 'view_group'] })
    const one = await on.make.user({ groups: [pk], permissions: ['view_group'] })
    const other = await on.make.user({ groups: [pk], permissions: ['view_user'] })
    await write(support, pk, theme('by both'), helped.username)
    expect(await settingsOf(one)).toEqual({ theme: 'by both' })
    expect(await settingsOf(other)).toEqual({})
    await write(on.admin, pk, theme('by the admin'), helped.username)
    expect(await settingsOf(other)).toEqual({ theme: 'by the admin' })
  })

  test('of an unknown writer, from before an upgrade, reach users without permissions only', async () => {
    const { pk } = await on.make.group()
    await on.db.group.update({ where: { pk }, data: { attributes: theme('old') } })
    expect(await settingsOf(await on.make.user({ groups: [pk] }))).toEqual({ theme: 'old' })
    expect(await settingsOf(await on.make.user({ groups: [pk], permissions: ['view_user'] }))).toEqual({})
  })
})

test.for(['http://example.com/a.png', 'javascript:alert(1)', 'https://', 7])(
  'an avatar at %s is not passed on',
  async (avatar) => {
    const someone = await on.make.user()
    const attributes = JSON.stringify({ avatar })
    await rows(on.db, sql`UPDATE users SET attributes = ${attributes}::jsonb WHERE pk = ${someone.pk}`)
    expect((await read(someone)).user.avatar).toMatch(/^data:image/)
  },
)

test('takes at most 3 statements, and while impersonating one more for the audit', async () => {
  const someone = await on.make.user({ permissions: ['view_user'] })
  for (const [as, most] of [
    [undefined, 3],
    [someone.username, 4],
  ] as const) {
    const { length } = await statementsOf(() => read(on.admin, as))
    // Two at least, authentication and the user: fewer would mean that they were not recorded.
    expect(length).toBeGreaterThanOrEqual(2)
    expect(length).toBeLessThanOrEqual(most)
  }
})

test('of thousands of groups, all are there, with the settings of one', async () => {
  const someone = await on.make.user({ permissions: ['view_user'] })
  const attributes = JSON.stringify({ notes: 'x'.repeat(1_000) })
  await execute(
    on.db,
    sql`WITH made AS (
        INSERT INTO groups (pk, name, attributes)
        SELECT gen_random_uuid(), 'many ' || n, ${attributes}::jsonb FROM generate_series(1, 3000) n RETURNING pk
      ) INSERT INTO memberships (group_pk, user_pk) SELECT pk, ${someone.pk} FROM made`,
  )
  await execute(
    on.db,
    sql`UPDATE groups SET attributes = '{"settings": {"theme": "dark"}}', settings_by_superuser = true WHERE name = 'many 7'`,
  )
  const { user } = await read(someone)
  expect(user.groups).toHaveLength(3_001)
  expect(user.settings).toEqual({ theme: 'dark' })
  expect(user.system_permissions).toEqual(['view_user'])
})

test('no parameters are accepted', async () => {
  expect((await on.admin.get(`${path}?page=1`)).json).toEqual({ page: ['Unknown parameter.'], code: 'invalid' })
})

describe('Impersonate-User', () => {
  test('shows both', async () => {
    const someone = await on.make.user({ permissions: ['view_user'] })
    const { user, original } = await read(on.admin, someone.username)
    expect(user).toMatchObject({ pk: someone.pk, is_superuser: false, system_permissions: ['view_user'] })
    expect(original).toMatchObject({ pk: 1, username: 'admin', is_superuser: true })
  })

  test('gives the rights of the other, and no more', async () => {
    const someone = await on.make.user()
    await answered(403, on.admin.get('/api/v3/core/users/', { headers: { 'impersonate-user': someone.username } }))
  })

  test('requires the permission, and does not show other callers which users exist', async () => {
    const someone = await on.make.user()
    for (const name of [someone.username, 'no-such-user']) {
      await answered(403, someone.get(path, { headers: { 'impersonate-user': name } }), { code: 'permission_denied' })
    }
  })

  test('lets only a superuser impersonate a superuser', async () => {
    const supporter = await on.make.user({ permissions: ['impersonate'] })
    expect(await supporter.get(path, { headers: { 'impersonate-user': 'admin' } })).toMatchObject({ status: 403 })
    const other = await on.make.user()
    expect((await read(supporter, other.username)).original?.pk).toBe(supporter.pk)
  })

  test.for(['no-such-user', '', 'x'.repeat(200), 'ümläut'])('of a missing user, %s, is an error', async (name) => {
    const answer = await answered(400, on.admin.get(path, { headers: { 'impersonate-user': name } }))
    expect(answer.json).toEqual({ 'Impersonate-User': ['There is no active user of this name.'], code: 'invalid' })
  })

  // The last byte of an à is a space in Latin-1.
  test.for(['žofie', 'nicolà'])('finds a name beyond ASCII, %s, sent as UTF-8', async (name) => {
    const someone = await on.make.user()
    await rows(on.db, sql`UPDATE users SET username = ${name} WHERE pk = ${someone.pk}`)
    expect((await read(on.admin, Buffer.from(name).toString('latin1'))).user.pk).toBe(someone.pk)
  })

  test('is in the audit row of what was applied, with both names', async () => {
    const deployer = await on.make.user({ groups: ['6f7e0000-0000-4000-8000-000000000502'] })
    const body = await named('radius', 'impersonated')
    const answer = await on.admin.put('/api/v3/core/transactional/applications/', body, {
      headers: { 'impersonate-user': deployer.username },
    })
    expect(answer).toMatchObject({ status: 200, json: { applied: true } })
    const [row] = await rows(
      on.db,
      sql`SELECT actor_pk, actor_name, real_pk, real_name FROM audit_rows ORDER BY pk DESC LIMIT 1`,
    )
    expect(row).toEqual({ actor_pk: deployer.pk, actor_name: deployer.username, real_pk: 1, real_name: 'admin' })
  })
})
