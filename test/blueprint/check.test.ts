import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { KeyOf } from '../../src/blueprint/document.ts'
import type { Actor } from '../../src/permissions.ts'
import { counts, versions } from '../support/contents.ts'
import { application, bench, flow, oauth2, scim } from './engine.ts'

/** What the API asks before it queues; the worker asks the same again, so each claim is made of both. */

const there = await bench()
let name: string
beforeEach(() => {
  name = randomUUID()
})

const holder = (...permissions: string[]): Actor => ({
  pk: 1,
  username: 'somebody',
  isSuperuser: false,
  permissions: new Set(permissions),
})

test('it tells the faults of all entries at once, and writes nothing', async () => {
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
          nam: ['Unknown member. Did you mean name?'],
          backchannel_providers: {
            0: ['There is no backchannel provider with the key 999.'],
            1: ['There is no backchannel provider with the key 998.'],
          },
        },
        2: { slug: ['May hold only letters, digits, hyphens and underscores.'], name: ['May not be empty.'] },
        3: {
          authorization_flow: ['This member is required.'],
          signing_key: ['There is no certificatekeypair with the key 6f7e0000-0000-4000-8000-00000000ffff.'],
        },
      },
    },
  })
  expect([await counts(there.db), await versions(there.db)]).toEqual(before)
})

test.each(['constructor', '__proto__', 'toString'])('an entry may be called %s', async (id) => {
  await expect(there.check([{ ...flow(name), id }])).resolves.toHaveLength(1)
  const { logs } = await there.apply([{ ...flow(name), id }])
  expect(logs).toEqual([expect.stringContaining('created')])
})

describe('rules that span members are told with the faults that only the database shows', () => {
  const none = '6f7e0000-0000-4000-8000-00000000ffff'
  const pair = (attrs: Record<string, unknown>) => ({
    model: 'service_crypto.certificatekeypair',
    identifiers: { name },
    attrs,
  })

  test.each(['new', 'there'])('of a row that is %s, in the words of the worker', async (which) => {
    if (which === 'there') await there.apply([oauth2(name)])
    const entries = [oauth2(name, { client_secret: '', signing_key: none })]
    const missing = `There is no certificatekeypair with the key ${none}.`
    const empty = 'May not be empty when client_type is confidential.'
    await expect(there.check(entries)).rejects.toMatchObject({
      fields: { entries: { 0: { signing_key: [missing], client_secret: [empty] } } },
    })
    expect(await there.refusal(entries)).toMatchObject({
      reason: 'invalid',
      logs: [`rolled back: entries.0.signing_key: ${missing}`, `rolled back: entries.0.client_secret: ${empty}`],
    })
  })

  test('but not of members that the service would still have made', async () => {
    await expect(there.check([{ ...pair({ key_data: null }), identifiers: { name: '' } }])).rejects.toHaveProperty(
      'fields',
      { entries: { 0: { name: ['May not be empty.'] } } },
    )
  })

  test('nor of a member that is wrong by itself', async () => {
    await there.apply([pair({})])
    await expect(there.check([pair({ certificate_data: 'x' })])).rejects.toMatchObject({
      fields: { entries: { 0: { certificate_data: [expect.stringMatching(/^Must be a certificate in PEM form/)] } } },
    })
  })

  test.each([
    ['its own', 'add_oauth2provider', (taken: string) => oauth2(taken)],
    ["another kind's", 'change_oauth2provider', (taken: string) => scim(taken)],
  ])('and who may not is told none of them: the name is %s, and he may only %s', async (_, permission, entry) => {
    await there.apply([entry(name)])
    const entries = [oauth2(name, { signing_key: none })]
    await expect(there.check(entries, holder(permission))).rejects.toMatchObject({ code: 'permission_denied' })
    expect(await there.refusal(entries, holder(permission))).toMatchObject({ reason: 'permission_denied' })
  })
})

test('a key that is not there is named at its place, also behind one that is yet to come', async () => {
  const group = (attrs: Record<string, unknown>) => ({ model: 'service_core.group', identifiers: { name }, attrs })
  const role = { model: 'service_rbac.role', id: 'role', identifiers: { name } }
  const none = '6f7e0000-0000-4000-8000-00000000ffff'
  await expect(there.check([role, group({ roles: [new KeyOf('role'), 'x', none] })])).rejects.toMatchObject({
    fields: { entries: { 1: { roles: { 1: ['Must be a UUID.'], 2: [`There is no role with the key ${none}.`] } } } },
  })
})

test('what it finds is what an apply does', async () => {
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
    'updated: title',
    'created',
    'was not there',
  ])
})

describe('an entry needs the permission for what it turns out to do', () => {
  const cases = [
    ['create', 'add_flow', 'new', { attrs: {} }],
    ['update', 'change_flow', 'there', { attrs: { title: 'T' } }],
    // To learn that nothing differs is to read.
    ['update', 'change_flow', 'there', { attrs: {} }],
    ['delete', 'delete_flow', 'there', { state: 'absent' }],
  ] as const

  test.each(cases)(
    '%s: %s',
    async (action, permission, where, { attrs = {}, ...changes }: { attrs?: object; state?: 'absent' }) => {
      if (where === 'there') await there.apply([flow(name)])
      const entries = [{ ...flow(name, { ...attrs }), ...changes }]
      const others = holder(
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
        logs: [`rolled back: somebody may not ${why}`],
      })
      await there.check(entries, holder(permission))
      await there.apply(entries, holder(permission))
    },
  )

  test('each entry its own: one that is missing refuses all', async () => {
    const entries = [flow(name), oauth2(name)]
    await expect(
      there.check(entries, holder('add_flow', 'change_oauth2provider', 'add_scimprovider')),
    ).rejects.toMatchObject({ code: 'permission_denied' })
    await there.refusal(entries, holder('add_flow'))
    expect(await there.db.prisma.flow.count({ where: { slug: name } })).toBe(0)
    await there.apply(entries, holder('add_flow', 'add_oauth2provider'))
  })

  test('a refusal comes before faults: it tells no more than that', async () => {
    await expect(there.check([flow(name, { designation: 'x' })], holder())).rejects.toMatchObject({
      code: 'permission_denied',
      fields: undefined,
    })
    const unknown = oauth2(name, { authorization_flow: '6f7e0000-0000-4000-8000-00000000ffff' })
    expect(await there.refusal([unknown], holder())).toMatchObject({ reason: 'permission_denied' })
  })
})

describe('create only', () => {
  const createOnly = { createOnly: true }

  test('refuses when any entry is there, and writes nothing', async () => {
    await there.apply([oauth2(name)])
    const entries = [flow(name), oauth2(name)]
    await expect(there.check(entries, undefined, createOnly)).rejects.toMatchObject({
      code: 'precondition_failed',
      message: `provider oauth2 "${name}" is there already, and If-None-Match: * allows only to create.`,
    })
    expect(await there.refusal(entries, undefined, createOnly)).toMatchObject({ reason: 'precondition_failed' })
    expect(await there.db.prisma.flow.count({ where: { slug: name } })).toBe(0)
  })

  test('refuses a name of another kind as well', async () => {
    await there.apply([scim(name)])
    await expect(there.check([oauth2(name)], undefined, createOnly)).rejects.toMatchObject({
      code: 'precondition_failed',
    })
    expect(await there.refusal([oauth2(name)], undefined, createOnly)).toMatchObject({ reason: 'precondition_failed' })
  })

  test('a broken document is told its faults first', async () => {
    await there.apply([flow(name)])
    await expect(there.check([flow(name, { designation: 'x' })], undefined, createOnly)).rejects.toMatchObject({
      code: 'invalid',
    })
  })

  test('creates what is not there', async () => {
    expect((await there.apply([flow(name)], undefined, createOnly)).changes).toHaveLength(1)
  })
})

test('a key that was said beforehand must be the key', async () => {
  const entries = [{ ...oauth2(name), id: 'provider' }]
  const said = (key: number) => ({ expectedKeys: { provider: key } })
  await expect(there.check(entries, undefined, said(1))).rejects.toMatchObject({
    fields: {
      app: {
        provider: [
          `The submission's provider oauth2 "${name}" is not there yet: leave this member out, or send its key.`,
        ],
      },
    },
  })
  await there.apply(entries)
  const { pk } = await there.db.prisma.provider.findUniqueOrThrow({ where: { name } })
  await there.check(entries, undefined, said(pk))
  await expect(there.check(entries, undefined, said(pk + 1))).rejects.toMatchObject({
    fields: { app: { provider: [expect.stringContaining(`has the key ${pk}`)] } },
  })
  expect(await there.refusal(entries, undefined, said(pk + 1))).toMatchObject({
    reason: 'invalid',
    logs: [expect.stringContaining(`has the key ${pk}`)],
  })
})
