import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type Entry, Find, KeyOf } from '../../src/document/document.ts'
import { counts, name, rows, sql, versions } from '../support/kit.ts'
import { application, bench, flow, oauth2, scim, shipped } from './engine.ts'

const there = await bench()
/** A name that no other test of this file uses. */

const stored = (slug: string) => there.db.flow.findUnique({ where: { slug } })

describe('state present', () => {
  test('creates a row that does not exist, with defaults', async () => {
    const { logs, audited } = await there.apply([flow(name)])
    const created = await stored(name)
    expect(created).toMatchObject({ name: `Flow ${name}`, title: '', designation: 'authorization' })
    expect(logs).toEqual([`flow "${name}" created (pk ${created?.pk})`])
    expect(audited).toEqual([
      {
        model: 'service_flows.flow',
        key: created?.pk,
        action: 'create',
        fields: ['name', 'slug', 'title', 'designation', 'asks_for_consent'],
        object: {
          ...{ name, was: null, owner: null, change: 0 },
          fields: {
            name: { from: null, to: `Flow ${name}` },
            slug: { from: null, to: name },
            title: { from: null, to: '' },
            designation: { from: null, to: 'authorization' },
            asks_for_consent: { from: null, to: false },
          },
        },
      },
    ])
  })

  test('updates only the listed fields, and logs those that changed', async () => {
    await there.apply([flow(name, { title: 'Before' })])
    const { logs, audited } = await there.apply([
      { identifiers: { slug: name }, attrs: { name: 'New', designation: 'authorization' } },
    ])
    expect(logs).toEqual([`flow "${name}" updated: name "Flow ${name}" -> "New"`])
    expect(audited).toMatchObject([{ action: 'update', fields: ['name'] }])
    expect(await stored(name)).toMatchObject({ name: 'New', title: 'Before' })
  })

  test('writes nothing when nothing differs', async () => {
    await there.apply([flow(name)])
    const before = await versions(there.db)
    const { logs, audited } = await there.apply([flow(name)])
    expect(logs).toEqual([`flow "${name}" unchanged`])
    expect(audited).toEqual([])
    expect(await versions(there.db)).toEqual(before)
  })

  test('takes no key for a row that is there', async () => {
    const last = () => rows(there.db, sql`SELECT last_value::text FROM providers_pk_seq`)
    await there.apply([oauth2(name)])
    const before = await last()
    await there.apply([oauth2(name)])
    expect(await last()).toEqual(before)
  })

  test('writes a row after the one that it refers to, whatever is written together', async () => {
    const second = application(`${name}-b`, { provider: new KeyOf('provider') })
    await there.apply([application(name), { ...oauth2(name), id: 'provider' }, second])
    const { provider } = await there.db.application.findUniqueOrThrow({
      where: { slug: `${name}-b` },
      include: { provider: true },
    })
    expect(provider).toMatchObject({ name })
  })

  test('finds a row by its key, and can rename it', async () => {
    await there.apply([flow(name)])
    const pk = (await stored(name))?.pk
    await there.apply([{ identifiers: { pk: pk?.toUpperCase() }, attrs: { slug: `${name}-renamed` } }])
    expect(await stored(`${name}-renamed`)).toMatchObject({ pk })
  })

  test('a key without a row becomes the key of the new row', async () => {
    const pk = '6f7e0000-0000-4000-8000-00000000abcd'
    await there.apply([{ ...flow(name), identifiers: { pk }, attrs: { ...flow(name).attrs, slug: name } }])
    expect(await stored(name)).toMatchObject({ pk })
  })

  test('a row is found by any of its identifiers, and gets the others', async () => {
    await there.apply([flow(name)])
    const pk = (await stored(name))?.pk
    await there.apply([{ ...flow(name), identifiers: { pk, slug: `${name}-b` } }])
    expect(await stored(`${name}-b`)).toMatchObject({ pk })
    expect(await stored(name)).toBeNull()
  })

  test('identifiers that find two rows are an error, which names both', async () => {
    await there.apply([flow(name), flow(`${name}-b`)])
    const pk = (await stored(name))?.pk
    const refusal = await there.refusal([{ ...flow(name), identifiers: { pk, slug: `${name}-b` } }])
    expect(refusal).toMatchObject({ reason: 'invalid' })
    expect(refusal.logs).toEqual([
      expect.stringMatching(
        /^rolled back: entries\.0: The identifiers match more than one flow: ".*" \(pk .*\) and ".*" \(pk .*\)\.$/,
      ),
    ])
    expect(refusal.logs[0]).toContain(`${JSON.stringify(`${name}-b`)} (pk `)
  })

  test('identifiers that match more than one row are an error', async () => {
    const twins = ['a', 'b'].map((managed) => ({
      ...{ pk: randomUUID(), name, kind: 'oauth2' },
      managed: name + managed,
    }))
    await there.db.propertyMapping.createMany({ data: twins })
    const mapping = { model: 'service_mappings.propertymapping', identifiers: { name, kind: 'oauth2' } }
    expect(await there.refusal([mapping])).toMatchObject({
      reason: 'invalid',
      logs: [expect.stringMatching(/^rolled back: entries\.0: The identifiers match more than one property mapping: /)],
    })
  })
})

describe('state created', () => {
  const created = (attrs = {}): Partial<Entry> => ({ ...flow(name, attrs), state: 'created' })

  test('creates a row once, and does not change an existing one', async () => {
    await there.apply([created({ title: 'First' })])
    const before = await versions(there.db)
    const { logs, audited } = await there.apply([created({ title: 'Second' })])
    expect(logs).toEqual([`flow "${name}" left as it is`])
    expect(audited).toEqual([])
    expect(await versions(there.db)).toEqual(before)
    expect(await stored(name)).toMatchObject({ title: 'First' })
  })

  test('later entries can refer to its key in both cases', async () => {
    const both = [{ ...created(), id: 'flow' }, oauth2(name, { authorization_flow: new KeyOf('flow') })]
    await there.apply(both)
    const { logs } = await there.apply(both)
    expect(logs[1]).toBe(`provider oauth2 "${name}" unchanged`)
  })
})

test('state must_created creates a row, and refuses an existing one', async () => {
  const entry: Partial<Entry> = { ...flow(name), state: 'must_created' }
  await there.apply([entry])
  expect(await there.refusal([entry])).toMatchObject({
    reason: 'invalid',
    logs: [`rolled back: entries.0: flow "${name}" is there already.`],
  })
})

describe('state absent', () => {
  const absent = (entry: Partial<Entry>): Partial<Entry> => ({ ...entry, state: 'absent', attrs: {} })

  test('deletes the row', async () => {
    await there.apply([flow(name)])
    const pk = (await stored(name))?.pk
    const { logs, audited } = await there.apply([absent(flow(name))])
    expect(logs).toEqual([`flow "${name}" deleted (pk ${pk})`])
    const object = { name, was: null, owner: null, change: 0, fields: {} }
    expect(audited).toEqual([{ model: 'service_flows.flow', key: pk, action: 'delete', fields: [], object }])
    expect(await stored(name)).toBeNull()
  })

  test('does nothing when the row does not exist', async () => {
    expect(await there.apply([absent(flow(name))])).toMatchObject({
      logs: [`flow "${name}" was not there`],
      audited: [],
    })
  })

  test('is refused while another row refers to the row', async () => {
    await there.apply([{ ...flow(name), id: 'flow' }, oauth2(name, { authorization_flow: new KeyOf('flow') })])
    const refusal = await there.refusal([absent(flow(name))])
    expect(refusal).toMatchObject({
      reason: 'invalid',
      logs: [
        `rolled back: entries.0: flow "${name}" is the authorization_flow of provider oauth2 "${name}": change or delete that first.`,
      ],
    })
    expect(await stored(name)).not.toBeNull()
  })

  test('is refused while a setting refers to the row', async () => {
    const group: Partial<Entry> = { model: 'service_core.group', identifiers: { name }, id: 'group' }
    await there.apply([group, scim(name, { filter_group: new KeyOf('group') })])
    expect(await there.refusal([absent(group)])).toMatchObject({ reason: 'invalid' })
    await there.apply([scim(name, { filter_group: null }), absent(group)])
    expect(await there.db.group.count({ where: { name } })).toBe(0)
  })

  test('later entries cannot refer to a deleted row, or to one that never existed', async () => {
    const gone = { ...absent(flow(name)), id: 'flow' }
    const user = oauth2(name, { authentication_flow: new KeyOf('flow') })
    const why = {
      reason: 'invalid',
      logs: ['rolled back: entries.1.authentication_flow: !KeyOf flow names an entry that is absent: it has no key.'],
    }
    expect(await there.refusal([gone, user])).toMatchObject(why)
    await there.apply([flow(name)])
    expect(await there.refusal([gone, user])).toMatchObject(why)
    expect(await stored(name)).not.toBeNull()
  })
})

describe('!Find', () => {
  const finding = (identifiers: Record<string, unknown>, model = 'service_flows.flow') => [
    oauth2(name, { authentication_flow: new Find(model, identifiers) }),
  ]

  test('finds one row by its natural key', async () => {
    await there.apply(finding({ slug: 'default-authentication' }))
    expect(await there.db.provider.findUnique({ where: { name } })).toMatchObject({
      authenticationFlowPk: '6f7e0000-0000-4000-8000-000000000101',
    })
  })

  test('finds a row that an earlier entry created', async () => {
    await there.apply([flow(name, { designation: 'authentication' }), ...finding({ slug: name })])
    expect(await there.db.provider.findUnique({ where: { name } })).toMatchObject({
      authenticationFlowPk: (await stored(name))?.pk,
    })
  })

  test.each<[string, Record<string, unknown>, string]>([
    ['none', { slug: 'nothing' }, 'finds nothing.'],
    ['many', { designation: 'authorization' }, 'finds more than one row.'],
    ['a value of another type', { slug: 5 }, 'finds nothing.'],
    ['a malformed key', { pk: 'x' }, 'finds nothing.'],
    ['SQL', { slug: "' OR true --" }, 'finds nothing.'],
    ['an unknown field', { slugg: 'x' }, "each field must be one of the model's own."],
    ['no field', {}, "each field must be one of the model's own."],
  ])('of %s is an error', async (_, identifiers, why) => {
    const { reason, logs } = await there.refusal(finding(identifiers))
    expect(reason).toBe('invalid')
    expect(logs).toEqual([expect.stringContaining(`entries.0.authentication_flow: !Find service_flows.flow`)])
    expect(logs[0]).toContain(why)
  })

  test('with a provider kind finds rows of that kind only', async () => {
    await there.apply([scim(name)])
    const find = (model: string) => there.apply([application(name, { provider: new Find(model, { name }) })])
    await expect(find('service_providers_oauth2.oauth2provider')).rejects.toMatchObject({
      logs: [expect.stringContaining('finds nothing')],
    })
    await find('service_providers_scim.scimprovider')
  })
})

test('the name of a row of another kind is refused in every state', async () => {
  await there.apply([scim(name)])
  for (const state of ['present', 'created', 'must_created', 'absent'] as const) {
    const { logs } = await there.refusal([{ ...oauth2(name), state }])
    expect(logs).toEqual([`rolled back: entries.0.name: "${name}" is the name of a provider scim: choose another.`])
  }
})

test('an error in the last entry rolls back all entries', async () => {
  const before = [await counts(there.db), await versions(there.db)]
  const { logs } = await there.refusal([
    flow(name),
    { identifiers: { slug: 'default-authentication' }, attrs: { title: 'Changed' } },
    oauth2(name, { property_mappings: [...shipped.mappings] }),
    application(name, { backchannel_providers: [999_999] }),
  ])
  expect(logs).toEqual([
    'rolled back: entries.3.backchannel_providers.0: There is no backchannel provider with the key 999999.',
  ])
  expect([await counts(there.db), await versions(there.db)]).toEqual(before)
})

test('applying a parsed document does not change it, so that it can be applied twice', async () => {
  const freeze = <Value>(value: Value): Value => {
    if (typeof value === 'object' && value !== null) Object.values(Object.freeze(value)).forEach(freeze)
    return value
  }
  const frozen = freeze([
    { ...flow(name), id: 'flow' },
    oauth2(name, {
      authorization_flow: new KeyOf('flow'),
      redirect_uris: [{ matching_mode: 'strict', url: 'https://example.com' }],
    }),
  ])
  await there.apply(frozen)
  expect((await there.apply(frozen)).logs).toEqual([`flow "${name}" unchanged`, `provider oauth2 "${name}" unchanged`])
})
