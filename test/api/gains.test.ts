import { describe, expect, test } from 'vitest'
import { answered } from '../support/asker.ts'
import {
  type Asker,
  type AskOptions,
  aGroup,
  applied,
  aRole,
  aUser,
  type Entry,
  installation,
  kinds,
  name,
  sql,
  rows as statement,
} from '../support/kit.ts'

/** What gives rights reaches only the users whom a request names. The whole rule is tested in test/rights/gains.test.ts. */

const there = await installation()

const groups = '/api/v3/core/groups/'
const documents = '/api/v3/blueprints/'
type Options = AskOptions & { as?: Asker }
const send = (method: 'put' | 'post' | 'patch', url: string, body: object, options: Options = {}) => {
  const { as = there.admin, ...others } = options
  return as[method](url, body, others)
}

const gain = (username: string, rights = 'superuser') =>
  `1 user whom the request does not name would gain rights: ${username} (${rights})`
const remedy = '. Gatewright-Allow: grants applies it all the same.'

/** A group with a member. */
async function group() {
  const amira = await there.make.user()
  return { amira, pk: amira.group }
}

describe('PATCH of a group', () => {
  test('that gives its members rights is a 409, until it is acknowledged or names them', async () => {
    const [{ amira, pk }, other] = [await group(), await group()]
    await answered(409, send('patch', `${groups}${pk}/`, { is_superuser: true }), {
      code: 'conflict',
      detail: `${gain(amira.username)}${remedy}`,
    })
    const headers = { 'Gatewright-Allow': 'grants' }
    expect((await send('patch', `${groups}${pk}/`, { is_superuser: true }, { headers })).status).toBe(200)
    const naming = { is_superuser: true, users: [other.amira.pk] }
    expect((await send('patch', `${groups}${other.pk}/`, naming)).status).toBe(200)
  })

  test('that gives rights to a group below it is one, too', async () => {
    const [{ amira, pk }, parent, role] = [
      await group(),
      await there.make.group(),
      await there.make.role(['view_user']),
    ]
    expect((await send('patch', `${groups}${pk}/`, { parent: parent.pk })).status).toBe(200)
    for (const [fields, rights] of [
      [{ is_superuser: true }, 'superuser'],
      [{ roles: [role.pk] }, 'view_user'],
    ] as const)
      await answered(409, send('patch', `${groups}${parent.pk}/`, fields), {
        detail: `${gain(amira.username, rights)}${remedy}`,
      })
  })

  test('reports an unknown header and word with the errors of the body', async () => {
    const headers = { 'Gatewright-Allow': 'grant', 'gatewright-alow': 'grants' }
    await answered(400, send('patch', `${groups}${(await group()).pk}/`, { is_superuser: 3 }, { headers }), {
      'Gatewright-Allow': [expect.stringContaining('Did you mean grants?')],
      'gatewright-alow': [expect.stringContaining('Unknown header')],
      is_superuser: [expect.any(String)],
    })
  })
})

test('POST of a group names its members', async () => {
  const { amira } = await group()
  const made = await send('post', groups, { name, is_superuser: true, users: [amira.username] })
  expect(made).toMatchObject({ status: 201, json: { users: [amira.pk] } })
})

describe('a document', () => {
  /** A role that a user made early, and wears, is filled by the document of somebody else. */
  async function worn() {
    const { amira, pk } = await group()
    const role = await there.make.role([])
    await statement(there.db, sql`INSERT INTO group_roles (group_pk, role_pk) VALUES (${pk}::uuid, ${role.pk}::uuid)`)
    const attrs = { permissions: ['impersonate'] }
    const entries = [{ model: 'service_rbac.role', identifiers: { name: role.name }, attrs }]
    return { amira, pk, role, document: { version: 1, metadata: { name }, entries } }
  }

  test('that fills a role which a user wears already is a 409', async () => {
    const { amira, role, document } = await worn()
    await answered(409, send('put', documents, document), { detail: `${gain(amira.username, 'impersonate')}${remedy}` })
    expect(await there.db.role.findUnique({ where: { pk: role.pk } })).toMatchObject({ permissions: [] })
    const headers = { 'Gatewright-Allow': 'grants' }
    const { status, json } = await send('put', documents, document, { headers })
    expect({ status, json }).toMatchObject({
      status: 200,
      json: {
        applied: true,
        logs: [
          expect.any(String),
          `1 user whom the request does not name gained rights: ${amira.username} (impersonate)`,
        ],
      },
    })
  })

  test('is planned with who gains what, and applied as it was reviewed', async () => {
    const { amira, document } = await worn()
    const plan = await send('put', `${documents}?dry_run=true`, document)
    const text = `${gain(amira.username, 'impersonate')}. Apply it with Gatewright-Allow: grants, or with If-Match and this plan`
    expect(plan).toMatchObject({ status: 200, json: { applied: false, logs: [expect.any(String), text] } })
    await applied(send('put', documents, document, { ifMatch: plan.etag }))
  })

  test('is not applied when others gain than were reviewed', async () => {
    const { pk, document } = await worn()
    const plan = await send('put', `${documents}?dry_run=true`, document)
    const bo = await there.make.user()
    await statement(there.db, sql`INSERT INTO memberships (group_pk, user_pk) VALUES (${pk}::uuid, ${bo.pk})`)
    await answered(412, send('put', documents, document, { ifMatch: plan.etag }), {
      detail: expect.stringContaining('who gains rights changed after the plan. Plan again'),
    })
    // Fewer than were reviewed are no surprise.
    await statement(there.db, sql`DELETE FROM memberships WHERE group_pk = ${pk}::uuid`)
    await applied(send('put', documents, document, { ifMatch: plan.etag }))
  })
})

describe('a document by which a user becomes a superuser says so', () => {
  const entry = (model: string, identifiers: object, attrs: object = {}) => ({
    model: `service_core.${model}`,
    identifiers,
    attrs,
  })
  const lines = async (entries: readonly object[], query = '', as = there.admin) => {
    const document = { version: 1, metadata: { name }, entries }
    const answer = await send('put', `${documents}${query}`, document, {
      as,
      headers: { 'Gatewright-Allow': 'grants' },
    })
    expect(answer).toMatchObject({ status: 200 })
    return answer.logs.filter((line) => /becomes? (a )?superusers?/.test(line))
  }
  const becomes = (username: string, by = name) => `user "${username}" becomes a superuser (by group "${by}")`

  test('by the flag of a new group with members, and by users who join', async () => {
    const [amira, bela] = [await there.make.user(), await there.make.user()]
    const admins = entry('group', { name }, { is_superuser: true, users: [amira.pk] })
    expect(await lines([admins], '?dry_run=true')).toEqual([becomes(amira.username)])
    expect(await lines([admins])).toEqual([becomes(amira.username)])
    expect(await lines([admins])).toEqual([])
    expect(await lines([entry('group', { name }, { users: [amira.pk, bela.pk] })])).toEqual([becomes(bela.username)])
    const joins = entry('user', { username: `${name}-new` }, { groups: [name] })
    expect(await lines([joins], '?dry_run=true')).toEqual([becomes(`${name}-new`)])
    expect(await lines([joins])).toEqual([becomes(`${name}-new`)])
    // A move from one such group to another gains nothing.
    const other = entry('group', { name: `${name} other` }, { is_superuser: true })
    expect(await lines([other, entry('user', { username: `${name}-new` }, { groups: [`${name} other`] })])).toEqual([])
  })

  test('by a parent, and by a flag above the group', async () => {
    const [{ amira, pk }, below] = [await group(), await group()]
    const superusers = entry('group', { name }, { is_superuser: true })
    expect(await lines([superusers, entry('group', { pk }, { parent: name })])).toEqual([becomes(amira.username)])
    const top = `${name} top`
    await lines([entry('group', { name: top }), entry('group', { pk: below.pk }, { parent: top })])
    expect(await lines([entry('group', { name: top }, { is_superuser: true })])).toEqual([
      becomes(below.amira.username, top),
    ])
  })

  test('by being active again, and not by being so already or no longer', async () => {
    const amira = await there.make.user()
    await lines([entry('group', { name }, { is_superuser: true, users: [amira.pk] })])
    const active = (is_active: boolean) => lines([entry('user', { username: amira.username }, { is_active })])
    expect(await active(true)).toEqual([])
    expect(await active(false)).toEqual([])
    expect(await active(true)).toEqual([becomes(amira.username)])
  })

  test('up to ten of them by name', async () => {
    const users = await Promise.all(Array.from({ length: 12 }, () => there.make.user()))
    const found = await lines([entry('group', { name }, { is_superuser: true, users: users.map(({ pk }) => pk) })])
    expect(found).toHaveLength(11)
    expect(found.at(-1)).toBe('2 more users become superusers')
    for (const line of found.slice(0, 10)) expect(line).toMatch(/^user ".+" becomes a superuser \(by group ".+"\)$/)
  })
})

describe('a document that gives the right to read secrets says so in a sentence of its own', () => {
  const lines = async (entries: readonly Entry[], query = '', as = there.admin) => {
    const answer = await as.apply(entries, { name, query, allow: 'grants' })
    expect(answer).toMatchObject({ status: 200 })
    return answer.logs.filter((line) => line.includes('the right to read secrets'))
  }
  const gets = (username: string, of: string) => `user "${username}" gets the right to read secrets of ${of}`
  const secrets = ['read_oauth2provider_secrets', 'read_certificatekeypair_secrets']
  const role = (permissions: readonly string[], owners: readonly string[] = []) => aRole(name, { permissions, owners })
  const inGroup = (attrs: object) => aGroup(name, { roles: [name], ...attrs })

  test('by a role, to users whom it names and to others, in a plan and once', async () => {
    const [amira, bela] = [await there.make.user(), await there.make.user()]
    const both = [amira, bela].sort((one, other) => (one.username < other.username ? -1 : 1))
    const document = [role(secrets, ['team-a', 'team-b']), inGroup({ users: [amira.pk, bela.pk] })]
    const rows = 'certificate key pairs, oauth2 providers of owner "team-a", oauth2 providers of owner "team-b"'
    const said = both.map(({ username }) => gets(username, rows))
    expect(await lines(document, 'dry_run=true')).toEqual(said)
    expect(await lines(document)).toEqual(said)
    expect(await lines(document)).toEqual([])
    // What it gives to all owners is new to them, and what they lose is no gain.
    expect(await lines([role(['read_oauth2provider_secrets'])])).toEqual(
      both.map(({ username }) => gets(username, 'oauth2 providers')),
    )
    expect(await lines([role(['read_oauth2provider_secrets'], ['team-c'])])).toEqual([])
    expect(await lines([role(['view_oauth2provider', 'record_sign_in'])])).toEqual([])
  })

  test('by the groups of a user, by a parent, and by being active again', async () => {
    const amira = await there.make.user()
    const said = [gets(amira.username, 'scim providers')]
    await lines([role(['read_scimprovider_secrets']), inGroup({})])
    const user = (attrs: object) => aUser(amira.username, { ...attrs })
    expect(await lines([user({ groups: [name] })])).toEqual(said)
    expect(await lines([user({ is_active: false })])).toEqual([])
    expect(await lines([user({ is_active: true })])).toEqual(said)
    const bela = await there.make.user()
    const below: Entry = { model: 'service_core.group', identifiers: { pk: bela.group }, attrs: { parent: name } }
    expect(await lines([below])).toEqual([gets(bela.username, 'scim providers')])
  })

  test('to a superuser, who has it, it gives nothing', async () => {
    const root = await there.make.user({ superuser: true })
    expect(await lines([role(secrets), inGroup({ users: [root.pk] })])).toEqual([])
  })

  test('beside the sentence about who becomes a superuser', async () => {
    const amira = await there.make.user()
    const answer = await there.admin.apply([role(secrets), inGroup({ users: [amira.pk], is_superuser: true })], {
      name,
    })
    expect(answer.logs.slice(-2)).toEqual([
      `user "${amira.username}" becomes a superuser (by group "${name}")`,
      gets(amira.username, 'certificate key pairs, oauth2 providers'),
    ])
  })

  test('with the first ten users, and the first five rights of each', async () => {
    const users = await Promise.all(Array.from({ length: 12 }, () => there.make.user()))
    const all = kinds.map((kind) => `read_${kind}provider_secrets`)
    const found = await lines([role(all), inGroup({ users: users.map(({ pk }) => pk) })])
    expect(found).toHaveLength(11)
    expect(found.at(-1)).toBe('2 more users get the right to read secrets')
    const first = [...kinds]
      .sort()
      .slice(0, 5)
      .map((kind) => `${kind} providers`)
    for (const line of found.slice(0, 10))
      expect(line).toMatch(new RegExp(`^user ".+" gets .+ of ${first.join(', ')} and 4 more$`))
  })

  test('without names to callers who may not view users', async () => {
    const permissions = [...secrets, 'add_role', 'add_group', 'assign_role', 'add_user_to_group']
    const [ada, amira] = [await there.make.user({ permissions }), await there.make.user()]
    const document = [role(secrets), inGroup({ users: [amira.pk] })]
    expect(await lines(document, '', ada)).toEqual(['1 user gets the right to read secrets'])
  })
})
