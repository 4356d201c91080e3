import { describe, expect, test } from 'vitest'
import { check } from '../../src/apply/check.ts'
import { type EngineReader, reader } from '../../src/db/engine-tx.ts'
import { type Entry, Find, KeyOf } from '../../src/document/document.ts'
import { system } from '../../src/permissions.ts'
import { compile } from '../../src/plan/compile.ts'
import { unconditional } from '../../src/plan/engine.ts'
import { people } from '../rights/people.ts'
import { aGroup, aRole, counts, name, versions } from '../support/kit.ts'
import { application, bench, flow, oauth2, scim } from './engine.ts'

/** The checks of the API before it enqueues. The worker repeats them, so each test covers both. */

const there = await bench()

/** A user who holds these permissions and no others. */
const holder = (...permissions: string[]) => people(there).user({ permissions })

test('it reports the errors of all entries at once, and writes nothing', async () => {
  await there.apply([scim(name), oauth2(`${name}-b`, { client_id: `id-${name}` })])
  const before = [await counts(there.db), await versions(there.db)]
  const asked = there.check([
    { ...oauth2(name, { client_id: `id-${name}`, sub_mode: 'x' }), id: 'provider' },
    application(name, { provider: new KeyOf('provider'), backchannel_providers: [999, 998], nam: 1 }),
    flow('no slug', { name: '' }),
    { ...oauth2('without a flow'), attrs: { signing_key: '6f7e0000-0000-4000-8000-00000000ffff' } },
  ])
  await expect(asked).rejects.toMatchObject({
    code: 'invalid',
    fields: {
      entries: {
        0: {
          name: [`"${name}" is the name of a provider scim: choose another.`],
          client_id: [`"id-${name}" is taken by provider oauth2 "${name}-b".`],
          sub_mode: [expect.stringContaining('Must be one of: hashed_user_id')],
        },
        1: {
          nam: ['Unknown field. Did you mean name?'],
          backchannel_providers: {
            0: ['There is no backchannel provider with the key 999.'],
            1: ['There is no backchannel provider with the key 998.'],
          },
        },
        2: { slug: ['May hold only letters, digits, hyphens and underscores.'], name: ['May not be empty.'] },
        3: {
          authorization_flow: ['This field is required.'],
          signing_key: ['There is no certificatekeypair with the key 6f7e0000-0000-4000-8000-00000000ffff.'],
        },
      },
    },
  })
  expect([await counts(there.db), await versions(there.db)]).toEqual(before)
})

test.each(['constructor', '__proto__', 'toString'])('an entry may have the id %s', async (id) => {
  await expect(there.check([{ ...flow(name), id }])).resolves.toHaveLength(1)
  const { logs } = await there.apply([{ ...flow(name), id }])
  expect(logs).toEqual([expect.stringContaining('created')])
})

describe('errors of rules are reported together with errors that need the database', () => {
  const none = '6f7e0000-0000-4000-8000-00000000ffff'
  const pair = (attrs: Record<string, unknown>) => ({
    model: 'service_crypto.certificatekeypair',
    identifiers: { name },
    attrs,
  })

  test.each(['new', 'there'])('of a row that is %s, in the same words as the worker', async (which) => {
    if (which === 'there') await there.apply([oauth2(name)])
    const entries = [oauth2(name, { client_secret: '', signing_key: none })]
    const missing = `There is no certificatekeypair with the key ${none}.`
    const empty = 'May not be empty when client_type is confidential.'
    await expect(there.check(entries)).rejects.toMatchObject({
      fields: { entries: { 0: { signing_key: [missing], client_secret: [empty] } } },
    })
    expect(await there.refusal(entries)).toMatchObject({
      reason: 'invalid',
      logs: [
        'rolled back, for these reasons:',
        `entries.0.signing_key: ${missing}`,
        `entries.0.client_secret: ${empty}`,
      ],
    })
  })

  test('but not for fields that the service would generate', async () => {
    await expect(there.check([{ ...pair({ key_data: null }), identifiers: { name: '' } }])).rejects.toHaveProperty(
      'fields',
      { entries: { 0: { name: ['May not be empty.'] } } },
    )
  })

  test('nor for a field that has an error of its own', async () => {
    await there.apply([pair({})])
    await expect(there.check([pair({ certificate_data: 'x' })])).rejects.toMatchObject({
      fields: { entries: { 0: { certificate_data: [expect.stringMatching(/^Must be a certificate in PEM form/)] } } },
    })
  })

  test.each([
    ['its own', 'add_oauth2provider', (taken: string) => oauth2(taken)],
    ["another kind's", 'change_oauth2provider', (taken: string) => scim(taken)],
  ])(
    'a caller without the permission gets none of them: the name is %s, and the caller may only %s',
    async (_, permission, entry) => {
      await there.apply([entry(name)])
      const entries = [oauth2(name, { signing_key: none })]
      await expect(there.check(entries, await holder(permission))).rejects.toMatchObject({ code: 'permission_denied' })
      expect(await there.refusal(entries, await holder(permission))).toMatchObject({ reason: 'permission_denied' })
    },
  )
})

test('a key without a row is reported with its index, also after the key of a pending row', async () => {
  const group = (attrs: Record<string, unknown>) => aGroup(name, attrs)
  const role = { ...aRole(name), id: 'role' }
  const none = '6f7e0000-0000-4000-8000-00000000ffff'
  await expect(there.check([role, group({ roles: [new KeyOf('role'), 'x', none] })])).rejects.toMatchObject({
    fields: {
      entries: { 1: { roles: { 1: ['No role is called "x".'], 2: [`There is no role with the key ${none}.`] } } },
    },
  })
})

test('an apply does what the check found', async () => {
  await there.apply([flow(`${name}-there`), flow(`${name}-other`)])
  const entries = [
    flow(`${name}-there`),
    flow(`${name}-other`, { title: 'T' }),
    flow(name),
    { ...flow('x'), state: 'absent' as const },
  ]
  const findings = await there.check(entries)
  expect(findings.map(({ action, changed }) => [action, action === 'update' ? changed : []])).toEqual([
    ['unchanged', []],
    ['update', ['title']],
    ['create', []],
    ['leave', []],
  ])
  const { logs } = await there.apply(entries)
  expect(logs.map((line) => line.replace(/^flow "[^"]*" /, '').replace(/ \(pk .*/, ''))).toEqual([
    'unchanged',
    'updated: title "" -> "T"',
    'created',
    'was not there',
  ])
})

describe('an entry needs the permission for its action', () => {
  const cases = [
    ['create', 'add_flow', 'new', { attrs: {} }],
    ['update', 'change_flow', 'there', { attrs: { title: 'T' } }],
    // The answer that nothing differs reveals the row's values.
    ['update', 'change_flow', 'there', { attrs: {} }],
    ['delete', 'delete_flow', 'there', { state: 'absent' }],
  ] as const

  test.each(cases)(
    '%s: %s',
    async (action, permission, where, { attrs = {}, ...changes }: { attrs?: object; state?: 'absent' }) => {
      if (where === 'there') await there.apply([flow(name)])
      const entries = [{ ...flow(name, { ...attrs }), ...changes }]
      const others = await holder(
        ...['view_flow', 'add_flow', 'change_flow', 'delete_flow', 'change_scimprovider'].filter(
          (each) => each !== permission,
        ),
      )
      const why = `${action} flow "${name}": the permission ${permission} is missing`
      await expect(there.check(entries, others)).rejects.toMatchObject({
        code: 'permission_denied',
        message: `You may not ${why}.`,
      })
      expect(await there.refusal(entries, others)).toMatchObject({
        reason: 'permission_denied',
        logs: [`rolled back: ${others.username} may not ${why}`],
      })
      await there.check(entries, await holder(permission))
      await there.apply(entries, await holder(permission))
    },
  )

  test.each([
    ['absent', 'delete_flow', 'missing'],
    ['created', 'add_flow', 'there'],
  ] as const)('in state %s: %s, although the row is %s: the log says so', async (state, permission, where) => {
    if (where === 'there') await there.apply([flow(name)])
    const entries = [{ ...flow(name), state }]
    const others = ['view_flow', 'add_flow', 'change_flow', 'delete_flow'].filter((each) => each !== permission)
    await expect(there.check(entries, await holder(...others))).rejects.toMatchObject({ code: 'permission_denied' })
    await there.check(entries, await holder(permission))
  })

  test('each entry needs its own: one missing permission refuses the document', async () => {
    const entries = [flow(name), oauth2(name)]
    await expect(
      there.check(entries, await holder('add_flow', 'change_oauth2provider', 'add_scimprovider')),
    ).rejects.toMatchObject({ code: 'permission_denied' })
    // The others follow from the same mistake.
    await expect(there.check(entries, await holder())).rejects.toMatchObject({
      message: `You may not write flow "${name}": the permission add_flow, change_flow or delete_flow is missing.`,
    })
    await there.refusal(entries, await holder('add_flow'))
    expect(await there.db.flow.count({ where: { slug: name } })).toBe(0)
    await there.apply(entries, await holder('add_flow', 'add_oauth2provider'))
  })

  test('a denial comes before errors, and reports nothing else', async () => {
    await expect(there.check([flow(name, { designation: 'x' })], await holder())).rejects.toMatchObject({
      code: 'permission_denied',
      fields: undefined,
    })
    const unknown = oauth2(name, { authorization_flow: '6f7e0000-0000-4000-8000-00000000ffff' })
    expect(await there.refusal([unknown], await holder())).toMatchObject({ reason: 'permission_denied' })
  })
})

describe('conditions', () => {
  const noFlow = oauth2('', { authorization_flow: '6f7e0000-0000-4000-8000-00000000ffff' })
  const entry = (...conditions: unknown[]) => ({ ...noFlow, identifiers: { name }, conditions })

  test('one false condition of several skips the entry', async () => {
    const { logs } = await there.apply([entry(true, false, true)])
    expect(logs).toEqual([expect.stringContaining('skipped: its conditions are false')])
  })

  test('a condition sees what earlier entries write', async () => {
    const top = { ...aGroup(name), id: 'top' }
    const child = aGroup(`${name}-b`, { parent: new KeyOf('top') })
    const below = new Find('service_core.group', { parent: new KeyOf('top') })
    await there.check([top, entry(below)])
    await expect(there.check([top, child, entry(below)])).rejects.toMatchObject({ code: 'invalid' })
  })

  test('a condition that finds several rows is an error', async () => {
    const same = { name: `Flow ${name}` }
    await there.apply([flow(`${name}-a`, same), flow(`${name}-b`, same)])
    await expect(there.check([entry(new Find('service_flows.flow', same))])).rejects.toMatchObject({
      fields: { entries: { 0: { conditions: [expect.stringContaining('finds more than one row')] } } },
    })
  })
})

describe('create only', () => {
  const createOnly = { createOnly: true }

  test('refuses when any row exists, and writes nothing', async () => {
    await there.apply([oauth2(name)])
    const entries = [flow(name), oauth2(name)]
    await expect(there.check(entries, undefined, createOnly)).rejects.toMatchObject({
      code: 'precondition_failed',
      message: `provider oauth2 "${name}" is there already, and If-None-Match: * allows only to create.`,
    })
    expect(await there.refusal(entries, undefined, createOnly)).toMatchObject({ reason: 'precondition_failed' })
    expect(await there.db.flow.count({ where: { slug: name } })).toBe(0)
  })

  test('refuses the name of a row of another kind as well', async () => {
    await there.apply([scim(name)])
    await expect(there.check([oauth2(name)], undefined, createOnly)).rejects.toMatchObject({
      code: 'precondition_failed',
    })
    expect(await there.refusal([oauth2(name)], undefined, createOnly)).toMatchObject({ reason: 'precondition_failed' })
  })

  test('a document with errors gets those errors first', async () => {
    await there.apply([flow(name)])
    await expect(there.check([flow(name, { designation: 'x' })], undefined, createOnly)).rejects.toMatchObject({
      code: 'invalid',
    })
  })

  test('creates rows that do not exist', async () => {
    expect((await there.apply([flow(name)], undefined, createOnly)).audited).toHaveLength(1)
  })
})

test('an expected key must be the key of the row', async () => {
  const entries = [{ ...oauth2(name), id: 'provider' }]
  const expecting = (key: number) => ({ expectedKeys: { provider: key } })
  await expect(there.check(entries, undefined, expecting(1))).rejects.toMatchObject({
    fields: {
      app: {
        provider: [
          `The submission's provider oauth2 "${name}" is not there yet: leave this field out, or send its key.`,
        ],
      },
    },
  })
  await there.apply(entries)
  const { pk } = await there.db.provider.findUniqueOrThrow({ where: { name } })
  await there.check(entries, undefined, expecting(pk))
  await expect(there.check(entries, undefined, expecting(pk + 1))).rejects.toMatchObject({
    fields: { app: { provider: [expect.stringContaining(`has the key ${pk}`)] } },
  })
  expect(await there.refusal(entries, undefined, expecting(pk + 1))).toMatchObject({
    reason: 'invalid',
    logs: [expect.stringContaining(`has the key ${pk}`)],
  })
})

test('a row that goes away between two reads of a check is no error', async () => {
  const names = Array.from({ length: 300 }, (_, index) => `${name}-${index}`)
  // Portions are read ahead: all providers are in earlier ones than their applications.
  const entries = [
    ...names.map((each) => ({ ...scim(each), id: each })),
    ...names.map((each) => application(each, { provider: new KeyOf(each) })),
  ]
  const registry = there.engine.registry
  const whole = entries.map((entry) => ({ state: 'present', identifiers: {}, attrs: {}, ...entry }) as Entry)
  const plan = compile({ version: 1, metadata: { name: 'race' }, entries: whole }, registry, (_, index) => [index])
  const real = reader(there.db)
  let reads = 0
  for (let before = 1; before <= Math.max(reads, 4); before += 1) {
    await there.apply(entries)
    reads = 0
    const racing: EngineReader = {
      ...real,
      query: async (row, statement) => {
        reads += 1
        if (reads === before) {
          // The same as a DELETE of each application with its provider.
          await there.db.application.deleteMany({ where: { slug: { in: names } } })
          await there.db.provider.deleteMany({ where: { name: { in: names } } })
        }
        return real.query(row, statement)
      },
    }
    await expect(check(racing, there.engine, plan, system, unconditional)).resolves.toHaveLength(600)
    await there.db.application.deleteMany({ where: { slug: { in: names } } })
    await there.db.provider.deleteMany({ where: { name: { in: names } } })
  }
  expect(reads).toBeGreaterThan(1)
})
