import { beforeEach, describe, expect, test } from 'vitest'
import { toValues } from '../../src/plan/storage.ts'
import { pairs } from '../support/key-pairs.ts'
import { answered, applied, applyPath, installation, name, named } from '../support/kit.ts'

/** A secret that was read is sent back, on every path: it stays, and no form of a mask is ever stored. */

const there = await installation()
const { apply, plan, runOf } = there.admin
const kept = { set: true }
const mask = '********'
const first = 'the first secret of the client'
const model = 'service_providers_oauth2.oauth2provider'
const of = (client_secret: unknown) => named('oauth2', name, { provider: { client_secret } })
const entry = (client_secret: unknown) => [{ model, identifiers: { name }, attrs: { client_secret } }]
const put = async (client_secret: unknown, path = applyPath) => there.admin.put(path, await of(client_secret))
const read = async () => Object((await answered(200, there.admin.get(`/api/v3/providers/oauth2/${name}/`))).json)
const warning = () =>
  `warning: the sent client_secret of provider oauth2 "${name}" is the mask of older versions, and the secret stays: send {"set": true}`
const unchanged = () => `provider oauth2 "${name}" unchanged`
const noSecret = 'There is no secret to keep: send one, or leave this field out.'

const row = () => there.db.provider.findUniqueOrThrow({ where: { name } })

async function secret(): Promise<unknown> {
  const { pk, uuid, settings, secrets } = await row()
  const registered = there.engine.registry.byName(model) ?? expect.fail()
  return toValues(registered, { pk, uuid, settings, secrets }, there.engine.keyring).client_secret
}

describe('of an object that is there', () => {
  beforeEach(async () => {
    await applied(put(first))
  })

  test('what was read is sent back, also beside a change', async () => {
    const found = await read()
    expect(found.client_secret).toEqual(kept)
    const { app, provider_model } = await of(first)
    const again = await applied(there.admin.put(applyPath, { app, provider_model, provider: found }))
    expect(again.logs).toEqual([unchanged(), `application "${name}" unchanged`])
    const changed = { ...found, sub_mode: 'user_email' }
    const { logs } = await applied(there.admin.put(applyPath, { app, provider_model, provider: changed }))
    expect(logs[0]).toMatch(/ updated: sub_mode "user_uuid" -> "user_email"$/)
    expect(await secret()).toBe(first)
  })

  test.each([
    ['itself', (of: unknown) => of],
    ['for a new object only', (create: unknown) => ({ create })],
    ['with an overlap', (value: unknown) => ({ value, overlap: 'hours=24' })],
  ])('each form, %s, changes nothing, and a plan says so', async (_, form) => {
    const before = await row()
    for (const [sent, more] of [
      [kept, []],
      [mask, [warning()]],
    ] as const) {
      const planned = await answered(200, put(form(sent), `${applyPath}?dry_run=true`))
      expect((await runOf(planned)).changes).toMatchObject([{ fields: {} }, { fields: {} }])
      const set = await there.admin.put('/api/v3/blueprints/', [await of(form(sent))])
      const answers = [
        planned,
        set,
        await put(form(sent)),
        await plan(entry(form(sent))),
        await apply(entry(form(sent))),
      ]
      for (const { status, logs } of answers)
        expect([status, logs.filter((line) => !line.startsWith('application'))]).toEqual([200, [unchanged(), ...more]])
    }
    expect(await row()).toEqual(before)
  })

  test.each([
    '!Context kept',
    '!If [true, !Context kept, other]',
    '!If [!Find [service_flows.flow, [slug, default-authentication]], !Context kept, other]',
    '!AtIndex [[!Context kept], 0]',
    '{ value: !Context kept, overlap: hours=1 }',
    '{ create: !Context kept }',
  ])('also as the value of %s', async (tag) => {
    const text = (context: string, value = tag) =>
      `version: 1\ncontext: { kept: ${context} }\nentries:\n  - model: ${model}\n    identifiers: { name: ${JSON.stringify(name)} }\n    attrs: { client_secret: ${value} }\n`
    expect((await applied(apply(text(`'${mask}'`)))).logs).toEqual([unchanged(), warning()])
    expect((await applied(apply(text('{ set: true }')))).logs).toEqual([unchanged()])
    const formatted = text("'****'", '!Format ["%s%s", !Context kept, !Context kept]')
    expect((await applied(apply(formatted))).logs).toEqual([unchanged(), warning()])
    expect(await secret()).toBe(first)
  })

  test('the document of a run is sent back as the run shows it, and applied again by its run', async () => {
    for (const sent of [first, { value: first, overlap: 'hours=1' }, { create: first }, mask, kept]) {
      const answer = await applied(put(sent))
      const { blueprint } = await runOf(answer)
      expect(blueprint).not.toContain(mask)
      expect(blueprint).toContain('set: true')
      const { logs } = await applied(apply(blueprint))
      expect(logs).toEqual([unchanged(), `application "${name}" unchanged`])
      await applied(there.admin.post(`${answer.run}apply/`))
      expect(await secret()).toBe(first)
    }
  })

  test('a caller who may not view it keeps it, too, and guesses nothing', async () => {
    const writer = await there.make.user({ permissions: ['change_oauth2provider'] })
    const ofAnother = `provider oauth2 "${name}" was made by another user`
    for (const [sent, more] of [
      [kept, []],
      [mask, [warning()]],
    ] as const)
      for (const ask of [writer.apply, writer.plan])
        expect(await ask(entry(sent))).toMatchObject({ status: 200, logs: [unchanged(), ...more, ofAnother] })
    expect(await secret()).toBe(first)
  })

  test('a former secret stays valid', async () => {
    await applied(put({ value: 'the second secret of the client', overlap: 'hours=24' }))
    const before = await read()
    expect(before.previous_client_secret).toEqual(kept)
    for (const sent of [kept, mask, { value: kept, overlap: 'hours=48' }]) await applied(put(sent))
    expect(await read()).toEqual(before)
    expect(await secret()).toBe('the second secret of the client')
  })

  test('one that was lost with its SECRET_KEY is no secret to keep', async () => {
    await there.db.provider.updateMany({ where: { name }, data: { secrets: {} } })
    for (const sent of [kept, mask])
      expect((await answered(400, put(sent))).errors).toEqual([
        { code: 'masked_secret', message: noSecret, pointer: '/provider/client_secret' },
      ])
  })

  test('an entry that only creates, or deletes, leaves it alone', async () => {
    const [one] = entry(mask)
    expect((await applied(apply([{ ...(one ?? expect.fail()), state: 'created' }]))).logs[0]).toMatch(/left as it is$/)
    expect(await secret()).toBe(first)
    const gone = { ...(one ?? expect.fail()), state: 'absent' }
    const application = { model: 'service_core.application', identifiers: { slug: name }, state: 'absent' }
    expect((await applied(apply([application, gone]))).logs.join()).not.toContain('warning')
  })
})

describe('of a new object', () => {
  test.each([
    kept,
    mask,
    { create: kept },
    { create: mask },
    { value: kept, overlap: 'hours=1' },
    { value: mask, overlap: 'hours=1' },
  ])('%j is refused: there is none', async (sent) => {
    const refused = await answered(400, put(sent))
    expect(refused.errors).toEqual([{ code: 'masked_secret', message: noSecret, pointer: '/provider/client_secret' }])
    expect(await there.db.provider.count({ where: { name } })).toBe(0)
  })

  test('a required one has no default', async () => {
    const body = await named('scim', name, { provider: { token: kept } })
    const { errors } = await answered(400, there.admin.put(applyPath, body))
    expect(errors).toMatchObject([{ code: 'masked_secret', message: 'There is no secret to keep: send one.' }])
  })

  test('an earlier entry of its document may have set it', async () => {
    await applied(put(first))
    const { provider } = await of(first)
    const { name: other, ...attrs } = { ...provider, name: `${name}-b`, client_id: `${name}-b` }
    const entries = [{ ...attrs, client_secret: first }, { client_secret: kept }].map((each, index) => ({
      ...{ model, identifiers: { name: other }, attrs: each },
      ...(index > 0 && { conditions: [true] }),
    }))
    expect((await applied(apply(entries))).logs[1]).toBe(`provider oauth2 "${other}" unchanged`)
  })
})

describe('of other types', () => {
  test('an object, also as its text; a mask inside of it is a placeholder', async () => {
    const google = (credentials: unknown) => named('workspace_sync_a', name, { provider: { credentials } })
    const sent = async (credentials: unknown) => there.admin.put(applyPath, await google(credentials))
    await applied(sent({ client_email: 'a@b.example', private_key: first }))
    const before = await row()
    for (const each of [kept, mask, JSON.stringify(kept)])
      expect((await applied(sent(each))).logs[0]).toMatch(/ unchanged$/)
    for (const each of [{ private_key: mask }, JSON.stringify({ private_key: mask })])
      expect((await answered(400, sent(each))).errors).toMatchObject([
        { code: 'invalid_value', pointer: '/provider/credentials/private_key' },
      ])
    expect(await row()).toEqual(before)
  })

  test('a private key that there is none of is none to keep', async () => {
    const pair = { model: 'service_crypto.certificatekeypair', identifiers: { name } }
    const { certificate_data } = pairs.ec
    await applied(apply([{ ...pair, attrs: { certificate_data } }]))
    const found = await there.admin.get(`/api/v3/crypto/certificatekeypairs/${name}/`)
    expect(found.json).toMatchObject({ key_data: null })
    expect((await applied(apply([{ ...pair, attrs: Object(found.json) }]))).logs[0]).toMatch(/ unchanged$/)
    const { errors } = await answered(400, apply([{ ...pair, attrs: { key_data: kept } }]))
    expect(errors).toEqual([{ code: 'masked_secret', message: noSecret, pointer: '/entries/0/attrs/key_data' }])
  })
})
