import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { type Entry, Find, KeyOf } from '../../src/document/document.ts'
import type { Actor } from '../../src/permissions.ts'
import { application, bench, flow, oauth2, refusing, scim, shipped } from '../apply/engine.ts'
import { aGroup, aUser, name } from '../support/kit.ts'

/** Rows are referred to by name wherever they are by key, with the same outcome. */

const there = await bench()
const refused = refusing(there)

const key = (end: string) => `6f7e0000-0000-4000-8000-000000000${end}`

const mapping = (managed: string | null, attrs: Record<string, unknown>): Partial<Entry> => ({
  model: 'service_mappings.propertymapping',
  identifiers: managed === null ? { name: attrs.name, kind: attrs.kind } : { managed },
  attrs,
})

/** Both apply, and the same is stored: sent again by key, it is unchanged. */
async function same(byName: readonly Partial<Entry>[], byKey: readonly Partial<Entry>[]): Promise<void> {
  await there.check(byName)
  const { changes } = await there.apply(byName)
  for (const { logs } of [await there.apply(byKey), await there.apply(byName)])
    expect(logs.filter((line) => !line.endsWith(' unchanged'))).toEqual([])
  expect(JSON.stringify(changes)).not.toContain('Named')
}

describe('a reference by name is one by key', () => {
  test('flows by slug, property mappings by managed and by name, key pairs by name', async () => {
    await same(
      [
        oauth2(name, {
          authorization_flow: 'default-authorization-explicit',
          invalidation_flow: 'default-invalidation',
          property_mappings: ['gatewright/oauth2/scope-openid', 'OpenID scope email', shipped.mappings[2]],
          signing_key: 'Gatewright self-signed',
        }),
      ],
      [
        oauth2(name, {
          authorization_flow: key('102'),
          invalidation_flow: key('104'),
          property_mappings: shipped.mappings,
          signing_key: shipped.keyPair,
        }),
      ],
    )
  })

  test('groups, roles and users', async () => {
    await there.apply([aGroup(`${name}-parent`), aUser(`${name}-a`), aUser(`${name}-b`)])
    const { pk } = await there.db.group.findUniqueOrThrow({ where: { name: `${name}-parent` } })
    const users = await there.db.user.findMany({ where: { username: { startsWith: name } }, select: { pk: true } })
    await same(
      [aGroup(name, { parent: `${name}-parent`, users: [`${name}-a`, `${name}-b`], roles: ['Application deployer'] })],
      [aGroup(name, { parent: pk, users: users.map((each) => each.pk), roles: [key('401')] })],
    )
    const made = await there.db.group.findUniqueOrThrow({ where: { name } })
    await same([scim(name, { filter_group: name })], [scim(name, { filter_group: made.pk })])
  })

  test('providers by name, and in every case where a name has no other', async () => {
    await there.apply([oauth2(name), scim(`${name}-sync`)])
    const [one, sync] = await Promise.all(
      [name, `${name}-sync`].map((each) => there.db.provider.findUniqueOrThrow({ where: { name: each } })),
    )
    await same(
      [application(name, { provider: name.toUpperCase(), backchannel_providers: [` ${name}-SYNC `] })],
      [application(name, { provider: one?.pk, backchannel_providers: [sync?.pk] })],
    )
  })

  test('identifiers too', async () => {
    await there.apply([aUser(name), application(name)])
    const consent = (of: unknown, to: unknown): Partial<Entry> => ({
      model: 'service_core.userconsent',
      identifiers: { user: of, application: to },
      attrs: {},
    })
    const { pk } = await there.db.user.findUniqueOrThrow({ where: { username: name } })
    const { pk: app } = await there.db.application.findUniqueOrThrow({ where: { slug: name } })
    await same([consent(name, name)], [consent(pk, app)])
  })
})

describe('a name that stands for no row', () => {
  test('names the one that was probably meant, and that fits', async () => {
    const slug = `default-provider-${name}-consent`
    await there.apply([flow(slug), flow(`${slug}s`, { designation: 'recovery' })])
    expect(
      await refused([oauth2(name, { authorization_flow: slug.replace('default', 'defalt') })], 'authorization_flow'),
    ).toBe(`No flow is called "defalt-provider-${name}-consent". Did you mean "${slug}" (designation authorization)?`)
    // The other one is nearer, but does not fit.
    expect(await refused([oauth2(name, { authorization_flow: `${slug}ss` })], 'authorization_flow')).toContain(
      `Did you mean "${slug}" (designation authorization)?`,
    )
  })

  test.each([
    [
      'authorization_flow',
      'defalt-provider-authorization-explicit-consent',
      'No flow is called "defalt-provider-authorization-explicit-consent". Did you mean "default-authorization-explicit" (designation authorization)?',
    ],
    ['authorization_flow', 'zzz', 'No flow is called "zzz". This field takes one with the designation authorization.'],
    [
      'authorization_flow',
      'default-invalidation',
      'The flow "default-invalidation" has the designation invalidation: this field takes authorization.',
    ],
    ['authorization_flow', ' ', 'May not be empty.'],
    ['authorization_flow', 'x'.repeat(256), 'Must be at most 255 characters.'],
    [
      'signing_key',
      'Gatewrigth self-signed',
      'No certificate key pair is called "Gatewrigth self-signed". Did you mean "Gatewright self-signed"?',
    ],
    [
      'property_mappings.0',
      ['gatewright/oauth2/scope-emial'],
      'No property mapping is called "gatewright/oauth2/scope-emial". Did you mean "gatewright/oauth2/scope-email" (kind oauth2)?',
    ],
    [
      'property_mappings.0',
      ['SAML name'],
      'The property mapping "SAML name" has the kind saml: this field takes oauth2.',
    ],
  ])('%s: %j', async (at, sent, message) => {
    const field = at.split('.')[0] ?? ''
    const entries = [oauth2(name, { [field]: sent })]
    if (!message.startsWith('M')) return expect(await refused(entries, at)).toBe(message)
    await expect(there.check(entries)).rejects.toMatchObject({ fields: { entries: { 0: { [field]: [message] } } } })
  })

  test('a key and a name of the same row are the row twice', async () => {
    const entries = [oauth2(name, { property_mappings: ['OpenID scope openid', shipped.mappings[0]] })]
    expect(await refused(entries, 'property_mappings')).toBe('Must not hold a key twice.')
  })

  test('names of users are offered only to callers who may view users', async () => {
    await there.apply([aUser(`${name}-ada`)])
    const may = (...permissions: string[]): Actor => ({
      pk: null,
      username: 'caller',
      isSuperuser: false,
      permissions: new Set(permissions),
    })
    const entries = [aGroup(name, { users: [`${name}-adda`] })]
    const rights = ['add_group', 'add_user_to_group']
    const message = `No user is called "${name}-adda".`
    expect(await there.refusal(entries, may(...rights))).toMatchObject({
      reason: 'permission_denied',
      logs: ['rolled back: caller may not look up user: the permission view_user is missing'],
    })
    expect(await refused(entries, 'users.0', may(...rights, 'view_user'))).toBe(
      `${message} Did you mean "${name}-ada"?`,
    )
  })
})

describe('property mappings with one name', () => {
  test('the kind of the provider decides', async () => {
    await there.apply([mapping(null, { name, kind: 'oauth2' }), mapping(null, { name, kind: 'scim' })])
    await there.apply([
      oauth2(name, { property_mappings: [name] }),
      scim(`${name}-sync`, { property_mappings: [name] }),
    ])
    const rows = await there.db.provider.findMany({ where: { name: { startsWith: name } }, orderBy: { name: 'asc' } })
    const mappings = await there.db.propertyMapping.findMany({ where: { name }, orderBy: { kind: 'asc' } })
    expect(rows.map(({ settings }) => settings)).toMatchObject(mappings.map(({ pk }) => ({ property_mappings: [pk] })))
  })

  const stored = (of: string, managed: string | null = null, kind = 'oauth2') =>
    there.db.propertyMapping.create({ data: { pk: randomUUID(), name: of, kind, managed } })

  test('two of one kind that are there stay, and are told apart by managed', async () => {
    const rows = [await stored(name, `${name}/a`), await stored(name, `${name}/b`)]
    const [, { pk } = { pk: '' }] = rows
    const answer = await refused([oauth2(name, { property_mappings: [name] })], 'property_mappings.0')
    expect(answer).toMatch(
      new RegExp(`^More than one property mapping is called "${name}": managed "${name}/a", .*; .*`),
    )
    expect(answer).toContain('Send the key of one, or !Find [service_mappings.propertymapping, {managed: ...}].')
    await there.apply([
      mapping(`${name}/a`, { name, kind: 'oauth2', expression: 'return 1' }),
      oauth2(name, { property_mappings: [`${name}/b`] }),
    ])
    expect((await there.apply([oauth2(name, { property_mappings: [pk] })])).logs[0]).toContain('unchanged')
  })

  test('managed goes before the name of another row', async () => {
    const managed = `${name}/managed`
    const { pk } = await stored(name, managed)
    const other = await stored(managed)
    const entry = oauth2(name, { property_mappings: [managed] })
    await same([entry], [oauth2(name, { property_mappings: [pk] })])
    await there.apply([oauth2(name, { property_mappings: [other.pk] })])
    const find = new Find('service_mappings.propertymapping', { name: managed, kind: 'oauth2' })
    expect((await there.apply([oauth2(name, { property_mappings: [find] })])).logs[0]).toContain('unchanged')
    // One that the field does not take is not meant.
    await stored(`${name} saml`, `${name} own`, 'saml')
    const { pk: own } = await stored(`${name} own`)
    await same([oauth2(name, { property_mappings: [`${name} own`] })], [oauth2(name, { property_mappings: [own] })])
  })

  describe('a new one that another row has is refused to its maker', () => {
    const taken = (of: string, holder = `property mapping "${name}"`) => `${JSON.stringify(of)} is taken by ${holder}.`
    let managed: string
    beforeEach(async () => {
      managed = `${name}/managed`
      await stored(name, managed)
      await stored(`${name} plain`)
    })

    test('as its name or managed, by whatever identifiers', async () => {
      const byKey = (attrs: object) => ({
        ...mapping(null, {}),
        identifiers: { pk: randomUUID() },
        attrs: { ...attrs },
      })
      const second = (of: string) => mapping(`${name}/second`, { name: of, kind: 'oauth2' })
      expect(await refused([mapping(null, { name: managed, kind: 'oauth2' })], 'name')).toBe(taken(managed))
      expect(await refused([second(managed)], 'name')).toBe(taken(managed))
      expect(await refused([second(name)], 'name')).toBe(taken(name))
      expect(await refused([byKey({ name, kind: 'oauth2' })], 'name')).toBe(taken(name))
      const plain = `${name} plain`
      const holder = `property mapping "${plain}"`
      expect(await refused([mapping(plain, { name: `${name} c`, kind: 'oauth2' })], 'managed')).toBe(
        taken(plain, holder),
      )
      expect(await refused([byKey({ name: plain, kind: 'oauth2', managed: null })], 'name')).toBe(taken(plain, holder))
      // A proxy takes both kinds.
      expect(await refused([mapping(null, { name: managed, kind: 'proxy' })], 'name')).toBe(taken(managed))
      await there.apply([mapping(null, { name: managed, kind: 'saml' }), mapping(managed, { name: managed })])
      expect(await refused([second(managed), { ...mapping(managed, { name }) }].reverse(), 'name')).toBe(taken(managed))
    })

    test('by a rename, and by another kind', async () => {
      const plain = { name: `${name} plain`, kind: 'oauth2' }
      for (const of of [name, managed])
        expect(await refused([{ ...mapping(null, plain), attrs: { name: of } }], 'name')).toBe(taken(of))
      await there.apply([mapping(null, { name: managed, kind: 'saml' })])
      const { pk } = await there.db.propertyMapping.findFirstOrThrow({ where: { name: managed } })
      const moved = (kind: string) => ({ ...mapping(null, {}), identifiers: { pk }, attrs: { kind } })
      expect(await refused([moved('oauth2')], 'kind')).toBe(taken(managed))
      expect(await refused([moved('proxy')], 'kind')).toBe(taken(managed))
      await there.apply([moved('scim')])
      await there.apply([{ ...mapping(null, plain), attrs: { name: `${name} other` } }])
    })

    test('by what earlier entries do', async () => {
      const fresh = mapping(null, { name: `${name} fresh`, kind: 'oauth2' })
      const like = mapping(`${name} fresh`, { name: `${name} like`, kind: 'oauth2' })
      expect(await refused([fresh, like], 'managed')).toBe(taken(`${name} fresh`, `property mapping "${name} fresh"`))
      expect(await refused([like, fresh], 'name')).toBe(taken(`${name} fresh`, `property mapping "${name} like"`))
      // The same row, named twice; a name that its row has left.
      await there.apply([fresh, { ...fresh, attrs: { expression: 'return 1' } }])
      const leaves = mapping(managed, { managed: `${managed} left` })
      const entries = [leaves, mapping(null, { name: managed, kind: 'oauth2' })]
      await there.check(entries)
      await there.apply(entries)
    })

    test('and names no row that the maker may not view', async () => {
      const may = (...permissions: string[]): Actor => ({
        ...{ pk: null, username: 'caller', isSuperuser: false },
        permissions: new Set(permissions),
      })
      const entries = [mapping(null, { name: managed, kind: 'oauth2' })]
      expect(await refused(entries, 'name', may('add_propertymapping'))).toBe(
        taken(managed, 'another property mapping'),
      )
      expect(await refused(entries, 'name', may('add_propertymapping', 'view_propertymapping'))).toBe(taken(managed))
    })
  })
})

describe('a name means what it means at its place in the document', () => {
  // It may say something else than an earlier entry.
  const provider = (of: string) => ({ ...oauth2(name, { authorization_flow: of }), conditions: [true] })

  test('one that an earlier entry creates, with and without an id', async () => {
    const entries = [flow(name), { ...flow(`${name}-b`), id: 'b' }, provider(name), provider(`${name}-b`)]
    await there.check(entries)
    const { changes } = await there.apply(entries)
    expect(changes[2]?.fields.authorization_flow).toEqual({ from: null, to: name })
    expect(changes[3]?.fields.authorization_flow).toMatchObject({ to: `${name}-b` })
    expect((await there.apply([flow(name), flow(`${name}-b`), provider(`${name}-b`)])).logs[2]).toContain('unchanged')
  })

  test.each([
    ['by name', () => ({ identifiers: { slug: name }, attrs: { slug: `${name}-new` } })],
    [
      'by key',
      async () => {
        const { pk } = await there.db.flow.findUniqueOrThrow({ where: { slug: name } })
        return { identifiers: { pk }, attrs: { slug: `${name}-new` } }
      },
    ],
  ])('one that an earlier entry renames, found %s', async (_, renaming) => {
    await there.apply([flow(name)])
    const renames = await renaming()
    expect(await refused([renames, provider(name)], 'authorization_flow')).toBe(
      `No flow is called "${name}" at this place: entry 0 of the document renames it.`,
    )
    await there.check([provider(name), renames, provider(`${name}-new`)])
    expect((await there.apply([provider(name), renames, provider(`${name}-new`)])).logs[2]).toContain('unchanged')
    // What is renamed leaves its name to another.
    await there.apply([{ identifiers: { slug: `${name}-new` }, attrs: { slug: name } }])
    const { logs } = await there.apply([renames, { ...flow(name), conditions: [true] }, provider(name)])
    expect(logs[2]).toContain('updated: authorization_flow')
  })

  test('one that an earlier entry deletes', async () => {
    await there.apply([flow(name)])
    expect(
      await refused([{ identifiers: { slug: name }, state: 'absent' }, provider(name)], 'authorization_flow'),
    ).toBe(`No flow is called "${name}" at this place: entry 0 of the document deletes it.`)
  })

  test('one that an earlier entry makes fit', async () => {
    await there.apply([flow(name, { designation: 'recovery' })])
    const { pk } = await there.db.flow.findUniqueOrThrow({ where: { slug: name } })
    const fits = { identifiers: { pk }, attrs: { designation: 'authorization' } }
    await there.check([fits, provider(name)])
    expect((await there.apply([fits, provider(name)])).logs[1]).toContain('created')
    await there.apply([provider(shipped.flow)])
    const unfit = { identifiers: { slug: name }, attrs: { designation: 'recovery' } }
    expect(await refused([unfit, provider(name)], 'authorization_flow')).toContain('has the designation recovery')
  })

  test('one that a later entry creates, which is judged first', async () => {
    const { changes } = await there.apply([provider(name), flow(name)])
    expect(changes.map(({ action, entry }) => [action, entry])).toEqual([
      ['create', 1],
      ['create', 0],
    ])
    expect(changes[1]?.fields.authorization_flow).toEqual({ from: null, to: name })
  })

  test('an id of the document that reads like a given one', async () => {
    const id = `flow "${name}"`
    const entries = [
      flow(name),
      { ...flow(`${name}-b`), id },
      provider(name),
      oauth2(`${name}-c`, { authorization_flow: new KeyOf(id) }),
    ]
    const { changes } = await there.apply(entries)
    expect(changes[2]?.fields.authorization_flow).toMatchObject({ to: name })
    expect(changes[3]?.fields.authorization_flow).toMatchObject({ to: `${name}-b` })
  })
})
