import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type Entry, Find, KeyOf } from '../../src/document/document.ts'
import { application, bench, flow, oauth2, refusing, scim, shipped } from '../apply/engine.ts'
import { aProvider, name } from '../support/kit.ts'

/** A field takes only rows that make sense in it: the API and the worker refuse all others in the same words. */

const there = await bench()
const refused = refusing(there)

const key = (end: string) => `6f7e0000-0000-4000-8000-000000000${end}`
const [logIn, authorize, logOut, unenroll] = [key('101'), key('102'), key('104'), key('109')]
const [scope, attribute] = [key('201'), key('212')]

const saml = (attrs: Record<string, unknown>): Partial<Entry> =>
  aProvider('saml', name, { authorization_flow: authorize, acs_url: 'https://sp.example/acs', ...attrs })

const mapping = (kind: string): Partial<Entry> => ({
  model: 'service_mappings.propertymapping',
  id: 'mapping',
  identifiers: { name, kind },
})

describe.each([
  ['authentication_flow', 'authentication', logIn, unenroll, 'unenrollment'],
  ['authorization_flow', 'authorization', authorize, logIn, 'authentication'],
  ['invalidation_flow', 'invalidation', logOut, authorize, 'authorization'],
])('%s takes a flow of the designation %s', (field, designation, fits, other, found) => {
  test('by key', async () => {
    expect((await there.apply([oauth2(name, { [field]: fits })])).logs[0]).toContain('created')
    expect(await refused([oauth2(name, { [field]: other })], field)).toBe(
      `The flow ${other} has the designation ${found}: this field takes ${designation}.`,
    )
  })

  test('by !KeyOf, of a new flow and of one that is there', async () => {
    const wrong = designation === 'recovery' ? 'enrollment' : 'recovery'
    const entries = (of: string) => [
      { ...flow(name, { designation: of }), id: 'flow' },
      oauth2(name, { [field]: new KeyOf('flow') }),
    ]
    const message = `The flow !KeyOf flow has the designation ${wrong}: this field takes ${designation}.`
    expect(await refused(entries(wrong), field)).toBe(message)
    await there.apply([flow(name, { designation: wrong })])
    expect(await refused(entries(wrong), field)).toBe(message)
    expect(await refused([{ ...flow(name), id: 'flow', state: 'created' }, ...entries(wrong).slice(1)], field)).toBe(
      message,
    )
    // The document itself makes it fit.
    expect((await there.apply(entries(designation))).logs[1]).toContain('created')
  })

  test('by !Find', async () => {
    const entries = (slug: string) => [oauth2(name, { [field]: new Find('service_flows.flow', { slug }) })]
    expect(await refused(entries('default-unenrollment'), field)).toBe(
      `The flow ${unenroll} has the designation unenrollment: this field takes ${designation}.`,
    )
    expect(
      (await there.apply(entries(`default-${designation}${designation === 'authorization' ? '-explicit' : ''}`))).logs,
    ).toHaveLength(1)
  })
})

describe('property mappings are of the kind of the provider', () => {
  test.each([
    [
      'property_mappings',
      () => oauth2(name, { property_mappings: [scope, attribute] }),
      'property_mappings.1',
      'saml',
      'oauth2',
    ],
    [
      'property_mappings_group',
      () => scim(name, { property_mappings_group: [attribute] }),
      'property_mappings_group.0',
      'saml',
      'scim',
    ],
    ['name_id_mapping', () => saml({ name_id_mapping: scope }), 'name_id_mapping', 'oauth2', 'saml'],
  ])('%s', async (_, entry, at, found, kind) => {
    const named = found === 'saml' ? attribute : scope
    expect(await refused([entry()], at)).toBe(
      `The propertymapping ${named} has the kind ${found}: this field takes ${kind}.`,
    )
  })

  test('by !KeyOf', async () => {
    const entries = (kind: string) => [
      mapping(kind),
      oauth2(name, { property_mappings: [scope, new KeyOf('mapping')] }),
    ]
    expect(await refused(entries('radius'), 'property_mappings.1')).toBe(
      'The propertymapping !KeyOf mapping has the kind radius: this field takes oauth2.',
    )
    expect((await there.apply(entries('oauth2'))).logs[1]).toContain('created')
  })
})

describe('kinds that take more than the usual', () => {
  const provider = (kind: string, attrs: Record<string, unknown>): Partial<Entry> => ({
    model: `service_providers_${kind}.${kind}provider`,
    identifiers: { name },
    attrs: { authorization_flow: authorize, ...attrs },
  })

  test.each(['ldap', 'radius'])('%s binds with a flow of authentication or authorization', async (kind) => {
    const message = (what: string) =>
      `The flow ${what} has the designation unenrollment: this field takes authentication, authorization.`
    const of = (authorization_flow: unknown) => [provider(kind, { authorization_flow })]
    for (const fits of [logIn, authorize, 'default-authentication', new Find('service_flows.flow', { pk: logIn })])
      await there.apply(of(fits))
    expect(await refused(of(unenroll), 'authorization_flow')).toBe(message(unenroll))
    expect(await refused(of('default-unenrollment'), 'authorization_flow')).toBe(
      'The flow "default-unenrollment" has the designation unenrollment: this field takes authentication, authorization.',
    )
    const created = (designation: string) => [{ ...flow(name, { designation }), id: 'flow' }, ...of(new KeyOf('flow'))]
    expect(await refused(created('unenrollment'), 'authorization_flow')).toBe(message('!KeyOf flow'))
    await there.apply(created('authentication'))
    // The other one fits, too.
    await there.apply([flow(name, { designation: 'authorization' })])
    expect(await refused([flow(name, { designation: 'recovery' })], 'designation')).toBe(
      `provider ${kind} "${name}" refers to it in authorization_flow, which takes authentication, authorization.`,
    )
    expect(await refused(of('default-authenticaton'), 'authorization_flow')).toBe(
      'No flow is called "default-authenticaton". Did you mean "default-authentication" (designation authentication)?',
    )
  })

  test('a proxy takes mappings of its own kind and of oauth2', async () => {
    const proxy = (...property_mappings: unknown[]) => [
      provider('proxy', { external_host: 'https://a.example', mode: 'forward_single', property_mappings }),
    ]
    const called = `Claims ${name}`
    const claims = (kind: string) => ({ ...mapping(kind), identifiers: { name: called, kind } })
    await there.apply([claims('proxy'), ...proxy(scope, new KeyOf('mapping'))])
    await there.apply(proxy(called))
    expect(await refused(proxy(attribute), 'property_mappings.0')).toBe(
      `The propertymapping ${attribute} has the kind saml: this field takes oauth2, proxy.`,
    )
    expect(await refused([claims('oauth2')], 'name')).toBe(`"${called}" is taken by property mapping "${called}".`)
    await there.db.propertyMapping.create({ data: { pk: randomUUID(), name: called, kind: 'oauth2' } })
    const ambiguous = await refused(proxy(called), 'property_mappings.0')
    expect(ambiguous).toContain(`More than one property mapping is called "${called}": `)
    for (const kind of ['oauth2', 'proxy']) expect(ambiguous).toContain(`name "${called}", kind ${kind} (pk `)
    // An oauth2 provider takes none of a proxy.
    const client = oauth2(`${name} client`, { property_mappings: [called] })
    await there.apply([client])
    const own = oauth2(`${name} client`, { property_mappings: [new KeyOf('mapping')] })
    expect(await refused([claims('proxy'), own], 'property_mappings.0')).toBe(
      'The propertymapping !KeyOf mapping has the kind proxy: this field takes oauth2.',
    )
  })
})

test('a backchannel provider is of a backchannel kind, by !KeyOf too', async () => {
  const message = 'has the kind oauth2: this field takes directory_sync_b, ldap, scim, workspace_sync_a.'
  const entries = [{ ...oauth2(name), id: 'p' }, application(name, { backchannel_providers: [new KeyOf('p')] })]
  expect(await refused(entries, 'backchannel_providers.0')).toBe(`The provider !KeyOf p ${message}`)
  await there.apply([oauth2(name)])
  expect(await refused(entries, 'backchannel_providers.0')).toBe(`The provider !KeyOf p ${message}`)
  const { pk } = await there.db.provider.findUniqueOrThrow({ where: { name } })
  expect(await refused([application(name, { backchannel_providers: [pk] })], 'backchannel_providers.0')).toBe(
    `The provider ${pk} ${message}`,
  )
})

test('one provider stands in one of the two fields of an application', async () => {
  await there.apply([scim(name), application(name, { backchannel_providers: [name] })])
  const both = 'Holds the provider of the application, too: leave it out of one of the two fields.'
  expect((await there.apply([application(name, { provider: name })])).logs).toEqual([`application "${name}" unchanged`])
  const other = `${name.slice(0, 20)}-2`
  await there.apply([scim(other)])
  const sent = application(other, { provider: other, backchannel_providers: [other] })
  expect(await refused([sent], 'backchannel_providers')).toBe(both)
  await there.apply([application(name, { provider: name, backchannel_providers: [] })])
})

test('a key that is nowhere is reported as before', async () => {
  const none = key('fff')
  expect(await refused([oauth2(name, { authorization_flow: none })], 'authorization_flow')).toBe(
    `There is no flow with the key ${none}.`,
  )
})

describe('a row in use may not change so that it no longer fits', () => {
  const message = (field: string, takes: string, of = 'oauth2') =>
    `provider ${of} "${name}" refers to it in ${field}, which takes ${takes}.`

  test('a flow keeps its designation', async () => {
    const entries = [{ ...flow(name), id: 'flow' }, oauth2(name, { authorization_flow: new KeyOf('flow') })]
    await there.apply(entries)
    expect(await refused([flow(name, { designation: 'unenrollment' })], 'designation')).toBe(
      message('authorization_flow', 'authorization'),
    )
    expect((await there.apply([flow(name, { title: 'New' })])).logs).toEqual([
      `flow "${name}" updated: title "" -> "New"`,
    ])
    await there.apply([oauth2(name, { authorization_flow: authorize })])
    await there.apply([flow(name, { designation: 'unenrollment' })])
  })

  test('a property mapping keeps its kind', async () => {
    await there.apply([mapping('scim'), scim(name, { property_mappings_group: [new KeyOf('mapping')] })])
    const { pk } = await there.db.propertyMapping.findFirstOrThrow({ where: { name } })
    const moved = { ...mapping('oauth2'), identifiers: { pk }, attrs: { kind: 'oauth2' } }
    expect(await refused([moved], 'kind')).toBe(message('property_mappings_group', 'scim', 'scim'))
    await there.apply([scim(name, { property_mappings_group: [] }), moved])
  })
})

test('every reference of a provider to flows or mappings is restricted', () => {
  const open = [...there.engine.registry.kinds.values()].flatMap(({ displayName, fields }) =>
    [...fields.values()]
      .filter(({ reference }) => reference !== undefined && ['flow', 'propertymapping'].includes(reference.target))
      .filter(({ reference }) => reference?.only === undefined)
      .map(({ name }) => `${displayName} ${name}`),
  )
  expect(open).toEqual([])
  expect(shipped.flow).toBe(authorize)
})
