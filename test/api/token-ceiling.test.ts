import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { uuid7 } from '../../src/ids.ts'
import { permissionNames } from '../../src/models/registry.ts'
import { type Asker, answered, applyPath, installation, type Made, named, statementsOf } from '../support/kit.ts'

/**
 * A token that a user makes for another one never carries more than its creator held then, whatever its owner gains, and
 * whatever is done with it.
 */

const there = await installation()

const path = '/api/v3/core/tokens/'

const held = ['add_token', 'view_token_key', 'view_user', 'impersonate', 'view_queue']
let creator: Made
let owner: Made
let identifier: string
/** A caller with the token that the creator made for the owner. */
let holder: Asker
let key: string
beforeEach(async () => {
  creator = await there.make.user({ permissions: [...held, 'add_application', 'add_radiusprovider'] })
  owner = await there.make.user()
  identifier = randomUUID()
  key = await made(creator, { identifier, user: owner.pk })
  holder = there.as(key)
})

/** @returns the key of a new token */
async function made(by: Asker, body: { identifier: string; user?: number }, headers = {}): Promise<string> {
  await answered(201, by.post(path, body, { headers }))
  const viewed = await answered(200, by.get(`${path}${body.identifier}/view_key/`, { headers }))
  return (viewed.json as { key: string }).key
}

const stored = (name: string) =>
  there.db.token.findUniqueOrThrow({ where: { identifier: name }, select: { createdBy: true, ceiling: true } })
const ceilingOf = async (name: string) => (await stored(name)).ceiling

const join = async ({ pk: userPk }: Made, groupPk: string) => there.db.membership.create({ data: { userPk, groupPk } })
const promote = async (user: Made) => join(user, (await there.make.group({ superuser: true })).pk)
const grant = async (user: Made, permissions: string[]) =>
  join(user, (await there.make.group({ roles: [(await there.make.role(permissions)).pk] })).pk)

const permissions = async (who: Asker, headers = {}) =>
  ((await who.get('/api/v3/core/users/me/', { headers })).json as { user: { system_permissions: string[] } }).user
    .system_permissions
const mayList = async (who: Asker, headers = {}) =>
  Promise.all(
    ['users', 'groups'].map(async (name) => (await who.get(`/api/v3/core/${name}/`, { headers })).status === 200),
  )

describe('it is kept with the token', () => {
  const all = () => permissionNames(there.engine.registry)

  test('the creator, and the creator’s rights', async () => {
    const ceiling = [...held, 'add_application', 'add_radiusprovider'].sort()
    expect(await stored(identifier)).toEqual({ createdBy: creator.pk, ceiling })
    await there.db.user.delete({ where: { pk: creator.pk } })
    expect(await stored(identifier)).toEqual({ createdBy: null, ceiling })
  })

  test('but none for an own token, or one that a superuser makes', async () => {
    const [own, other] = [randomUUID(), randomUUID()]
    await made(creator, { identifier: own })
    await made(there.admin, { identifier: other, user: owner.pk })
    expect(await stored(own)).toEqual({ createdBy: creator.pk, ceiling: null })
    expect((await stored(other)).ceiling).toBeNull()
    expect(await permissions(creator)).not.toEqual(all())
  })

  test('while impersonating: the real user is the creator, and the ceiling is what both hold', async () => {
    const bob = await there.make.user({ permissions: ['view_user'] })
    const acting = { 'impersonate-user': bob.username }
    const [by, bySuperuser] = [randomUUID(), randomUUID()]
    await made(creator, { identifier: by }, acting)
    expect(await stored(by)).toEqual({ createdBy: creator.pk, ceiling: ['view_user'] })
    await made(there.admin, { identifier: bySuperuser }, acting)
    expect((await stored(bySuperuser)).ceiling).toEqual(['view_user'])
    // What only the effective user holds would outlast the impersonation.
    const strong = await there.make.user({ permissions: ['add_token', 'view_group', 'view_user', 'view_token_key'] })
    const forOwner = randomUUID()
    await made(creator, { identifier: forOwner, user: owner.pk }, { 'impersonate-user': strong.username })
    expect(await ceilingOf(forOwner)).toEqual(['add_token', 'view_token_key', 'view_user'])
  })

  test('is not shown, and cannot be sent', async () => {
    const { text } = await there.admin.get(`${path}?identifier=${identifier}`)
    expect(text).not.toContain('ceiling')
    for (const body of [{ ceiling: null }, { created_by: owner.pk }])
      expect((await there.admin.patch(`${path}${identifier}/`, body)).status).toBe(400)
    await there.admin.patch(`${path}${identifier}/`, { description: 'changed by a superuser' })
    expect(await ceilingOf(identifier)).not.toBeNull()
  })
})

describe('authentication takes what both have', () => {
  test('nothing beyond its owner', async () => {
    expect(await permissions(holder)).toEqual([])
    expect(await mayList(holder)).toEqual([false, false])
    await grant(owner, ['view_user', 'view_group'])
    expect(await permissions(holder)).toEqual(['view_user'])
    expect(await mayList(holder)).toEqual([true, false])
    expect(await mayList(owner)).toEqual([true, true])
  })

  test('no superuser rights when its owner becomes a superuser', async () => {
    await promote(owner)
    expect(await permissions(owner)).toEqual(permissionNames(there.engine.registry))
    expect(await permissions(holder)).toEqual([...held, 'add_application', 'add_radiusprovider'].sort())
    expect(await mayList(holder)).toEqual([true, false])
    expect((await holder.post(path, { identifier: randomUUID(), expiring: false })).status).toBe(403)
  })

  test('all of its ceiling when its owner becomes a superuser, to delegate it too', async () => {
    await promote(owner)
    const strong = await there.make.user({ permissions: ['view_user'] })
    const stronger = await there.make.user({ permissions: ['view_group'] })
    const child = await made(holder, { identifier: randomUUID(), user: strong.pk })
    expect(await permissions(there.as(child))).toEqual(['view_user'])
    expect((await holder.post(path, { identifier: randomUUID(), user: stronger.pk })).status).toBe(403)
  })

  test('nothing that its creator gains later', async () => {
    await promote(owner)
    await promote(creator)
    expect(await mayList(holder)).toEqual([true, false])
  })

  test('while impersonating', async () => {
    await promote(owner)
    const strong = await there.make.user({ permissions: ['view_user', 'view_group'] })
    const root = await there.make.user({ superuser: true })
    const as = ({ username }: Made) => ({ 'impersonate-user': username })
    expect(await permissions(holder, as(strong))).toEqual(['view_user'])
    expect(await mayList(holder, as(strong))).toEqual([true, false])
    const refused = await holder.get('/api/v3/core/users/me/', { headers: as(root) })
    expect(refused).toMatchObject({ status: 403, json: { detail: 'Only a superuser may act as a superuser.' } })
    // The owner's `impersonate` does not help when the ceiling lacks it.
    const weak = await there.make.user({ permissions: ['add_token', 'view_token_key'] })
    const own = there.as(await made(weak, { identifier: randomUUID(), user: (await there.make.user()).pk }))
    expect((await own.get('/api/v3/core/users/me/', { headers: as(strong) })).status).toBe(403)
  })

  test('at the login of the dashboard, and in its session', async () => {
    await promote(owner)
    const host = '127.0.0.1:9000'
    const logIn = (token: string) =>
      there.app.inject({
        method: 'POST',
        url: '/admin/login/',
        headers: { host, origin: `http://${host}`, 'content-type': 'application/x-www-form-urlencoded' },
        payload: new URLSearchParams({ access_token: token }).toString(),
      })
    const { statusCode, headers } = await logIn(key)
    expect(statusCode).toBe(303)
    const cookie = String(headers['set-cookie']).split(';', 1).join()
    const ask = (method: 'GET' | 'PUT', url: string) =>
      there.app.inject({ method, url, headers: { host, origin: `http://${host}`, cookie } })
    expect((await ask('GET', '/admin/queues/')).statusCode).toBe(200)
    expect((await ask('PUT', '/admin/queues/api/queues/apply/pause')).statusCode).toBe(403)
    const weak = await there.make.user({ permissions: ['add_token', 'view_token_key'] })
    const user = await there.make.user()
    const other = await made(weak, { identifier: randomUUID(), user: user.pk })
    await promote(user)
    expect((await logIn(other)).statusCode).toBe(403)
  })

  test('in one statement', async () => {
    const sent = await statementsOf(() => holder.get('/api/v3/core/users/me/'))
    expect(sent.filter((text) => text.includes('key_hash'))).toHaveLength(1)
    expect(sent.length, sent.join('\n')).toBeLessThanOrEqual(2)
  })
})

describe('its holder is not its owner', () => {
  const remove = (who: Asker, name: string) => who.delete(`${path}${name}/`)
  const inDays = (days: number) => new Date(Date.now() + days * 86_400_000)
  const ceiling = [...held, 'add_application', 'add_radiusprovider'].sort()

  test('a token that it makes for another user carries what it holds now', async () => {
    const weak = await there.make.user()
    await grant(owner, ['add_token', 'view_token_key'])
    const child = randomUUID()
    await made(holder, { identifier: child, user: weak.pk })
    expect(await ceilingOf(child)).toEqual(['add_token', 'view_token_key'])
    await promote(weak)
    expect((await remove(holder, child)).status).toBe(404)
  })

  test('it is replaced by its equal, again and again, though its owner holds more', async () => {
    await promote(owner)
    const { expires } = await there.db.token.findUniqueOrThrow({ where: { identifier } })
    let [current, name] = [holder, identifier]
    for (const next of [randomUUID(), randomUUID()]) {
      const child = there.as(await made(current, { identifier: next }))
      expect(await there.db.token.findUniqueOrThrow({ where: { identifier: next } })).toMatchObject({
        userPk: owner.pk,
        ceiling,
        expires,
        intent: 'api',
      })
      expect(await permissions(child)).toEqual(ceiling)
      expect((await remove(current, name)).status).toBe(204)
      expect((await current.get('/api/v3/core/users/me/')).status).toBe(401)
      ;[current, name] = [child, next]
    }
    // One that was made is deleted by the one that made it, too.
    const spare = randomUUID()
    await made(current, { identifier: spare })
    expect((await remove(current, spare)).status).toBe(204)
    expect((await remove(current, name)).status).toBe(204)
  })

  test('with its owners, or fewer of them', async () => {
    await grant(owner, ['add_application', 'change_application'])
    const [both, one, other] = [randomUUID(), randomUUID(), randomUUID()]
    await owner.post(path, { identifier: both, owners: ['team-a', 'team-b'], expires: inDays(300) })
    const bound = there.as(((await owner.get(`${path}${both}/view_key/`)).json as { key: string }).key)
    const equal = there.as(await made(bound, { identifier: one }))
    const narrow = { identifier: other, owners: ['team-b', 'team-c'], expires: inDays(2).toISOString() }
    const narrower = there.as(await made(equal, narrow))
    const rowOf = (name: string) => there.db.token.findUniqueOrThrow({ where: { identifier: name } })
    const [first, second, third] = await Promise.all([both, one, other].map(rowOf))
    expect(second?.owners).toEqual(['team-a', 'team-b'])
    expect(second?.ceiling).toEqual(first?.ceiling)
    expect(second?.expires).toEqual(first?.expires)
    expect(JSON.stringify(third?.ceiling)).not.toMatch(/team-a|team-c/)
    expect(await permissions(narrower)).toEqual(['add_application@team-b', 'change_application@team-b'])
    // What carries more, or ends later, is not its own.
    for (const name of [both, one]) expect((await remove(narrower, name)).status).toBe(404)
    expect((await remove(equal, other)).status).toBe(204)
  })

  test('without an end, when it has none', async () => {
    const user = await there.make.user({ permissions: ['view_group'] })
    const lasting = there.as(await there.make.token(user.pk, { ceiling: ['view_user'] }))
    const [without, usual] = [randomUUID(), randomUUID()]
    expect((await lasting.post(path, { identifier: without, expiring: false })).status).toBe(201)
    expect((await lasting.post(path, { identifier: usual })).status).toBe(201)
    const rows = await there.db.token.findMany({ where: { identifier: { in: [without, usual] } } })
    expect(rows.map(({ expiring, ceiling: own }) => [expiring, own]).sort()).toEqual([
      [false, ['view_user']],
      [true, ['view_user']],
    ])
  })

  test('but no token is made that ends later, has another intent or user, or comes from a document', async () => {
    await promote(owner)
    const other = await there.make.user({ permissions: ['view_group'] })
    const ends = { expires: inDays(300).toISOString() }
    for (const more of [ends, { expiring: false }, { intent: 'app_password' }, { user: other.pk }])
      expect((await holder.post(path, { identifier: randomUUID(), ...more })).status, JSON.stringify(more)).toBe(403)
    expect((await holder.post(path, { identifier: randomUUID(), managed: 'mine' })).status).toBe(400)
    const entry = { model: 'service_core.token', identifiers: { identifier: randomUUID() }, attrs: { user: owner.pk } }
    const document = { version: 1, metadata: { name: 'renewal' }, entries: [entry] }
    expect((await holder.put('/api/v3/blueprints/', document)).status).toBe(403)
    const acting = { 'impersonate-user': owner.username }
    const support = there.as(await there.make.token(creator.pk, { ceiling: held }))
    expect((await support.post(path, { identifier: randomUUID() }, { headers: acting })).status).toBe(403)
  })

  test('other tokens of its owner cannot be viewed, changed or deleted when their user holds more', async () => {
    const [full, later, password] = [randomUUID(), randomUUID(), randomUUID()]
    await owner.post(path, { identifier: full })
    for (const body of [
      { identifier: later, expires: inDays(300) },
      { identifier: password, intent: 'app_password' },
    ])
      expect((await creator.post(path, { ...body, user: owner.pk })).status).toBe(201)
    await grant(owner, ['view_group'])
    for (const name of [full, later, password]) {
      expect((await holder.get(`${path}${name}/view_key/`)).status).toBe(404)
      expect((await holder.patch(`${path}${name}/`, { description: 'x' })).status).toBe(403)
      expect((await remove(holder, name)).status).toBe(404)
    }
    expect((await holder.patch(`${path}${identifier}/`, { description: 'x' })).status).toBe(403)
    expect((await owner.get(`${path}${full}/view_key/`)).status).toBe(200)
  })

  test('a token whose key another user views carries no more than that user held then', async () => {
    const [byOther, byOwner, bySuperuser] = [randomUUID(), randomUUID(), randomUUID()]
    for (const name of [byOther, byOwner, bySuperuser]) await owner.post(path, { identifier: name })
    const view = async (who: Asker, name: string) =>
      ((await who.get(`${path}${name}/view_key/`)).json as { key: string }).key
    const other = there.as(await view(await there.make.user({ permissions: ['view_token_key', 'view_user'] }), byOther))
    await view(owner, byOwner)
    await view(there.admin, bySuperuser)
    expect(await ceilingOf(byOther)).toEqual(['view_token_key', 'view_user'])
    expect(await ceilingOf(byOwner)).toBe(null)
    expect(await ceilingOf(bySuperuser)).toBe(null)
    await promote(owner)
    expect(await permissions(other)).toEqual(['view_token_key', 'view_user'])
    const twice = randomUUID()
    const cyd = await there.make.user()
    await creator.post(path, { identifier: twice, user: cyd.pk })
    await view(await there.make.user({ permissions: ['view_token_key', 'view_user', 'view_group'] }), twice)
    expect(await ceilingOf(twice)).toEqual(['view_token_key', 'view_user'])
  })

  test('the key of a new token is not shown to its creator when its user has gained more', async () => {
    const late = randomUUID()
    await creator.post(path, { identifier: late, user: owner.pk })
    await grant(owner, ['view_group'])
    expect((await creator.get(`${path}${late}/view_key/`)).status).toBe(404)
  })
})

describe('a run that it submitted', () => {
  const runOf = ({ headers }: { headers: Readonly<Record<string, string | undefined>> }) =>
    there.db.run.findUniqueOrThrow({ where: { id: headers['content-location']?.split('/').at(-2) ?? '' } })

  test.each(['itself', 'while impersonating'])('%s is judged with the ceiling by the worker, too', async (as) => {
    const able = ['add_application', 'add_radiusprovider']
    await grant(owner, [...able, 'impersonate'])
    const strong = await there.make.user({ permissions: [...able, 'change_application'] })
    const headers = as === 'itself' ? {} : { 'impersonate-user': strong.username }
    const body = await named('radius', `ceiling-${randomUUID().slice(0, 8)}`)
    const release = there.hold()
    const answer = holder.put(applyPath, body, { headers })
    await there.queued(1)
    // Now it would have to change the application: its owner may, its creator could not.
    if (as === 'itself') await promote(owner)
    await there.db.application.create({ data: { pk: uuid7(), name: 'there', slug: String(body.app.slug) } })
    release()
    expect((await answered(200, answer)).json).toEqual({
      applied: false,
      logs: [expect.stringContaining('the permission change_application is missing')],
    })
  })

  test('shows generated values to it; those of other runs of its owner are not for it', async () => {
    await grant(owner, ['add_application', 'add_radiusprovider'])
    const submit = async (who: Asker) =>
      runOf(
        await who.submit('radius', `generated-${randomUUID().slice(0, 8)}`, { provider: { shared_secret: undefined } }),
      )
    const generated = async (who: Asker, { id }: { id: string }) =>
      ((await who.get(`/api/v3/blueprints/runs/${id}/`)).json as { generated: object }).generated
    const [limited, full] = [await submit(holder), await submit(owner)]
    const secret = { provider: { shared_secret: expect.any(String) } }
    expect(await generated(holder, limited)).toMatchObject(secret)
    expect(await generated(holder, full)).toEqual({})
    expect(await generated(owner, limited)).toMatchObject(secret)
    expect(await generated(owner, full)).toMatchObject(secret)
  })
})
