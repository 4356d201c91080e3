import { describe, expect, test } from 'vitest'
import type { Entry } from '../../src/document/document.ts'
import { toValues } from '../../src/plan/storage.ts'
import { aGroup, aProvider, name } from '../support/kit.ts'
import { bench, oauth2, scim, shipped } from './engine.ts'

/**
 * Values with a meaning of their own: null for a default, `{"generate": true}` for a new one, `{"create": ...}` for a new row
 * only, and secrets that are short.
 */

const there = await bench()

/** The provider as it is stored, with secrets opened. */
async function stored(): Promise<Record<string, unknown>> {
  const { pk, uuid, settings, secrets, oauth2ClientId } = await there.db.provider.findUniqueOrThrow({ where: { name } })
  const model = there.engine.registry.byName('service_providers_oauth2.oauth2provider')
  if (model === undefined) throw new Error('no such model')
  return toValues(model, { pk, uuid, settings, secrets, oauth2_client_id: oauth2ClientId }, there.engine.keyring)
}

describe('null', () => {
  const group = (attrs: Record<string, unknown>): Partial<Entry> => aGroup(name, attrs)

  test('puts fields back to their defaults, and plans say so', async () => {
    const set = { sub_mode: 'user_email', include_claims_in_id_token: false, property_mappings: shipped.mappings }
    await there.apply([oauth2(name, { ...set, redirect_uris: 'https://a.example/cb', signing_key: shipped.keyPair })])
    const none = Object.fromEntries([...Object.keys(set), 'redirect_uris', 'signing_key'].map((field) => [field, null]))
    const cleared = [oauth2(name, none)]
    await there.check(cleared)
    const { changes } = await there.apply(cleared)
    expect(changes[0]?.fields).toEqual({
      property_mappings: { from: expect.arrayContaining(['gatewright/oauth2/scope-email']), to: [] },
      signing_key: { from: 'Gatewright self-signed', to: null },
      redirect_uris: { from: [{ matching_mode: 'strict', url: 'https://a.example/cb' }], to: [] },
      sub_mode: { from: 'user_email', to: 'hashed_user_id' },
      include_claims_in_id_token: { from: false, to: true },
    })
    expect((await there.apply(cleared)).logs[0]).toContain('unchanged')
  })

  test('of a new row is the default', async () => {
    await there.apply([group({ attributes: null, users: null, is_superuser: null, parent: null })])
    expect(await there.db.group.findUnique({ where: { name } })).toMatchObject({ attributes: {}, isSuperuser: false })
  })

  test.each([
    ['a required field', { authorization_flow: null }, 'authorization_flow: Must be a UUID.'],
    [
      'a generated field',
      { client_secret: null },
      'client_secret: May not be null: leave this field out to keep it, or send {"generate": true} for a new one.',
    ],
  ])('is an error of %s', async (_, attrs, message) => {
    await there.apply([oauth2(name)])
    const before = await stored()
    expect((await there.refusal([oauth2(name, attrs)])).logs).toEqual([`rolled back: entries.0.${message}`])
    expect(await stored()).toEqual(before)
  })

  test('is an error of an identifier', async () => {
    const { logs } = await there.refusal([{ ...group({}), identifiers: { name: null } }])
    expect(logs).toEqual(['rolled back: entries.0.name: Must be text.'])
  })
})

describe('{"generate": true}', () => {
  const asked = { client_secret: { generate: true }, client_id: { generate: true } }

  test('makes a new value each time, which is shown as generated only', async () => {
    const { generated } = await there.apply([{ ...oauth2(name, asked), id: 'p' }])
    expect(generated).toEqual({
      p: { client_id: expect.any(String), client_secret: expect.stringMatching(/^\w{128}$/) },
    })
    expect(await stored()).toMatchObject(generated.p ?? {})
    const { changes, logs, ...again } = await there.apply([oauth2(name, asked)])
    const made = again.generated[`provider oauth2 "${name}"`]
    expect(made?.client_secret).not.toBe(generated.p?.client_secret)
    expect(await stored()).toMatchObject(made ?? { none: true })
    expect(changes[0]?.fields).toEqual({
      client_id: { from: generated.p?.client_id, to: { set_by_server: true } },
      client_secret: 'changed',
    })
    expect(JSON.stringify([changes, logs])).not.toContain(made?.client_secret)
    expect(logs).toHaveLength(1)
  })

  test('leaves a row alone that is only to be created', async () => {
    await there.apply([oauth2(name)])
    const before = await stored()
    const { generated } = await there.apply([{ ...oauth2(name, asked), state: 'created' }])
    expect([generated, await stored()]).toEqual([{}, before])
  })

  test.each([
    ['a field that is not generated', { sub_mode: { generate: true } }],
    ['false', { client_secret: { generate: false } }],
    ['more than that', { client_secret: { generate: true, length: 5 } }],
  ])('not of %s', async (_, attrs) => {
    expect((await there.refusal([oauth2(name, attrs)])).reason).toBe('invalid')
  })
})

describe('a secret that was lost with its SECRET_KEY', () => {
  const lose = () => there.db.provider.updateMany({ where: { name }, data: { secrets: {} } })

  test('is generated when a document does not send it, and reported as for a new row', async () => {
    await there.apply([oauth2(name)])
    await lose()
    const before = await stored()
    expect(before.client_secret).toBe(null)
    await there.check([oauth2(name)])
    const { generated, changes, logs } = await there.apply([{ ...oauth2(name), id: 'p' }])
    expect(generated).toEqual({ p: { client_secret: expect.stringMatching(/^\w{128}$/) } })
    expect(await stored()).toEqual({ ...before, ...generated.p })
    expect(changes).toMatchObject([{ action: 'update', fields: { client_secret: 'changed' } }])
    expect(logs).toEqual([expect.stringContaining('client_secret changed (generated: it was lost)')])
    expect((await there.apply([oauth2(name)])).logs).toEqual([expect.stringContaining('unchanged')])
  })

  test('is set by a document that has it for a new row', async () => {
    await there.apply([oauth2(name)])
    await lose()
    await there.apply([oauth2(name, { client_secret: { create: 'a secret that is long enough' } })])
    expect(await stored()).toMatchObject({ client_secret: 'a secret that is long enough' })
  })

  test('is required when it is never generated', async () => {
    await there.apply([scim(name)])
    await lose()
    const without = { ...scim(name), attrs: { url: 'https://other.example/scim' } }
    expect((await there.refusal([without])).logs).toEqual([
      'rolled back: entries.0.token: This field is required: its value was lost.',
    ])
    expect((await there.apply([scim(name)])).logs).toEqual([expect.stringContaining('token changed')])
    expect((await there.apply([without])).changes).toMatchObject([{ action: 'update' }])
  })
})

describe('{"create": ...}', () => {
  const first = 'the first secret of the client'
  const rotated = 'the secret after its rotation'
  const asked = (create: unknown, others: Record<string, unknown> = {}) =>
    oauth2(name, { client_secret: { create }, ...others })

  test('is the secret of a new row', async () => {
    await there.check([asked(first)])
    const { changes, logs, generated } = await there.apply([asked(first)])
    expect(await stored()).toMatchObject({ client_secret: first })
    expect(changes[0]).toMatchObject({ action: 'create', fields: { client_secret: 'changed' } })
    expect(Object.values(generated).flatMap(Object.keys)).toEqual(['client_id'])
    expect(JSON.stringify([changes, logs])).not.toContain(first)
  })

  test('leaves that of a row that is there as it is', async () => {
    await there.apply([asked(first)])
    await there.apply([oauth2(name, { client_secret: rotated })])
    for (const sent of [first, rotated, 'another secret of the client']) {
      const { changes, logs, generated, audited } = await there.apply([asked(sent)])
      expect(logs).toEqual([`provider oauth2 "${name}" unchanged`])
      expect(changes).toMatchObject([{ action: 'unchanged', fields: {} }])
      expect([generated, audited]).toEqual([{}, []])
    }
    expect(await stored()).toMatchObject({ client_secret: rotated })
  })

  test('nor is it changed with other fields', async () => {
    await there.apply([asked(first)])
    await there.apply([oauth2(name, { client_secret: { value: rotated, overlap: 'hours=1' } })])
    const { changes } = await there.apply([asked(first, { sub_mode: 'user_email' })])
    expect(Object.keys(changes[0]?.fields ?? {})).toEqual(['sub_mode'])
    const { secrets } = await there.db.provider.findUniqueOrThrow({ where: { name } })
    expect(Object.keys(Object(secrets)).sort()).toEqual(['client_secret', 'previous_client_secret'])
    expect(await stored()).toMatchObject({ client_secret: rotated })
  })

  test('in one document, an entry that comes later finds the row of an earlier one', async () => {
    await there.apply([asked(first), { ...asked(rotated), conditions: [true] }])
    expect(await stored()).toMatchObject({ client_secret: first })
  })

  test('a row that was deleted is new', async () => {
    await there.apply([asked(first)])
    await there.apply([
      { ...oauth2(name), attrs: {}, state: 'absent' },
      { ...asked(rotated), conditions: [true] },
    ])
    expect(await stored()).toMatchObject({ client_secret: rotated })
  })

  test('takes each secret field, and objects', async () => {
    const credentials = { create: { client_email: 'x' } }
    const account = { delegated_subject: 'a@b.example', default_group_email_domain: 'b.example' }
    await there.apply([scim(name, { token: { create: first } })])
    expect((await there.apply([scim(name, { token: { create: rotated } })])).logs[0]).toMatch(/unchanged$/)
    const synced = (value: unknown): Partial<Entry> =>
      aProvider('workspace_sync_a', `${name}-sync`, { ...account, credentials: value })
    await there.apply([synced(credentials)])
    const { changes } = await there.apply([synced(credentials.create)])
    expect(changes[0]?.fields).toEqual({ credentials: 'unchanged' })
  })

  test('without a value, of a variable that is not set: what stands keeps its own, and nothing new is made', async () => {
    const unset = asked({ env: 'NAME' })
    const why = expect.stringContaining('client_secret: NAME is not set, and there is no value that could stay.')
    expect((await there.refusal([unset])).logs).toEqual([why])
    expect((await there.refusal([{ ...unset, state: 'created' }])).logs).toEqual([why])
    expect((await there.apply([{ ...unset, state: 'absent' }])).logs[0]).toContain(name)
    await there.apply([asked(first), { ...unset, conditions: [true] }])
    await there.apply([unset])
    expect(await stored()).toMatchObject({ client_secret: first })
  })

  test('warns of a short one where it is set', async () => {
    expect((await there.apply([asked('short')])).logs[1]).toMatch(/^warning: the sent client_secret of /)
    expect((await there.apply([asked('brief')])).logs).toEqual([`provider oauth2 "${name}" unchanged`])
  })

  test.each([
    ['a field that is no secret', { sub_mode: { create: 'user_email' } }, 'sub_mode: Must be one of: '],
    ['a wrong value', { client_secret: { create: 5 } }, 'client_secret: Must be text.'],
    ['null', { client_secret: { create: null } }, 'client_secret: Must be text.'],
    ['more than that', { client_secret: { create: first, length: 5 } }, 'client_secret: Must be text.'],
    ['an overlap', { client_secret: { create: first, overlap: 'hours=1' } }, 'client_secret: Takes either "generate"'],
  ])('not of %s, whether the row is there or not', async (_, attrs, message) => {
    const refused = async () => (await there.refusal([oauth2(name, attrs)])).logs.join()
    const before = await refused()
    await there.apply([oauth2(name)])
    for (const log of [before, await refused()]) expect(log).toContain(`rolled back: entries.0.${message}`)
  })
})

describe('a short secret is applied, with a warning', () => {
  const warning = (field: string) =>
    `warning: the sent ${field} of provider oauth2 "${name}" has fewer than 20 characters`

  test.each([
    ['x'.repeat(19), true],
    ['x'.repeat(20), false],
    ['🔒'.repeat(19), true],
    ['🔒'.repeat(10) + 'x'.repeat(10), false],
  ])('%s: %s', async (client_secret, isShort) => {
    const { logs } = await there.apply([oauth2(name, { client_secret })])
    expect(logs.slice(1)).toEqual(isShort ? [warning('client_secret')] : [])
    expect(await stored()).toMatchObject({ client_secret })
    // Not for what stays as it is.
    expect((await there.apply([oauth2(name, { client_secret })])).logs).toEqual([`provider oauth2 "${name}" unchanged`])
    await there.apply([oauth2(name, { client_secret: 'y'.repeat(30) })])
    expect((await there.apply([oauth2(name, { client_secret })])).logs.slice(1)).toEqual(
      isShort ? [warning('client_secret')] : [],
    )
  })

  test('not for the empty secret of a public client, nor for a generated one', async () => {
    expect((await there.apply([oauth2(name, { client_type: 'public', client_secret: '' })])).logs).toHaveLength(1)
    expect((await there.apply([oauth2(`${name}-b`)])).logs).toHaveLength(1)
  })

  test('in every kind with a secret text', async () => {
    expect((await there.apply([scim(name, { token: 'short' })])).logs[1]).toBe(
      `warning: the sent token of provider scim "${name}" has fewer than 20 characters`,
    )
  })
})
