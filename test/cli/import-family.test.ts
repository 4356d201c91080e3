import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { byManaged, byTitle, ownFlow } from '../../src/cli/import/names.ts'
import { importFiles } from '../../src/cli/importing.ts'
import { loadRegistry } from '../../src/models/registry.ts'
import { installation } from '../support/installation.ts'

/** What a service of this API family is shipped with is what this one is shipped with. */

const registry = await loadRegistry()
const imported = (text: string) => importFiles([{ name: 'theirs.yaml', text }], new Map(), registry)

const on = await installation()

async function apply(text: string | null): Promise<void> {
  const headers = { 'content-type': 'application/yaml' }
  const answer = await on.admin.put('/api/v3/blueprints/', text, { headers })
  expect(answer.json, answer.text).toMatchObject({ applied: true })
}

const typical = `version: 1
metadata: { name: typical }
entries:
  - model: theirs_core.group
    id: users
    identifiers: { name: family-users }
  - model: theirs_providers_oauth2.oauth2provider
    id: provider
    identifiers: { name: family }
    attrs:
      name: family
      client_type: confidential
      client_id: family-client
      client_secret: a secret of the client of the family
      authentication_flow: !Find [theirs_flows.flow, [slug, default-authentication-flow]]
      authorization_flow: !Find [theirs_flows.flow, [slug, default-provider-authorization-implicit-consent]]
      invalidation_flow: !Find [theirs_flows.flow, [slug, default-provider-invalidation-flow]]
      signing_key: !Find [theirs_crypto.certificatekeypair, [name, theirs Self-signed Certificate]]
      redirect_uris:
        - { matching_mode: strict, url: "https://family.example.com/cb", redirect_uri_type: authorization }
      property_mappings:
        - !Find [theirs_providers_oauth2.scopemapping, [scope_name, openid]]
        - !Find [theirs_providers_oauth2.scopemapping, [managed, theirs.example/providers/oauth2/scope-email]]
        - !Find [theirs_core.propertymapping, [name, "theirs default OAuth Mapping: OpenID 'profile'"]]
      access_token_validity: minutes=5
      sub_mode: hashed_user_id
  - model: theirs_core.application
    identifiers: { name: Family }
    attrs: { slug: family, provider: !KeyOf provider, policy_engine_mode: any }
`

test('the typical application applies whole, with what both are shipped with', async () => {
  const { judgements, warnings, document } = await imported(typical)
  expect(judgements.map(({ outcome, leftOut, reasons }) => [outcome, leftOut, reasons])).toEqual(
    judgements.map(() => ['applies', [], []]),
  )
  expect(warnings).toEqual([])
  await apply(document)
  const flow = { select: { slug: true } } as const
  const provider = await on.db.provider.findUniqueOrThrow({
    where: { name: 'family' },
    select: { pk: true, settings: true, authenticationFlow: flow, authorizationFlow: flow, invalidationFlow: flow },
  })
  const flows = [provider.authenticationFlow, provider.authorizationFlow, provider.invalidationFlow]
  expect(flows.map((each) => each?.slug)).toEqual([
    'default-authentication',
    'default-authorization-implicit',
    'default-provider-invalidation',
  ])
  const { property_mappings: keys, signing_key: pair } = Object(provider.settings)
  const mappings = await on.db.propertyMapping.findMany({ where: { pk: { in: keys } }, orderBy: { managed: 'asc' } })
  expect(mappings.map(({ managed }) => managed)).toEqual(
    ['email', 'openid', 'profile'].map((scope) => `gatewright/oauth2/scope-${scope}`),
  )
  expect((await on.db.certificateKeyPair.findUniqueOrThrow({ where: { pk: pair } })).name).toBe(
    'Gatewright self-signed',
  )
  expect(await on.db.application.findUniqueOrThrow({ where: { slug: 'family' } })).toMatchObject({
    ...{ name: 'Family', providerPk: provider.pk },
  })
})

test('each shipped mapping that is named stands here, and so does each flow', async () => {
  const managed = (await on.db.propertyMapping.findMany({ where: { managed: { startsWith: 'gatewright/' } } })).map(
    (each) => each.managed,
  )
  const named = [...registry.kinds.values()].flatMap(({ provider: { kind, elsewhere } }) =>
    (elsewhere?.shipped ?? []).map((name) => `gatewright/${kind}/${name}`),
  )
  expect(managed.toSorted()).toEqual(named.toSorted())
  for (const slug of ['default-enrollment-flow', 'default-recovery-flow', 'default-authenticator-totp-setup'])
    expect(await on.db.flow.count({ where: { slug: ownFlow(slug) ?? '' } })).toBe(1)
  expect(ownFlow('our-own-flow')).toBeUndefined()
})

test.each([
  ['theirs.example/providers/oauth2/scope-groups', 'gatewright/oauth2/scope-groups'],
  ['theirs.example/providers/saml/uid', 'gatewright/saml/uid'],
  ['theirs.example/providers/google_workspace/group', 'gatewright/workspace_sync_a/group'],
  ['theirs.example/providers/microsoft_entra/user', 'gatewright/directory_sync_b/user'],
  ['theirs.example/providers/rac/rdp-default', null],
  ['a/b/c', undefined],
])('managed %s is %s', (theirs, ours) => {
  expect(byManaged(theirs, registry)).toBe(ours)
})

test.each([
  ["theirs default OAuth Mapping: OpenID 'offline_access'", 'gatewright/oauth2/scope-offline_access'],
  ['theirs default SAML Mapping: User ID', 'gatewright/saml/uid'],
  ['theirs default SCIM Mapping: Group', 'gatewright/scim/group'],
  ['theirs default Microsoft Entra Mapping: User', 'gatewright/directory_sync_b/user'],
  ['theirs default OAuth Mapping: Application Entitlements', null],
  ['Our own mapping', undefined],
])('the title %s is %s', (theirs, ours) => {
  expect(byTitle(theirs, registry)).toBe(ours)
})

describe('property mappings', () => {
  const kinds = [
    ['providers_oauth2.scopemapping', 'oauth2'],
    ['providers_saml.SAMLPropertyMapping', 'saml'],
    ['providers_scim.scimmapping', 'scim'],
    ['providers_rac.racpropertymapping', 'rac'],
    ['providers_google_workspace.googleworkspaceprovidermapping', 'workspace_sync_a'],
    ['providers_microsoft_entra.microsoftentraprovidermapping', 'directory_sync_b'],
  ]

  test.each(kinds)('%s has the kind %s', async (model, kind) => {
    const name = `custom ${kind}`
    const { judgements, document } = await imported(
      `version: 1\nentries: [{ model: theirs_${model}, identifiers: { name: ${name} }, attrs: { expression: return 1 } }]`,
    )
    expect(judgements).toMatchObject([{ outcome: 'applies' }])
    await apply(document)
    expect(await on.db.propertyMapping.findFirstOrThrow({ where: { name } })).toMatchObject({
      ...{ kind, expression: 'return 1', managed: null },
    })
  })

  test('one that is shipped here stays as it is', async () => {
    const where = { managed: 'gatewright/oauth2/scope-email' }
    const before = await on.db.propertyMapping.findUniqueOrThrow({ where })
    const { judgements, document } = await imported(`version: 1
entries:
  - model: theirs_providers_oauth2.scopemapping
    identifiers: { managed: theirs.example/providers/oauth2/scope-email }
    attrs: { name: theirs default, scope_name: email, description: x, expression: another language }
`)
    expect(judgements).toMatchObject([
      {
        outcome: 'partly',
        leftOut: [
          'its fields where it stands: it is shipped here as gatewright/oauth2/scope-email, and stays as it is',
        ],
      },
    ])
    await apply(document)
    expect(await on.db.propertyMapping.findUniqueOrThrow({ where })).toEqual(before)
  })

  test("the document's own are found by their scope, and by what manages them", async () => {
    const { judgements, document } = await imported(`version: 1
entries:
  - model: theirs_providers_oauth2.scopemapping
    identifiers: { scope_name: roles }
    attrs: { name: Roles, scope_name: roles, expression: return 1 }
  - model: theirs_providers_oauth2.scopemapping
    identifiers: { managed: theirs.example/providers/oauth2/scope-own }
    attrs: { name: Own }
  - model: theirs_providers_oauth2.oauth2provider
    identifiers: { name: scoped }
    attrs:
      authorization_flow: !Find [theirs_flows.flow, [slug, default-provider-authorization-explicit-consent]]
      property_mappings:
        - !Find [theirs_providers_oauth2.scopemapping, [scope_name, roles]]
        - !Find [theirs_providers_oauth2.scopemapping, [managed, theirs.example/providers/oauth2/scope-own]]
        - !Find [theirs_providers_oauth2.scopemapping, [scope_name, openid]]
        - !Find [theirs_providers_oauth2.scopemapping, [managed, theirs.example/providers/oauth2/scope-openid]]
`)
    expect(judgements.at(-1)).toMatchObject({ outcome: 'applies' })
    await apply(document)
    const { settings } = await on.db.provider.findUniqueOrThrow({ where: { name: 'scoped' } })
    const found = await on.db.propertyMapping.findMany({ where: { pk: { in: Object(settings).property_mappings } } })
    expect(found.map(({ name }) => name).toSorted()).toEqual(['OpenID scope openid', 'Own', 'Roles'])
  })
})

test('a provider gets mappings of the kinds that fit it only', async () => {
  const { judgements, document } = await imported(`version: 1
entries:
  - model: theirs_providers_proxy.proxyprovider
    identifiers: { name: fronted }
    attrs:
      authorization_flow: !Find [theirs_flows.flow, [slug, default-provider-authorization-implicit-consent]]
      external_host: https://fronted.example.com
      internal_host: http://127.0.0.1:8080
      property_mappings:
        - !Find [theirs_core.propertymapping, [managed, theirs.example/providers/saml/email]]
        - !Find [theirs_providers_oauth2.scopemapping, [scope_name, openid]]
`)
  expect(judgements).toMatchObject([
    { outcome: 'partly', leftOut: ['property_mappings.0: refers to a property mapping of the kind saml'] },
  ])
  await apply(document)
  const { settings } = await on.db.provider.findUniqueOrThrow({ where: { name: 'fronted' } })
  const mappings = await on.db.propertyMapping.findMany({ where: { pk: { in: Object(settings).property_mappings } } })
  expect(mappings.map(({ scopeName }) => scopeName)).toEqual(['openid'])
})

test('a mapping whose name those of two kinds have is the one of a kind that fits', async () => {
  const flow = '!Find [theirs_flows.flow, [slug, default-provider-authorization-implicit-consent]]'
  const { judgements, document } = await imported(`version: 1
entries:
  - { model: theirs_providers_saml.samlpropertymapping, identifiers: { name: Shared }, attrs: { expression: return 1 } }
  - { model: theirs_providers_oauth2.scopemapping, identifiers: { name: Shared }, attrs: { expression: return 2 } }
  - model: theirs_providers_proxy.proxyprovider
    identifiers: { name: shared-proxy }
    attrs:
      authorization_flow: ${flow}
      external_host: https://shared.example.com
      internal_host: http://127.0.0.1:8080
      property_mappings: [!Find [theirs_core.propertymapping, [name, Shared]]]
  - model: theirs_providers_saml.samlprovider
    identifiers: { name: shared-saml }
    attrs:
      authorization_flow: ${flow}
      acs_url: https://shared.example.com/acs
      name_id_mapping: !Find [theirs_core.propertymapping, [name, Shared]]
      property_mappings: [!Find [theirs_core.propertymapping, [name, Shared]]]
`)
  expect(judgements.map(({ outcome }) => outcome)).toEqual(judgements.map(() => 'applies'))
  await apply(document)
  const kindsOf = async (name: string) => {
    const { settings } = await on.db.provider.findUniqueOrThrow({ where: { name } })
    const { property_mappings: keys } = Object(settings)
    return (await on.db.propertyMapping.findMany({ where: { pk: { in: keys } } })).map(({ kind }) => kind)
  }
  expect(await kindsOf('shared-proxy')).toEqual(['oauth2'])
  expect(await kindsOf('shared-saml')).toEqual(['saml'])
})

describe('references that are lost', () => {
  const provider = (attrs: string) => `version: 1
entries:
  - model: theirs_sources_ldap.ldapsource
    id: source
    identifiers: { slug: x }
  - model: theirs_providers_oauth2.oauth2provider
    identifiers: { name: lost }
    attrs:
      authorization_flow: !Find [theirs_flows.flow, [slug, default-provider-authorization-explicit-consent]]
      ${attrs}
`
  test.each([
    ['shipped there only', 'property_mappings: [!Find [theirs_core.propertymapping, [managed, a/providers/rac/x]]]'],
    ['of an unknown model', 'property_mappings: [!Find [theirs_brands.brand, [domain, x]]]'],
    ['to an entry that cannot be applied', 'property_mappings: [!KeyOf source]'],
  ])('%s: the field is left out, and not emptied', async (_, attrs) => {
    const { judgements, document } = await imported(provider(attrs))
    expect(judgements.at(-1)).toMatchObject({
      outcome: 'partly',
      leftOut: [expect.stringMatching(/^property_mappings/)],
    })
    expect(document).not.toContain('property_mappings')
  })

  test('the others of a list stay, and an empty list stays empty', async () => {
    const some = '[!KeyOf source, !Find [theirs_core.propertymapping, [managed, a/providers/oauth2/scope-email]]]'
    const { document } = await imported(provider(`property_mappings: ${some}`))
    expect(document).toMatch(/property_mappings:\n +- !Find\n +- service_mappings.propertymapping\n.*scope-email/)
    expect((await imported(provider('property_mappings: []'))).document).toContain('property_mappings: []')
  })
})

describe('!Find of an entry of the same document', () => {
  test('is !KeyOf of it, whichever of its fields it names', async () => {
    const { judgements, document } = await imported(`entries:
  - { model: theirs_core.application, identifiers: { slug: found }, attrs: { name: Found, provider: !Find [theirs_core.provider, [name, found]] } }
  - model: theirs_providers_oauth2.oauth2provider
    identifiers: { name: found }
    attrs: { authorization_flow: !Find [theirs_flows.flow, [slug, own-flow]], client_id: found-client }
  - { model: theirs_flows.flow, identifiers: { slug: own-flow }, attrs: { name: Own, title: Own, designation: authorization } }
  - { model: theirs_core.group, identifiers: { name: found-members }, attrs: { users: [!Find [theirs_core.user, [username, found-user]], !Find [theirs_core.user, [name, Found]]] } }
  - { model: theirs_core.user, identifiers: { username: found-user }, attrs: { name: Found, audience: x, groups: [!Find [theirs_core.group, [name, found-members]]] } }
  - { model: theirs_core.group, identifiers: { name: asked }, conditions: [!Condition [NAND, !Find [theirs_core.group, [name, found-members]], true]] }
`)
    expect(judgements.flatMap(({ reasons, leftOut }) => [...reasons, ...leftOut])).toEqual([
      expect.stringMatching(/^audience: Unknown field/),
    ])
    // Whether there is such a row is asked of the database.
    expect(document?.match(/!Find/g)).toHaveLength(1)
    await apply(document)
    const { provider } = await on.db.application.findUniqueOrThrow({
      where: { slug: 'found' },
      include: { provider: true },
    })
    expect(provider?.oauth2ClientId).toBe('found-client')
    expect(await on.db.membership.count({ where: { user: { username: 'found-user' } } })).toBe(1)
  })

  test.each([
    [
      'a provider',
      'providers_oauth2.oauth2provider',
      'name: p',
      'core.application',
      'slug: a',
      'attrs: { name: A, provider: FIND }',
    ],
    [
      'one of an unknown kind',
      'providers_ssf.ssfprovider',
      'name: p',
      'core.application',
      'slug: a',
      'attrs: { name: A, provider: !Find [theirs_core.provider, [name, p]] }',
    ],
    ['a user', 'core.user', 'username: u', 'core.token', 'identifier: t', 'attrs: { user: FIND }'],
    ['a parent', 'core.group', 'name: g', 'core.group', 'name: below', 'attrs: { parent: FIND }'],
    [
      'another identifier',
      'core.application',
      'slug: s',
      'core.userconsent',
      'user: !Find [theirs_core.user, [username, admin]], application: FIND',
      'attrs: {}',
    ],
  ])('that cannot be applied takes along what needs it: %s', async (_, model, found, referring, identifiers, attrs) => {
    const find = `!Find [theirs_${model}, [${found.replace(': ', ', ')}]]`
    const { judgements, document } = await imported(`entries:
  - { model: theirs_${model}, identifiers: { ${found} }, attrs: { name: !Context missing, attributes: !Context missing } }
  - ${`{ model: theirs_${referring}, identifiers: { ${identifiers} }, ${attrs} }`.replaceAll('FIND', find)}
`)
    expect(judgements).toMatchObject([
      { outcome: 'cannot' },
      { outcome: 'cannot', reasons: [expect.stringMatching(/^refers to the entry .*, which cannot be applied$/)] },
    ])
    expect(document).toBeNull()
  })

  test('that cannot be applied is left out of a list, and one of another document is none', async () => {
    const { judgements, document } = await imported(`entries:
  - { model: theirs_core.group, identifiers: { name: bad }, attrs: { attributes: !Context missing } }
  - { model: theirs_core.group, state: absent, identifiers: { name: gone } }
  - { model: theirs_core.user, identifiers: { username: listed }, attrs: { groups: [!Find [theirs_core.group, [name, bad]], !Find [theirs_core.group, [name, elsewhere]]] } }
  - { model: theirs_core.user, identifiers: { username: edited }, attrs: { groups: { add: [!Find [theirs_core.group, [name, bad]]] } } }
`)
    expect(judgements[2]).toMatchObject({
      outcome: 'partly',
      leftOut: [expect.stringMatching(/^groups\.0: the entry .* cannot be applied$/)],
    })
    expect(judgements[3]).toMatchObject({
      outcome: 'partly',
      leftOut: [expect.stringMatching(/^groups\.add\.0: the entry /)],
    })
    expect(document).toMatch(/!Find\n +- service_core\.group\n +- name: elsewhere/)
  })

  test('is none of another kind of property mapping', async () => {
    const { judgements } = await imported(`entries:
  - { model: theirs_providers_saml.samlpropertymapping, identifiers: { name: Other kind }, attrs: { expression: return 1 } }
  - model: theirs_providers_oauth2.oauth2provider
    identifiers: { name: other-kind }
    attrs:
      authorization_flow: !Find [theirs_flows.flow, [slug, default-provider-authorization-implicit-consent]]
      property_mappings: [!Find [theirs_core.propertymapping, [name, Other kind]]]
`)
    expect(judgements[1]?.leftOut).toEqual(['property_mappings.0: refers to a property mapping of the kind saml'])
  })
})

describe('groups that are shipped there', () => {
  const user = (name: string, ...groups: string[]) =>
    `  - { model: theirs_core.user, identifiers: { username: ${name} }, attrs: { groups: [${groups
      .map((group) => `!Find [theirs_core.group, [name, ${group}]]`)
      .join(', ')}] } }\n`

  test('are those of superusers, or left out; others may be here', async () => {
    const { judgements, document } = await imported(
      `entries:\n${user('root', 'theirs Admins', 'theirs Read-only')}${user('plain', 'team Admins', 'Admins')}`,
    )
    expect(judgements.map(({ leftOut }) => leftOut)).toEqual([
      ['groups.1: refers to "theirs Read-only", which is shipped there and not here'],
      [],
    ])
    expect(document?.match(/name: .*Admins/g)).toEqual(['name: gatewright Admins', 'name: team Admins', 'name: Admins'])
    await on.db.group.createMany({ data: ['team Admins', 'Admins'].map((name) => ({ pk: randomUUID(), name })) })
    await apply(document)
    const groupsOf = async (username: string) =>
      (await on.db.group.findMany({ where: { memberships: { some: { user: { username } } } } })).map((group) => [
        group.name,
        group.isSuperuser,
      ])
    expect(await groupsOf('root')).toEqual([['gatewright Admins', true]])
    expect((await groupsOf('plain')).sort()).toEqual([
      ['Admins', false],
      ['team Admins', false],
    ])
  })

  test('are those of the document where it has them', async () => {
    const { document } = await imported(
      `entries:\n  - { model: theirs_core.group, identifiers: { name: theirs Admins } }\n${user('own', 'theirs Admins')}`,
    )
    expect(document).not.toMatch(/gatewright|!Find/)
    expect(document).toContain('!KeyOf group of entry 0')
  })
})

describe('access', () => {
  const bound = (...bindings: string[]) => `version: 1
entries:
  - { model: theirs_core.group, id: g, identifiers: { name: team } }
  - { model: theirs_core.application, id: app, identifiers: { slug: bound }, attrs: { name: Bound } }
  - { model: theirs_flows.flow, id: flow, identifiers: { slug: f }, attrs: { name: F, designation: recovery } }
${bindings.map((binding) => `  - { model: theirs_policies.policybinding, ${binding} }\n`).join('')}`

  test('that was restricted is named, above the document too', async () => {
    const { warnings, document } = await imported(
      bound(
        'identifiers: { target: !KeyOf app, group: !KeyOf g, order: 0 }',
        'identifiers: { target: !KeyOf app, order: 1 }, attrs: { user: !Find [theirs_core.user, [username, eve]], negate: true }',
        'identifiers: { target: !Find [theirs_core.application, [slug, other]], policy: !KeyOf p }',
      ),
    )
    expect(warnings).toEqual([
      'Access to the application "bound" is not restricted any more: it was bound to the group "team", all but the user "eve", and there are no bindings here.',
      'Access to the application "other" is not restricted any more: it was bound to the policy "p", and there are no bindings here.',
    ])
    expect(document?.split('\n').slice(0, 2)).toEqual(warnings.map((warning) => `# WARNING: ${warning}`))
  })

  test.each([
    [
      'a binding that is not in force',
      'identifiers: { target: !KeyOf app, group: !KeyOf g }, attrs: { enabled: false }',
    ],
    ['one that is deleted', 'state: absent, identifiers: { target: !KeyOf app, group: !KeyOf g }'],
    ['the binding of a flow', 'identifiers: { target: !KeyOf flow, group: !KeyOf g }'],
  ])('%s is none', async (_, binding) => {
    expect((await imported(bound(binding))).warnings).toEqual([])
  })
})

test('what means something else here is not taken', async () => {
  const { judgements, document } = await imported(`version: 1
entries:
  - model: theirs_providers_ldap.ldapprovider
    identifiers: { name: directory }
    attrs: { authorization_flow: !Find [theirs_flows.flow, [slug, default-authentication-flow]], base_dn: "dc=x" }
  - model: theirs_providers_saml.samlprovider
    identifiers: { name: login }
    attrs: { authorization_flow: !Find [theirs_flows.flow, [slug, default-authentication-flow]], acs_url: "https://a.example/" }
  - model: theirs_core.application
    identifiers: { slug: hidden }
    attrs: { name: Hidden, meta_launch_url: "blank://blank", provider: !Find [theirs_core.provider, [name, directory]] }
  - model: theirs_providers_oauth2.oauth2provider
    identifiers: { name: out }
    attrs:
      authorization_flow: !Find [theirs_flows.flow, [slug, default-provider-authorization-implicit-consent]]
      redirect_uris:
        - { matching_mode: strict, url: "https://a.example/cb" }
        - { matching_mode: strict, url: "https://a.example/bye", redirect_uri_type: logout }
  - model: theirs_rbac.role
    identifiers: { name: reading }
    attrs: { permissions: [theirs_core.view_application, theirs_stages_email.view_emailstage] }
  - model: theirs_core.group
    identifiers: { name: granted }
    permissions: [{ permission: view_group, role: x }]
  - model: theirs_core.token
    identifiers: { identifier: family-token, intent: api, expiring: false, user: !Find [theirs_core.user, [username, admin]] }
`)
  expect(judgements.flatMap(({ reasons }) => reasons)).toEqual([])
  expect(judgements.flatMap(({ leftOut }) => leftOut)).toEqual([
    'authorization_flow: default-authentication is for logging in. default-authorization-implicit stands in its place',
    'meta_launch_url: an application cannot be hidden by it here',
    'redirect_uris.1: it is for logout, and not for logins',
    'permissions: 1 of 2 are for models that Gatewright does not have',
    'permissions: they are given by roles and groups here',
  ])
  expect(document).not.toMatch(/bye|blank:|theirs/)
  return apply(document)
})
