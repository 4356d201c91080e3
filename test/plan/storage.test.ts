import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { query } from '../../src/db/raw.ts'
import { update } from '../../src/plan/statements.ts'
import { application, type Bench, bench, flow, oauth2, scim, shipped } from '../apply/engine.ts'
import { aGroup, aProvider, aUser, name, rows, sql, versions } from '../support/kit.ts'

const there = await bench()

const provider = async () => {
  const found = await there.db.provider.findUniqueOrThrow({ where: { name } })
  return {
    ...found,
    settings: found.settings as Record<string, unknown>,
    secrets: found.secrets as Record<string, string>,
  }
}

/** The tables that an apply of these entries wrote, by the versions of their rows. */
async function written(entries: Parameters<Bench['apply']>[0]): Promise<string[]> {
  const before = await versions(there.db)
  await there.apply(entries)
  const after = await versions(there.db)
  return Object.keys(after).filter((table) => JSON.stringify(before[table]) !== JSON.stringify(after[table]))
}

describe('an update writes only what changed', () => {
  test('a column', async () => {
    await there.apply([application(name, { group: 'A' })])
    expect(await written([application(name, { group: 'B' })])).toEqual(['applications'])
  })

  test('a setting: the others are kept, sent or not', async () => {
    await there.apply([oauth2(name, { sub_mode: 'user_id', issuer_mode: 'global' })])
    const before = await provider()
    expect(await written([oauth2(name, { sub_mode: 'user_uuid' })])).toEqual(['consumer_changes', 'providers'])
    const after = await provider()
    expect(after.settings).toEqual({ ...before.settings, sub_mode: 'user_uuid' })
    expect({ ...after, settings: {} }).toEqual({ ...before, settings: {} })
  })

  test('a secret: the settings are kept', async () => {
    await there.apply([scim(name)])
    const before = await provider()
    expect((await there.apply([scim(name, { token: 'another-token-of-some-length' })])).logs).toEqual([
      `provider scim "${name}" updated: token changed`,
    ])
    expect((await provider()).settings).toEqual(before.settings)
    expect((await provider()).secrets).not.toEqual(before.secrets)
  })

  test('links: only added and removed ones, in any order', async () => {
    const groups = ['a', 'b', 'c'].map((letter) => aGroup(`${name}-${letter}`))
    await there.apply(groups)
    const made = await there.db.group.findMany({
      where: { name: { startsWith: `${name}-` } },
      orderBy: { name: 'asc' },
    })
    const [a, b, c] = made.map(({ pk }) => pk)
    const user = (sent: unknown) => aUser(name, { groups: sent })
    await there.apply([user([a, b])])
    const memberships = () =>
      rows<{ group: string; version: string }>(
        there.db,
        sql`
      SELECT m.group_pk AS group, m.ctid::text || m.xmin::text AS version FROM memberships m JOIN users u ON u.pk = m.user_pk WHERE u.username = ${name} ORDER BY 1`,
      )
    const before = await memberships()
    expect(await written([user([b, a])])).toEqual([])
    expect(await written([user([b, c])])).toEqual(['memberships'])
    const after = await memberships()
    expect(after.map(({ group }) => group).sort()).toEqual([b, c].sort())
    expect(after.find(({ group }) => group === b)).toEqual(before.find(({ group }) => group === b))
    await there.apply([user([])])
    expect(await memberships()).toEqual([])
  })

  test('links: each is looked up among those that stay, and not compared with every one of them', async () => {
    const { registry } = there.engine
    const group = registry.byName('service_core.group')
    if (group === undefined) throw new Error('there is no model of groups')
    const row = { columns: new Map(), links: new Map([['users', [1, 2, 3]]]) }
    const [removal] = update(group, registry, [{ pk: randomUUID(), row, references: [], referring: [] }])
    if (removal === undefined) throw new Error('nothing is removed')
    const plan = await query(there.db, z.object({ 'QUERY PLAN': z.string() }), {
      text: `EXPLAIN ${removal.text}`,
      values: removal.values,
    })
    const lines = plan.map((line) => line['QUERY PLAN'])
    expect(lines[0]).toContain('Delete on memberships')
    expect(lines.join('\n')).toMatch(/NOT .*hashed SubPlan/)
  })
})

describe('references in settings are stored as foreign keys too', () => {
  const referenceRows = () =>
    there.db.providerReference.findMany({
      where: { provider: { name } },
      orderBy: [{ field: 'asc' }, { position: 'asc' }],
      omit: { providerPk: true },
    })
  const none = {
    ...{ propertyMappingPk: null, certificateKeyPairPk: null, groupPk: null, flowPk: null, rolePk: null },
    ...{ userPk: null, applicationPk: null, otherProviderPk: null },
  }
  const [first, second, third] = shipped.mappings
  const mapping = (position: number, propertyMappingPk: string) => ({
    ...{ ...none, field: 'property_mappings', position, propertyMappingPk },
  })
  const signingKey = { ...none, field: 'signing_key', position: 0, certificateKeyPairPk: shipped.keyPair }

  test('when a row is created, in their order', async () => {
    await there.apply([oauth2(name, { property_mappings: [second, first], signing_key: shipped.keyPair })])
    expect(await referenceRows()).toEqual([mapping(0, second), mapping(1, first), signingKey])
  })

  test('when a field changes, only those of that field', async () => {
    await there.apply([oauth2(name, { property_mappings: [first, second], signing_key: shipped.keyPair })])
    await there.apply([oauth2(name, { property_mappings: [third, first] })])
    expect(await referenceRows()).toEqual([mapping(0, third), mapping(1, first), signingKey])
    expect((await provider()).settings.property_mappings).toEqual([third, first])
    await there.apply([oauth2(name, { signing_key: null })])
    expect(await referenceRows()).toEqual([mapping(0, third), mapping(1, first)])
    await there.apply([oauth2(name, { property_mappings: [] })])
    expect(await referenceRows()).toEqual([])
  })

  test('not when another field changes', async () => {
    await there.apply([oauth2(name, { property_mappings: [first] })])
    expect(await written([oauth2(name, { sub_mode: 'user_id' })])).toEqual(['consumer_changes', 'providers'])
  })

  test('a group that a setting names', async () => {
    await there.apply([scim(name, { filter_group: shipped.group })])
    expect(await referenceRows()).toEqual([{ ...none, field: 'filter_group', position: 0, groupPk: shipped.group }])
  })
})

describe('secrets', () => {
  test('are sealed at rest, and can be opened for their row and column only', async () => {
    await there.apply([oauth2(name, { client_secret: 'hunter2-of-the-client' })])
    const [raw] = await rows<{ row: string; uuid: string; secret: string }>(
      there.db,
      sql`
      SELECT p::text AS row, uuid, secrets->>'client_secret' AS secret FROM providers p WHERE name = ${name}`,
    )
    expect(raw?.row).not.toContain('hunter2')
    expect(raw?.secret).toMatch(/^v2\.[\w-]{8}\.[\w-]+\.[\w-]+$/)
    const sealedPlace = { table: 'providers', row: raw?.uuid ?? '', column: 'secrets.client_secret' }
    const { keyring } = there.engine
    expect(keyring.open(raw?.secret ?? '', sealedPlace)).toBe('"hunter2-of-the-client"')
    expect(() => keyring.open(raw?.secret ?? '', { ...sealedPlace, row: 'another' })).toThrow()
    expect(() => keyring.open(raw?.secret ?? '', { ...sealedPlace, column: 'secrets.token' })).toThrow()
  })

  test('of any type converge', async () => {
    const workspace = (credentials: unknown) =>
      aProvider('workspace_sync_a', name, {
        delegated_subject: 'a@example.com',
        default_group_email_domain: 'example.com',
        credentials,
      })
    await there.apply([workspace({ a: { b: [1, { c: null }], d: 'é\n"' } })])
    expect(await written([workspace({ a: { d: 'é\n"', b: [1, { c: null }] } })])).toEqual([])
    expect(await written([workspace({ a: { b: [1, { c: false }], d: 'é\n"' } })])).toEqual([
      'consumer_changes',
      'providers',
    ])
  })

  test('in a column are sealed too, and an empty one stays empty', async () => {
    const [raw] = await rows<{ sealed: string }>(
      there.db,
      sql`SELECT sealed_key AS sealed FROM certificate_key_pairs WHERE pk = ${shipped.keyPair}`,
    )
    expect(raw?.sealed).toMatch(/^v2\./)
    const sealedPlace = { table: 'certificate_key_pairs', row: shipped.keyPair, column: 'sealed_key' }
    expect(there.engine.keyring.open(raw?.sealed ?? '', sealedPlace)).toContain('PRIVATE KEY')
  })
})

describe('generated values', () => {
  test('are generated for a new row, reported once, and never generated again', async () => {
    const entry = { ...oauth2(name), id: 'it' }
    const { generated } = await there.apply([entry])
    expect(generated).toEqual({
      it: { client_id: expect.stringMatching(/^\w{40}$/), client_secret: expect.stringMatching(/^\w{128}$/) },
    })
    const before = await provider()
    expect(before.oauth2ClientId).toBe(generated.it?.client_id)
    expect(await there.apply([entry])).toMatchObject({ generated: {}, logs: [`provider oauth2 "${name}" unchanged`] })
    expect(await there.apply([{ ...oauth2(name, { sub_mode: 'user_id' }), id: 'it' }])).toMatchObject({ generated: {} })
    expect(await provider()).toMatchObject({ oauth2ClientId: before.oauth2ClientId, secrets: before.secrets })
  })

  test('are not generated when a value is sent', async () => {
    const { generated } = await there.apply([{ ...oauth2(name, { client_id: `sent-${name}` }), id: 'it' }])
    expect(Object.keys(generated.it ?? {})).toEqual(['client_secret'])
  })
})

describe('every valid value converges', () => {
  const rac = (settings: unknown) => aProvider('rac', name, { authorization_flow: shipped.flow, settings })

  test.each<[string, unknown]>([
    ['numbers', { zero: 0, minus: -0, float: 0.1, tiny: 5e-324, huge: 1e300, whole: 1e21, safe: 2 ** 53 }],
    [
      'texts',
      {
        '': '',
        ' a ': ' a ',
        '\n': '\r\n',
        é: 'e\u0301',
        '😀': '\u{10ffff}',
        date: '2020-01-01',
        tag: 'of !KeyOf x',
        '<<': '<<',
      },
    ],
    ['nesting', { a: { b: { c: [[], {}, [[{}]], null, true, false] } }, constructor: { prototype: 1 } }],
    ['numbers for names', { 10: 'a', 9: 'b', '01': 'c' }],
  ])('%s', async (_, settings) => {
    await there.apply([rac(settings)])
    expect(await written([rac(structuredClone(settings))])).toEqual([])
  })

  test('minus zero in a column of numbers', async () => {
    const ldap = aProvider('ldap', name, { authorization_flow: shipped.flow, uid_start_number: -0 })
    await there.apply([ldap])
    expect(await written([ldap])).toEqual([])
  })
})

describe('a unique value', () => {
  test('of another row is refused, and the error names that row', async () => {
    await there.apply([oauth2(name, { client_id: `id-${name}` })])
    const { reason, logs } = await there.refusal([oauth2(`${name}-b`, { client_id: `id-${name}` })])
    expect(reason).toBe('invalid')
    expect(logs).toEqual([`rolled back: entries.0.client_id: "id-${name}" is taken by provider oauth2 "${name}".`])
  })

  test('in two entries of one document is refused', async () => {
    const { logs } = await there.refusal([
      oauth2(name, { client_id: `id-${name}` }),
      oauth2(`${name}-b`, { client_id: `id-${name}` }),
    ])
    expect(logs).toEqual([`rolled back: entries.1.client_id: "id-${name}" is taken by provider oauth2 "${name}".`])
    expect(await there.db.provider.count({ where: { name: { startsWith: name } } })).toBe(0)
  })

  test('may be sent again to the row that has it', async () => {
    await there.apply([oauth2(name, { client_id: `id-${name}` })])
    expect((await there.apply([oauth2(name, { client_id: `id-${name}` })])).logs).toEqual([
      `provider oauth2 "${name}" unchanged`,
    ])
  })

  test('a provider belongs to one application, as provider or as backchannel provider', async () => {
    await there.apply([scim(name), application(name)])
    const { pk } = await provider()
    await there.apply([application(name, { provider: pk, backchannel_providers: [] })])
    expect((await there.refusal([application(`${name}-b`, { provider: pk })])).logs).toEqual([
      `rolled back: entries.0.provider: The provider "${name}" belongs to application "${name}".`,
    ])
    await there.apply([application(name, { provider: null, backchannel_providers: [pk] })])
    expect((await there.refusal([application(`${name}-b`, { backchannel_providers: [pk] })])).logs).toEqual([
      `rolled back: entries.0.backchannel_providers: The backchannel provider "${name}" belongs to application "${name}".`,
    ])
  })

  test('a provider of another kind is refused as a backchannel provider', async () => {
    await there.apply([oauth2(name)])
    const { pk } = await provider()
    expect((await there.refusal([application(name, { backchannel_providers: [pk] })])).logs).toEqual([
      `rolled back: entries.0.backchannel_providers.0: The provider ${pk} has the kind oauth2: this field takes directory_sync_b, ldap, scim, workspace_sync_a.`,
    ])
  })
})

test('of two concurrent applies of one unique value, the database refuses the second completely', async () => {
  const claim = (own: string) =>
    there.apply([flow(own), oauth2(own, { client_id: `id-${name}` })]).then(
      () => 'applied',
      (error: { reason: string }) => error.reason,
    )
  const outcomes = await Promise.all(Array.from({ length: 8 }, (_, index) => claim(`${name}-${index}`)))
  expect(outcomes.filter((outcome) => outcome === 'applied')).toHaveLength(1)
  expect(outcomes.filter((outcome) => outcome === 'conflict' || outcome === 'invalid')).toHaveLength(7)
  expect(await there.db.provider.count({ where: { name: { startsWith: name } } })).toBe(1)
  expect(await there.db.flow.count({ where: { slug: { startsWith: name } } })).toBe(1)
})

test('concurrent applies of one row run one after the other, and all succeed', async () => {
  const outcomes = await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      there.apply([oauth2(name, { sub_mode: index % 2 === 0 ? 'user_id' : 'user_uuid' }), application(name)]),
    ),
  )
  expect(outcomes.filter(({ logs }) => logs[0]?.includes('created'))).toHaveLength(1)
  expect(outcomes.every(({ logs }) => logs.length === 2)).toBe(true)
})
