import { describe, expect, test } from 'vitest'
import { answered, applied, applyPath, example, installation, kinds } from '../support/kit.ts'

/** The shipped group of deployers: it applies applications of every kind, and does nothing else. */

const deployers = '6f7e0000-0000-4000-8000-000000000502'

const service = await installation()
const member = await service.make.user({ groups: [deployers] })

test('its role is the only grant, and holds exactly the permissions to view, add and change', async () => {
  const group = await service.db.group.findUniqueOrThrow({
    where: { pk: deployers },
    include: { roles: { include: { role: true } } },
  })
  expect(group).toMatchObject({ name: 'gatewright Deployers', isSuperuser: false, parentPk: null })
  const resources = ['application', ...kinds.map((kind) => `${kind}provider`)]
  const needed = resources.flatMap((resource) => ['view', 'add', 'change'].map((verb) => `${verb}_${resource}`))
  const [role, ...others] = group.roles.map(({ role: { permissions } }) => permissions)
  expect(role?.toSorted()).toEqual(needed.sort())
  expect(others).toEqual([])
})

describe.each(kinds)('of kind %s', (kind) => {
  test('a member creates, repeats and changes the example', async () => {
    const body = await example(kind)
    for (const outcome of [/created/, /unchanged/]) {
      const answer = await applied(member.put(applyPath, body))
      expect(answer.text).toMatch(outcome)
    }
    const changed = await example(kind, { app: { meta_description: 'changed' } })
    expect((await member.put(applyPath, changed)).text).toMatch(/updated: meta_description/)
  })

  /** What the example is answered when a user holds only one of both permissions. */
  const answersTo = async (verb: string, changes: Parameters<typeof example>[1]) => {
    const body = await example(kind, changes)
    const single = [`${verb}_application`, `${verb}_${kind}provider`].map(async (permission) => {
      const user = await service.make.user({ permissions: [permission] })
      return (await user.put(applyPath, body)).status
    })
    return Promise.all(single)
  }

  test('neither to add nor to change is one permission enough', async () => {
    const name = `other-${kind.replaceAll('_', '-')}`
    const other = { app: { slug: name }, provider: { name, ...(kind === 'oauth2' && { client_id: name }) } }
    expect(await answersTo('add', other)).toEqual([403, 403])
    expect(await answersTo('change', { app: { meta_publisher: 'changed' } })).toEqual([403, 403])
  })
})

/** What a blueprint entry would do, were the member a superuser. */
const blueprint = (entry: object) => ({ version: 1, metadata: { name: 'x' }, entries: [entry] })

test.each<[string, string, unknown]>([
  ['GET', '/core/users/', undefined],
  ['GET', '/core/groups/', undefined],
  ['POST', '/core/groups/', { name: 'mine' }],
  ['PATCH', `/core/groups/${deployers}/`, { is_superuser: true }],
  ['POST', '/core/tokens/', { identifier: 'for-the-admin', user: 1 }],
  ['GET', '/authenticators/admin/totp/', undefined],
  [
    'PUT',
    '/blueprints/',
    blueprint({ model: 'service_core.application', identifiers: { slug: 'x' }, state: 'absent' }),
  ],
  ['PUT', '/blueprints/', blueprint({ model: 'service_core.user', identifiers: { username: 'x' } })],
])('a member is refused: %s %s', async (method, path, body) => {
  const answer = await member.send({
    method,
    url: `/api/v3${path}`,
    ...(body !== undefined && { payload: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  })
  expect(answer, answer.text).toMatchObject({ status: 403, json: { code: 'permission_denied' } })
})

test("a member neither sees, changes, deletes nor takes others' tokens", async () => {
  const bootstrap = '/api/v3/core/tokens/bootstrap/'
  const patch = { payload: '{"description":"mine"}', headers: { 'content-type': 'application/json' } }
  expect((await member.delete(bootstrap)).status).toBe(404)
  expect((await member.send({ method: 'PATCH', url: bootstrap, ...patch })).status).toBe(404)
  expect((await member.get(`${bootstrap}view_key/`)).status).toBe(404)
  expect((await member.get('/api/v3/core/tokens/')).text).not.toContain('bootstrap')
  await answered(403, member.get('/api/v3/core/users/me/', { headers: { 'impersonate-user': 'admin' } }))
})
