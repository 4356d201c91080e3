import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { importFiles } from '../../src/cli/importing.ts'
import { loadRegistry } from '../../src/models/registry.ts'
import { installation } from '../support/installation.ts'
import { applied } from '../support/kit.ts'

/** Keys of another installation are labels of the document that has them: `gatewright import` prints names. */

const registry = await loadRegistry()
const imported = (text: string) => importFiles([{ name: 'theirs.yaml', text }], new Map(), registry)

const key = {
  ...{ above: randomUUID(), staff: randomUUID(), flow: randomUUID(), log: randomUUID(), role: randomUUID() },
  ...{ scope: randomUUID(), pair: randomUUID(), app: randomUUID(), binding: randomUUID(), gone: randomUUID() },
}

/** A row as an exporter writes it: by key, in the order of tables, with fields that say nothing. */
const row = (model: string, pk: string | number, attrs: object) =>
  `  - ${JSON.stringify({ conditions: [], id: null, permissions: [], state: 'present', model: `theirs_${model}`, identifiers: { pk }, attrs })}`
const document = (...rows: string[]) => `version: 1\nentries:\n${rows.join('\n')}\n`

const dump = document(
  row('core.group', key.staff, {
    name: 'staff',
    is_superuser: true,
    parent: key.above,
    users: [4, 6],
    roles: [key.role],
  }),
  row('core.group', key.above, { name: 'above' }),
  row('core.user', 4, { username: 'theirs-four', name: 'Four', groups: [key.staff] }),
  row('core.user', 5, { username: 'theirs-five', name: 'Five', is_active: false }),
  row('core.user', 6, { username: 'theirs-six', groups: [key.staff] }),
  row('providers_oauth2.oauth2provider', 1, {
    ...{ name: 'theirs', client_id: 'theirs-client', client_secret: 'their secret of the client' },
    ...{
      authorization_flow: key.flow,
      invalidation_flow: key.log,
      property_mappings: [key.scope],
      signing_key: key.pair,
    },
    redirect_uris: [
      { matching_mode: 'strict', url: 'https://theirs.example.com/cb', redirect_uri_type: 'authorization' },
    ],
    jwks_sources: [key.gone],
  }),
  row('core.application', key.app, { name: 'Theirs', slug: 'theirs', provider: 1, backchannel_providers: [] }),
  row('core.token', key.gone, { identifier: 'theirs-token', intent: 'api', user: 6, expiring: false }),
  row('flows.flow', key.flow, { name: 'Ask', slug: 'theirs-ask', title: 'Ask', designation: 'authorization' }),
  row('flows.flow', key.log, { name: 'Out', slug: 'theirs-out', title: 'Out', designation: 'invalidation' }),
  row('providers_oauth2.scopemapping', key.scope, { name: 'Theirs', scope_name: 'theirs', expression: 'return {}' }),
  row('crypto.certificatekeypair', key.pair, { name: 'theirs' }),
  row('rbac.role', key.role, { name: 'theirs' }),
  row('policies.policybinding', key.binding, { target: key.app, group: key.staff, order: 0 }),
)

const on = await installation()

const apply = (text: string | null) =>
  on.admin.put('/api/v3/blueprints/', text, { headers: { 'content-type': 'application/yaml' } })

/** All rows of what a document may name, by what names them. */
async function rows() {
  const by = { orderBy: { pk: 'asc' } } as const
  return {
    users: await on.db.user.findMany({ ...by, include: { memberships: { orderBy: { groupPk: 'asc' } } } }),
    groups: await on.db.group.findMany({ ...by, include: { memberships: true, roles: true } }),
    providers: await on.db.provider.findMany(by),
    applications: await on.db.application.findMany(by),
    flows: await on.db.flow.findMany(by),
    mappings: await on.db.propertyMapping.findMany(by),
    pairs: await on.db.certificateKeyPair.findMany(by),
    roles: await on.db.role.findMany(by),
    tokens: await on.db.token.findMany({ ...by, omit: { sealedKey: true } }),
  }
}

describe('an export of another installation', () => {
  test('is printed by names, with !KeyOf after what it names; no key is in it', async () => {
    const { judgements, warnings, document } = await imported(dump)
    expect(judgements.flatMap(({ reasons }) => reasons)).toEqual(['unknown model theirs_policies.policybinding'])
    expect(judgements.flatMap(({ leftOut }) => leftOut)).toEqual([
      'jwks_sources.0: is the key of a row that is not here',
    ])
    expect(judgements.flatMap(({ ignored }) => ignored)).toEqual([
      'redirect_uris.0.redirect_uri_type: all of them are for logins',
    ])
    expect(warnings).toEqual([
      'Access to the application "theirs" is not restricted any more: it was bound to the group "staff", and there are no bindings here.',
    ])
    const all = JSON.stringify([judgements, warnings, document])
    for (const pk of Object.values(key)) expect(all).not.toContain(pk)
    expect(document).not.toMatch(/\bpk\b|\buser: 5|^ +- [46]$|provider: 1/m)
    const ids = [...(document ?? '').matchAll(/^ {4}id: (.+)$|!KeyOf (.+)$/gm)]
    const named = new Set<string>()
    for (const [, id, of] of ids) {
      if (of !== undefined) expect(named).toContain(of)
      named.add(id ?? '')
    }
    expect(named.size).toBeGreaterThan(9)
  })

  test('changes no row that it does not name, whatever keys these have', async () => {
    // Rows of this installation with the very keys of the document.
    for (const number of [2, 3, 4, 5, 6])
      await on.db.user.create({ data: { uuid: randomUUID(), username: `ours-${number}` } })
    expect(await on.db.user.count({ where: { pk: { in: [4, 5, 6] } } })).toBe(3)
    await on.db.group.createMany({
      data: [
        { pk: key.staff, name: 'ours' },
        { pk: key.above, name: 'ours, above' },
      ],
    })
    await on.db.role.create({ data: { pk: key.role, name: 'ours', permissions: [] } })
    await on.db.flow.create({ data: { pk: key.flow, slug: 'ours', name: 'Ours', designation: 'authorization' } })
    const ask = await on.db.flow.findUniqueOrThrow({ where: { slug: 'ours' } })
    const { pk } = await on.db.provider.create({
      data: { uuid: randomUUID(), name: 'ours', kind: 'radius', authorizationFlowPk: ask.pk },
    })
    expect(pk).toBe(1)
    await on.db.application.create({ data: { pk: key.app, slug: 'ours', name: 'Ours', providerPk: pk } })
    const before = await rows()
    const { document } = await imported(dump)
    await applied(apply(document))
    const after = await rows()
    for (const [table, some] of Object.entries(before))
      expect(Object(after)[table], table).toEqual(expect.arrayContaining(some as unknown[]))
    const made = await on.db.group.findUniqueOrThrow({
      where: { name: 'staff' },
      include: { parent: true, memberships: { include: { user: true } }, roles: { include: { role: true } } },
    })
    expect(made.parent?.name).toBe('above')
    expect(made.memberships.map(({ user }) => user.username).sort()).toEqual(['theirs-four', 'theirs-six'])
    expect(made.roles.map(({ role }) => role.name)).toEqual(['theirs'])
    const { provider } = await on.db.application.findUniqueOrThrow({
      where: { slug: 'theirs' },
      include: { provider: true },
    })
    expect(provider).toMatchObject({ name: 'theirs', oauth2ClientId: 'theirs-client' })
    const token = await on.db.token.findUniqueOrThrow({
      where: { identifier: 'theirs-token' },
      include: { user: true },
    })
    expect(token.user.username).toBe('theirs-six')
    const again = await apply((await imported(dump)).document)
    expect(again.logs.filter((line) => !line.endsWith(' unchanged'))).toEqual([])
  })
})

describe('a key that no entry has', () => {
  const only = async (...entries: string[]) => (await imported(document(...entries))).judgements
  const unknown = 'refers by a key to a row that no entry of this document is'

  test('is left out of a list and of a field that may be left out', async () => {
    const { judgements, document: text } = await imported(
      document(
        row('core.group', key.staff, { name: 'left', parent: key.gone, users: [4, 7] }),
        row('core.user', 7, { username: 'seven' }),
        row('core.group', key.above, { name: 'empty', users: [4] }),
      ),
    )
    expect(judgements.map(({ leftOut }) => leftOut)).toEqual([
      [`parent: ${unknown}`, `users.0: ${unknown}`],
      [],
      [`users.0: ${unknown}`],
    ])
    expect(text).not.toContain(key.gone)
    // An empty list would take the members away.
    expect(text?.match(/users:/g)).toHaveLength(1)
  })

  test.each([
    [
      'a required field',
      row('providers_radius.radiusprovider', 3, { name: 'x', authorization_flow: key.gone }),
      'authorization_flow is required, and cannot be left out',
    ],
    [
      'the user of a token',
      row('core.token', key.gone, { identifier: 'x', user: 1 }),
      'user is required, and cannot be left out',
    ],
    [
      'an entry without a name',
      row('core.user', 5, { is_active: false }),
      'has no username: a key of another installation names nothing here',
    ],
    [
      'the deletion of a row',
      `  - { model: theirs_core.user, state: absent, identifiers: { pk: 5 } }`,
      'has no username: a key of another installation names nothing here',
    ],
    [
      'what identifies the entry',
      `  - { model: theirs_core.userconsent, identifiers: { user: 5, application: ${key.gone} } }`,
      unknown,
    ],
    [
      'a condition',
      `  - { model: theirs_core.group, identifiers: { name: x }, conditions: [!Find [theirs_core.user, [pk, 5]]] }`,
      unknown,
    ],
  ])('%s: the entry cannot be applied', async (_, entry, reason) => {
    const [judgement] = await only(entry)
    expect(judgement).toMatchObject({ outcome: 'cannot', reasons: expect.arrayContaining([reason]) })
  })

  test('is treated in edits of lists as in lists', async () => {
    const { judgements, document: text } = await imported(
      document(
        row('core.group', key.staff, { name: 'edited', is_superuser: true, users: { add: [1, 4], remove: [6] } }),
        row('core.user', 4, { username: 'edited-four', groups: { add: [key.staff] } }),
        row('core.user', 9, { username: 'edited-nine', groups: { add: [key.staff, key.gone], remove: [3] } }),
        row('core.group', key.above, { name: 'kept', users: { add: [7], remove: [9] }, roles: { add: [] } }),
      ),
    )
    expect(judgements.map(({ reasons, leftOut }) => [...reasons, ...leftOut])).toEqual([
      [`users.add.0: ${unknown}`, `users.remove.0: ${unknown}`],
      [],
      [`groups.add.1: ${unknown}`, `groups.remove.0: ${unknown}`],
      [`users.add.0: ${unknown}`],
    ])
    expect(text).not.toMatch(new RegExp(`${key.staff}|${key.gone}|^ +- \\d$`, 'm'))
    expect(text?.match(/(users|groups|roles):\n.*|add: \[\]/g)?.map((each) => each.replace(/\s+/g, ' '))).toEqual([
      'users: add:',
      'groups: add:',
      'users: remove:',
      'roles: add: []',
    ])
    await applied(apply(text))
    const group = { where: { name: 'edited' }, include: { memberships: { include: { user: true } } } } as const
    const { memberships } = await on.db.group.findUniqueOrThrow(group)
    expect(memberships.map(({ user }) => user.username).sort()).toEqual(['edited-four', 'edited-nine'])
  })

  test('is not printed wherever it stands: in tags, contexts and defaults', async () => {
    const { document: text } = await imported(`version: 1
context: { flow: ${key.gone} }
entries:
  - { model: theirs_core.group, id: own, identifiers: { pk: ${key.staff} }, attrs: { name: own } }
  - model: theirs_core.group
    identifiers: { name: below }
    attrs: { parent: !Find [theirs_core.group, [pk, ${key.staff}]], users: [!Env [USER_KEY, 5]] }
  - model: theirs_providers_saml.samlprovider
    identifiers: { name: x }
    attrs:
      acs_url: https://x.example.com/
      authentication_flow: !Env [FLOW, ${key.gone}]
      invalidation_flow: !Context flow
      authorization_flow: !Find [theirs_flows.flow, [slug, default-provider-authorization-implicit-consent]]
      signing_kp: !If [!Env SIGNED, ${key.pair}, null]
  - model: theirs_providers_proxy.proxyprovider
    identifiers: { name: nested }
    attrs:
      external_host: https://x.example.com
      internal_host: http://10.0.0.1
      authorization_flow: !Find [theirs_flows.flow, [slug, default-provider-authorization-implicit-consent]]
      property_mappings: !If [!Env MAPPED, { add: [${key.gone}] }, []]
      certificate: { pk: ${key.pair} }
      jwks_sources: !If [!Env SOURCES, [${key.gone}], []]
  - { model: theirs_core.user, identifiers: { username: w }, attrs: { groups: { add: !If [!Env G, [${key.gone}], []] } } }
`)
    expect(text).toContain('parent: !KeyOf own')
    expect(text).not.toMatch(
      new RegExp([key.gone, key.staff, key.pair, 'users', 'authentication_flow', 'jwks', 'certificate:'].join('|')),
    )
  })
})
