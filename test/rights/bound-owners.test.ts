import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { type Answer, type Asker, type AskOptions, answered, applyPath } from '../support/asker.ts'
import { anApplication, aRole, installation, name, named } from '../support/kit.ts'

/** Two pipelines, each with a role that is bound to one owner: neither changes or sees what the other one manages. */

const deploys = [
  ...['application', 'oauth2provider', 'scimprovider'].flatMap((each) =>
    ['view', 'add', 'change', 'delete'].map((action) => `${action}_${each}`),
  ),
  'view_flow',
]

const there = await installation()
const one = await there.make.user({ permissions: deploys, owners: ['team-one'] })
const two = await there.make.user({ permissions: deploys, owners: ['team-two'] })
beforeEach(async () => {
  expect((await put(one, { owner: 'team-one' })).status).toBe(200)
})

type Headers = Record<string, string>
const asOwner = (owner: string | null, allow?: string): Headers => ({
  ...(owner !== null && { 'gatewright-owner': owner }),
  ...(allow !== undefined && { 'gatewright-allow': allow }),
})
type Sent = AskOptions & { slug?: string; query?: string }
const put = (by: Asker, { slug = name, ...options }: Sent = {}) =>
  by.submit('oauth2', slug, { ...options, app: { group: 'Taken' } })
const blueprint = (by: Asker, document: object, headers: Headers = {}, query = '') =>
  by.put(`/api/v3/blueprints/${query}`, { version: 1, metadata: { name: 'bound' }, ...document }, { headers })

const absent = { ...anApplication('none'), state: 'absent' }

/** Refused before a run is recorded, and nothing is written. @returns the reason */
async function denied(ask: () => Promise<Answer>): Promise<string> {
  const answer = await there.refused(403, ask)
  expect(answer.json).toMatchObject({ code: 'permission_denied' })
  return answer.detail
}

const ownerOf = async (slug = name) => (await there.db.application.findUniqueOrThrow({ where: { slug } })).owner
const claimed = 'You may not write rows of owner "team-one": the permissions hold for rows of owner "team-two" only.'

describe('the label of another team', () => {
  test('is refused by every way, with the owners that the caller has', async () => {
    const app = anApplication(name)
    const body = await named('oauth2', name)
    const owned = asOwner('team-one')
    const ways: Record<string, () => Promise<Answer>> = {
      put: () => put(two, { owner: 'team-one' }),
      'put of a new one': () => put(two, { owner: 'team-one', slug: `${name}-new` }),
      takeover: () => put(two, { owner: 'team-one', allow: 'takeover' }),
      plan: () => put(two, { owner: 'team-one', query: 'dry_run=true' }),
      async: () => two.put(applyPath, body, { headers: { ...owned, prefer: 'respond-async' } }),
      set: () => two.put(applyPath, [body], { headers: owned }),
      blueprint: () => blueprint(two, { entries: [{ ...app, attrs: { group: 'x' } }] }, owned),
      'owner of a document': () => blueprint(two, { owner: 'team-one', entries: [{ ...app, attrs: { group: 'x' } }] }),
      'state absent': () => blueprint(two, { entries: [{ ...app, state: 'absent' }] }, owned),
      prune: () => blueprint(two, { owner: 'team-one', prune: true, entries: [absent] }),
      'prune in a plan': () =>
        blueprint(two, { owner: 'team-one', prune: true, entries: [absent] }, {}, '?dry_run=true'),
      'prune with its number': () =>
        blueprint(two, { owner: 'team-one', prune: true, entries: [absent] }, { 'gatewright-allow': 'deletes=2' }),
      delete: () => two.send({ method: 'DELETE', url: `/api/v3/core/applications/${name}/`, headers: owned }),
    }
    for (const [way, ask] of Object.entries(ways)) expect(await denied(ask), way).toBe(claimed)
  })

  test('is refused for the former run of another token of the same user', async () => {
    const sent = await put(one, { owner: 'team-one' })
    const path = sent.headers['content-location'] ?? ''
    const token = there.as(await there.make.token(one.pk, { ceiling: deploys.map((each) => `${each}@team-two`) }))
    expect((await token.get(path)).status).toBe(404)
    expect((await token.send({ method: 'POST', url: `${path}apply/` })).status).toBe(404)
    expect((await token.get('/api/v3/blueprints/runs/')).json).toMatchObject({ results: [] })
  })

  test('is not told apart by a caller without any permission', async () => {
    const none = await there.make.user({ permissions: ['view_flow'] })
    const of = (slug: string) => anApplication(slug, { name: 'x' })
    const texts = [name, `${name}-not`].map(
      (slug) => () => blueprint(none, { entries: [of(slug)] }, asOwner('team-one')),
    )
    const [there_ = '', missing = ''] = await Promise.all(texts.map(denied))
    expect(there_.replaceAll(name, 'x')).toBe(missing.replaceAll(`${name}-not`, 'x'))
  })
})

describe('a row of another team', () => {
  test('is not taken over, changed or deleted under the own label', async () => {
    const app = anApplication(name)
    const only = /the permission \w+ holds for rows of owner "team-two" only/
    for (const allow of [undefined, 'takeover'])
      expect(await denied(() => put(two, { owner: 'team-two', ...(allow === undefined ? {} : { allow }) }))).toMatch(
        only,
      )
    for (const headers of [asOwner('team-two', 'takeover'), asOwner(null, 'takeover')])
      expect(await denied(() => blueprint(two, { entries: [{ ...app, state: 'absent' }] }, headers))).toMatch(only)
    const remove = { method: 'DELETE', url: `/api/v3/core/applications/${name}/?with_provider=true` }
    expect(await denied(() => two.send({ ...remove, headers: asOwner('team-two', 'takeover') }))).toMatch(only)
    expect(await ownerOf()).toBe('team-one')
  })

  test('is not taken by a reference', async () => {
    const { pk } = await there.db.provider.findUniqueOrThrow({ where: { name } })
    const scim = await named('scim', `${name}-scim`)
    expect((await one.put(applyPath, scim, { headers: asOwner('team-one') })).status).toBe(200)
    const { pk: other } = await there.db.provider.findUniqueOrThrow({ where: { name: `${name}-scim` } })
    const app = (attrs: object) => anApplication(`${name}-two`, { name: 'Two', ...attrs })
    const refer = (attrs: object, entries: object[] = []) =>
      blueprint(two, { entries: [...entries, app(attrs)] }, asOwner('team-two', 'takeover'))
    const yaml = (provider: string) =>
      two.put(
        '/api/v3/blueprints/',
        `version: 1\nmetadata: { name: bound }\nentries:\n  - model: service_core.application\n    identifiers: { slug: ${name}-two }\n    attrs: { name: Two, provider: ${provider} }\n`,
        { headers: { 'content-type': 'application/yaml', ...asOwner('team-two', 'takeover') } },
      )
    for (const by of [name, `!Find [service_providers_oauth2.oauth2provider, { name: ${name} }]`]) {
      const [hidden, missing] = await Promise.all([by, by.replace(name, `${name}-not`)].map(yaml))
      expect([hidden?.status, hidden?.text]).toEqual([400, missing?.text.replaceAll(`${name}-not`, name)])
    }
    for (const attrs of [{ provider: pk }, { backchannel_providers: [other] }])
      expect(await denied(() => refer(attrs)), JSON.stringify(attrs)).toMatch(/for a row that it names/)
  })

  test('is not named when it is found by its key', async () => {
    const { pk } = await there.db.provider.findUniqueOrThrow({ where: { name } })
    const entry = {
      model: 'service_providers_oauth2.oauth2provider',
      identifiers: { pk },
      attrs: { include_claims_in_id_token: true },
    }
    const why = await denied(() => blueprint(two, { entries: [entry] }, asOwner('team-two')))
    expect(why).not.toContain(name)
  })

  test('is not named when it has what must be unique', async () => {
    const body = await named('oauth2', `${name}-two`, { provider: { client_id: `client-${name}` } })
    const answer = await answered(400, two.put(applyPath, body, { headers: asOwner('team-two') }))
    expect(answer.text).not.toContain(`"${name}\\"`)
    expect(answer.text).toContain('another provider oauth2')
  })

  test('is not made without a label, or under two', async () => {
    const slug = `${name}-new`
    expect(await denied(() => put(two, { slug }))).toBe(
      `You may not create provider oauth2 "${slug}": the permission add_oauth2provider holds for rows of owner "team-two" only: send one of them as Gatewright-Owner.`,
    )
    expect((await put(two, { owner: 'team-two', slug })).status).toBe(200)
    expect(await ownerOf(slug)).toBe('team-two')
    // Releasing it takes the permission for rows without an owner.
    expect(await denied(() => put(two, { slug, allow: 'takeover' }))).toMatch(/holds for rows of owner "team-two"/)
  })

  test('changes its owner by a caller with rights on both sides', async () => {
    const both = await there.make.user({ permissions: deploys, owners: ['team-one', 'team-two'] })
    expect((await put(both, { owner: 'team-two' })).status).toBe(409)
    expect((await put(both, { owner: 'team-two', allow: 'takeover' })).status).toBe(200)
    expect(await ownerOf()).toBe('team-two')
    expect((await put(both, { owner: 'team-one', allow: 'takeover' })).status).toBe(200)
    expect(await denied(() => put(both, { allow: 'takeover' }))).toMatch(/owners "team-one", "team-two" only/)
  })
})

describe('lists and single reads', () => {
  test('show a bound caller the rows of its owners, and count these', async () => {
    for (const path of ['core/applications', 'providers/all', 'providers/oauth2', 'blueprints/runs']) {
      const [mine, others, all] = await Promise.all(
        [one, two, there.admin].map(async (by) => Object((await by.get(`/api/v3/${path}/?page_size=100`)).json)),
      )
      expect(mine.results.length, path).toBeGreaterThan(0)
      expect(mine.pagination.count).toBe(mine.results.length)
      expect(JSON.stringify(mine)).toContain(name)
      expect(JSON.stringify(others)).not.toContain(`"${name}"`)
      expect(all.pagination.count).toBeGreaterThanOrEqual(mine.pagination.count)
    }
    for (const path of [`core/applications/${name}`, `providers/all/${name}`, `providers/oauth2/${name}`]) {
      expect((await one.get(`/api/v3/${path}/`)).status, path).toBe(200)
      const [hidden, missing] = [await two.get(`/api/v3/${path}/`), await two.get(`/api/v3/${path}-not/`)]
      expect([hidden.status, hidden.text]).toEqual([404, missing.text.replaceAll(`${name}-not`, name)])
    }
  })

  test('show nothing to a bound caller who may not view applications of the owner', async () => {
    const shown = async (permissions: string[]) => {
      const by = await there.make.user({ permissions, owners: ['team-one'] })
      const other = await there.make.role(['view_application'], ['team-two'])
      await there.db.groupRole.create({ data: { groupPk: by.group, rolePk: other.pk } })
      const list = await by.get(`/api/v3/core/applications/?slug=${name}`)
      const row = await by.get(`/api/v3/core/applications/${name}/`)
      return [list.status, Object(list.json).pagination?.count, row.status]
    }
    expect(await shown(['change_application', 'view_oauth2provider'])).toEqual([200, 0, 404])
    expect(await shown(['view_application'])).toEqual([200, 1, 200])
  })

  test('hide what a row of its owner has of another', async () => {
    await there.db.provider.update({ where: { name }, data: { owner: 'team-two' } })
    const app = await one.get(`/api/v3/core/applications/${name}/`)
    expect(app.json).toMatchObject({ provider_obj: null })
    const provider = await two.get(`/api/v3/providers/oauth2/${name}/`)
    expect(provider.json).toMatchObject({ assigned_application_slug: '', assigned_application_name: '' })
    expect((await there.admin.get(`/api/v3/core/applications/${name}/`)).json).toMatchObject({ provider_obj: { name } })
  })
})

test('a conflict of owners names the maker and the day to callers with view_user only', async () => {
  const permissions = deploys
  const plain = await there.make.user({ permissions })
  const viewer = await there.make.user({ permissions: [...permissions, 'view_user'] })
  const details = await Promise.all(
    [plain, viewer].map(async (by) => Object((await put(by, { owner: 'team-three' })).json).detail as string),
  )
  expect(details[0]).toContain('(made by another user)')
  expect(details[0]).not.toContain(one.username)
  expect(details[1]).toContain(`(made by "${one.username}" on `)
})

describe('the role', () => {
  test('needs all that it gives, and its looser owners are a gain', async () => {
    const role = (owners: string[]) =>
      aRole(`role ${name}`, { permissions: ['change_application', 'view_flow'], owners })
    const giver = await there.make.user({
      permissions: ['add_role', 'change_role', 'assign_role', 'view_flow', 'view_user'],
    })
    const holder = await there.make.user({
      permissions: ['add_role', 'change_role', 'assign_role', 'view_flow', 'view_user', 'change_application'],
      owners: ['team-one'],
    })
    expect(await denied(() => blueprint(giver, { entries: [role(['team-one'])] }))).toContain(
      'the role has the permission change_application for owner "team-one", and the caller has not',
    )
    expect((await blueprint(holder, { entries: [role(['team-one'])] })).status).toBe(200)
    for (const owners of [[], ['team-one', 'team-two']])
      expect(await denied(() => blueprint(holder, { entries: [role(owners)] }))).toContain('and the caller has not')

    const { pk: rolePk } = await there.db.role.findUniqueOrThrow({ where: { name: `role ${name}` } })
    const wearer = await there.make.user({ groups: [(await there.make.group({ roles: [rolePk] })).pk] })
    expect((await answered(409, blueprint(there.admin, { entries: [role([])] }))).text).toEqual(
      expect.stringContaining(`${wearer.username} (change_application)`),
    )
    const more = await blueprint(there.admin, { entries: [role(['team-one', 'team-two'])] })
    expect(more.text).toContain(`${wearer.username} (change_application for owner \\"team-two\\")`)
    expect((await blueprint(there.admin, { entries: [role([])] }, { 'gatewright-allow': 'grants' })).status).toBe(200)
    // Binding it again gives nothing.
    expect((await blueprint(there.admin, { entries: [role(['team-two'])] })).status).toBe(200)
    const me = await wearer.get('/api/v3/core/users/me/')
    expect(me.json).toMatchObject({ user: { system_permissions: ['change_application@team-two', 'view_flow'] } })
  })

  test('of a user who impersonates binds both', async () => {
    const real = await there.make.user({ permissions: ['impersonate'] })
    const headers = { 'impersonate-user': two.username }
    const answer = await real.submit('oauth2', name, { headers: { ...headers, ...asOwner('team-one') } })
    expect([answer.status, Object(answer.json).detail]).toEqual([403, claimed])
  })
})

describe('a token with owners', () => {
  const path = '/api/v3/core/tokens/'
  const post = (by: Asker, body: object, headers = {}) =>
    by.send({ method: 'POST', url: path, headers: { 'content-type': 'application/json', ...headers }, payload: body })
  const keyOf = async (by: Asker, identifier: string) =>
    there.as(Object((await by.get(`${path}${identifier}/view_key/`)).json).key)

  test('binds a superuser, and gives no superuser rights', async () => {
    const made = await post(there.admin, { identifier: `t-${name}`, owners: ['team-two'] })
    expect([made.status, Object.hasOwn(Object(made.json), 'owners')]).toEqual([201, false])
    const bound = await keyOf(there.admin, `t-${name}`)
    expect((await put(bound, { owner: 'team-one' })).status).toBe(403)
    expect((await put(bound, { owner: 'team-two', slug: `${name}-two` })).status).toBe(200)
    expect((await bound.get(`/api/v3/core/applications/${name}/`)).status).toBe(404)
    expect((await bound.get('/api/v3/core/users/me/')).json).toMatchObject({ user: { is_superuser: false } })
    // What it makes is bound, too.
    expect((await post(bound, { identifier: `u-${name}` })).status).toBe(201)
    const equal = await there.db.token.findUniqueOrThrow({ where: { identifier: `u-${name}` } })
    expect(equal.owners).toEqual(['team-two'])
    expect((await post(bound, { identifier: `v-${name}`, owners: ['team-one'] })).status).toBe(403)
    // It ends nowhere: the run, and the user whom it impersonates, are bound.
    const headers = { 'impersonate-user': one.username }
    const body = await named('oauth2', name)
    expect((await bound.put(applyPath, body, { headers: { ...headers, ...asOwner('team-one') } })).status).toBe(403)
  })

  test('holds in the worker, whatever the role gives meanwhile', async () => {
    const user = await there.make.user({ permissions: deploys })
    expect((await post(user, { identifier: `w-${name}`, owners: ['team-two'] })).status).toBe(201)
    const bound = await keyOf(user, `w-${name}`)
    const slug = `${name}-worker`
    const release = there.hold()
    const sent = put(bound, { owner: 'team-two', slug })
    await there.queued(1)
    await there.db.provider.create({
      data: { uuid: randomUUID(), name: slug, kind: 'oauth2', owner: 'team-one', settings: {}, secrets: {} },
    })
    release()
    const { json } = await sent
    expect(json).toMatchObject({
      applied: false,
      logs: [expect.stringMatching(/holds for rows of owner "team-two" only/)],
    })
    expect((await put(bound, { owner: 'team-one' })).status).toBe(403)
  })

  test('keeps its owners', async () => {
    await post(there.admin, { identifier: `k-${name}`, owners: ['team-two'] })
    for (const owners of [[], ['team-one']]) {
      const change = { method: 'PATCH' as const, url: `${path}k-${name}/`, payload: { owners } }
      const answer = await there.admin.send({ ...change, headers: { 'content-type': 'application/json' } })
      expect([answer.status, answer.errors[0]?.code]).toEqual([400, 'fixed'])
    }
  })
})
