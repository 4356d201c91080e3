import { describe, expect, test } from 'vitest'
import { type Entry, Find, KeyOf } from '../../src/document/document.ts'
import { application, bench, flow, oauth2, scim } from '../apply/engine.ts'
import { people } from '../rights/people.ts'
import { name } from '../support/name.ts'

/** Entries are read ahead together. One that an earlier entry affects sees what that one leaves. */

const there = await bench()
const crowd = people(there)

const of =
  (model: string) =>
  (identifiers: Entry['identifiers'], attrs: Entry['attrs'] = {}): Partial<Entry> => ({ model, identifiers, attrs })
const user = of('service_core.user')
const group = of('service_core.group')
const token = of('service_core.token')
const absent = (entry: Partial<Entry>): Partial<Entry> => ({ ...entry, state: 'absent', attrs: {} })
const idOf = async (of: string) => (await there.db.provider.findUniqueOrThrow({ where: { name: of } })).pk
/** It may say something else of a row than an earlier entry. */
const otherwise = (entry: Partial<Entry>): Partial<Entry> => ({ ...entry, conditions: [true] })
const last = async (...entries: Partial<Entry>[]) => (await there.apply(entries)).logs.at(-1)

/** The error of the last entry. */
async function error(...entries: Partial<Entry>[]): Promise<string> {
  const { reason, logs } = await there.refusal(entries)
  expect(reason).toBe('invalid')
  return logs.join()
}

describe('its row', () => {
  test('that an earlier entry creates', async () => {
    expect(await last(flow(name), otherwise(flow(name, { name: 'Other' })))).toContain('updated: name')
  })

  test('that an earlier entry creates, found by two fields', async () => {
    await there.apply([application(name)])
    const consent = of('service_core.userconsent')
    const by = { user: (await crowd.user()).username, application: name }
    expect(await last(consent(by), consent(by, { permissions: 'openid' }))).toContain('updated: permissions')
  })

  test('that an earlier entry finds by another identifier', async () => {
    await there.apply([flow(name, { name: 'Before' })])
    const { pk } = await there.db.flow.findUniqueOrThrow({ where: { slug: name } })
    const byKey = { identifiers: { pk }, attrs: { name: 'Before' } }
    expect(await last(flow(name, { name: 'After' }), otherwise(byKey))).toContain('updated: name "After" -> "Before"')
  })

  test('whose name an earlier entry takes from another', async () => {
    await there.apply([flow(name)])
    const renamed = { ...flow(`${name}-b`), was: name }
    expect(await last(renamed, otherwise(flow(name)))).toMatch(/^flow ".*" created/)
  })

  test('from the other side of a join table', async () => {
    const { pk, username, own } = await crowd.user()
    await there.apply([group({ name })])
    const leaves = user({ username }, { groups: [own] })
    expect(await last(group({ name }, { users: [pk] }), leaves)).toContain('updated: groups')
  })

  test('with members, that an earlier entry creates', async () => {
    const { pk } = await crowd.user()
    expect(await last(group({ name }), group({ name }, { users: [pk] }))).toContain('updated: users')
  })

  test('that refers to a row which is gone', async () => {
    await there.apply([scim(name)])
    const without = application(name, { provider: null })
    await there.apply([application(name, { provider: await idOf(name) })])
    expect((await there.apply([absent(scim(name)), without])).logs).toContain(`application "${name}" unchanged`)
  })
})

describe('a value that must be unique', () => {
  test('that an earlier entry takes', async () => {
    const taken = await error(
      oauth2(name, { client_id: `id-${name}` }),
      oauth2(`${name}-b`, { client_id: `id-${name}` }),
    )
    expect(taken).toContain(`"id-${name}" is taken by provider oauth2 "${name}".`)
  })

  test('that an earlier entry takes in other letters', async () => {
    expect(await error(group({ name: `x${name}` }), group({ name: `X${name}` }))).toContain(
      `group "x${name}" exists; names are compared without case.`,
    )
  })

  test('that an earlier entry gives up', async () => {
    await there.apply([oauth2(name, { client_id: `id-${name}` })])
    const other = oauth2(`${name}-b`, { client_id: `id-${name}` })
    expect(await last(oauth2(name, { client_id: `new-${name}` }), other)).toContain('created')
  })

  test('behind a tag', async () => {
    await there.apply([scim(name), application(`${name}-a`, { provider: name })])
    const entries = [{ ...scim(name), id: 'p' }, application(name, { provider: new KeyOf('p') })]
    expect(await error(...entries)).toContain(`belongs to application "${name}-a".`)
  })
})

describe('a reference', () => {
  test('to a row that an earlier entry deletes', async () => {
    await there.apply([flow(name)])
    const { pk } = await there.db.flow.findUniqueOrThrow({ where: { slug: name } })
    const gone = `There is no flow with the key ${pk}.`
    expect(await error(absent(flow(name)), oauth2(name, { authorization_flow: pk }))).toContain(gone)
  })

  test('to a row that an earlier entry makes unfit', async () => {
    await there.apply([flow(name)])
    const { pk } = await there.db.flow.findUniqueOrThrow({ where: { slug: name } })
    const unfit = [flow(name, { designation: 'recovery' }), oauth2(name, { authorization_flow: pk })]
    expect(await error(...unfit)).toContain('has the designation recovery')
  })

  test('by the name of a row that two earlier entries write', async () => {
    const entries = [flow(name), otherwise(flow(name, { name: 'Other' })), oauth2(name, { authorization_flow: name })]
    await there.check(entries)
    expect(await last(...entries)).toContain('created')
  })

  test('by !Find, with what the row referred to before that was deleted', async () => {
    await there.apply([scim(name), application(name, { provider: name })])
    const provider = await idOf(name)
    const find = new Find('service_core.application', { provider })
    const { username } = await crowd.user()
    const consent = of('service_core.userconsent')({ user: username, application: find }, { permissions: 'openid' })
    await there.check([consent])
    // The first look-up reads the application, the second one comes after the deletion.
    expect(await error(consent, absent(scim(name)), consent)).toContain('finds nothing')
  })
})

test('the number of rows that one user may have', async () => {
  const { pk } = await crowd.user()
  const expires = '2030-01-31T12:00:00Z'
  const tokens = Array.from({ length: 100 }, (_, at) => token({ identifier: `${name}-${at}` }, { user: pk, expires }))
  const more = token({ identifier: `${name}-more` }, { user: pk, expires })
  await there.apply(tokens.slice(0, 99))
  const hundredth = token({ identifier: `${name}-99` }, { user: pk, expires })
  expect(await error(hundredth, more)).toContain('the most that one may have')
  await there.apply([hundredth])
  expect(await last(absent(token({ identifier: `${name}-0` })), more)).toContain('created')
})
