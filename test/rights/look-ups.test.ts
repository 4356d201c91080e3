import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type Asker, answered, installation } from '../support/kit.ts'

/** What a document looks up, the caller must be allowed to view: a dry run must not answer guesses. */

const on = await installation()
const root = await on.make.user({ superuser: true })

const send = (who: Asker, entries: string, query = '?dry_run=true') =>
  who.send({
    method: 'PUT',
    url: `/api/v3/blueprints/${query}`,
    headers: { 'content-type': 'application/yaml' },
    payload: `version: 1\nmetadata: { name: guesses }\nentries:\n${entries}\n`,
  })

const userFind = (username: string) => `!Find [service_core.user, { username: "${username}" }]`

/** Each way in which a document can ask for a user. The caller may add groups. */
const ways: Readonly<Record<string, (username: string) => string>> = {
  'an attribute': (name) => `{ attributes: { guess: ${userFind(name)} } }`,
  'a reference': (name) => `{ users: [${userFind(name)}] }`,
  'the name of a reference': (name) => `{ users: ["${name}"] }`,
  '!Format': (name) => `{ attributes: { guess: !Format ["%s", ${userFind(name)}] } }`,
  '!If': (name) => `{ attributes: { guess: !If [${userFind(name)}, yes, no] } }`,
  '!Condition': (name) => `{ attributes: { guess: !Condition [NOT, ${userFind(name)}] } }`.replace('NOT', 'NOR'),
  '!Enumerate': (name) => `{ attributes: { guess: !Enumerate [[1], SEQ, ${userFind(name)}] } }`,
  '!AtIndex': (name) => `{ attributes: { guess: !AtIndex [[${userFind(name)}], 0, none] } }`,
  'a look-up in a look-up': (name) =>
    `{ attributes: { guess: !Find [service_flows.flow, { slug: !Format ["%s", ${userFind(name)}] }] } }`,
}

describe('a look-up of users without view_user', () => {
  test.each(Object.keys(ways))('by %s is the same denial whether the user is there or not', async (way) => {
    const who = await on.make.user({ permissions: ['add_group', 'change_group', 'add_user_to_group'] })
    const name = randomUUID()
    const entry = (username: string) =>
      `  - { model: service_core.group, identifiers: { name: "${name}" }, attrs: ${ways[way]?.(username)} }`
    for (const query of ['?dry_run=true', '']) {
      const answers = [await send(who, entry(root.username), query), await send(who, entry(randomUUID()), query)]
      expect(answers.map(({ status }) => status)).toEqual([403, 403])
      expect(answers.map(({ json }) => json)).toMatchObject([
        { detail: 'You may not look up user: the permission view_user is missing.' },
        { detail: 'You may not look up user: the permission view_user is missing.' },
      ])
    }
  })

  test('by a condition is the same denial, true or false, and a skipped entry gives no way', async () => {
    const who = await on.make.user({ permissions: ['add_group'] })
    const entry = (username: string) => `
  - { model: service_core.group, identifiers: { name: "${randomUUID()}" }, conditions: [${userFind(username)}] }`
    const skipped = (username: string) => `
  - { model: service_core.user, identifiers: { username: "${username}" }, conditions: [!Find [service_flows.flow, [slug, none]]] }
${entry(username)}`
    for (const of of [entry, skipped])
      for (const username of [root.username, randomUUID()])
        await answered(403, send(who, of(username)), {
          detail: 'You may not look up user: the permission view_user is missing.',
        })
  })

  test('by a name in a PATCH is the same denial', async () => {
    const who = await on.make.user({ permissions: ['change_group', 'add_user_to_group'] })
    const group = await on.make.group({})
    for (const username of [root.username, randomUUID()])
      await answered(
        403,
        who.send({ method: 'PATCH', url: `/api/v3/core/groups/${group.pk}/`, payload: { users: [username] } }),
        { detail: 'You may not look up user: the permission view_user is missing.' },
      )
  })

  test('is free for the caller itself, and for a row that the document writes by the same identifiers', async () => {
    const who = await on.make.user({ permissions: ['add_group', 'add_user', 'add_user_to_group'] })
    const fresh = randomUUID()
    const entries = `
  - { model: service_core.user, identifiers: { username: "${fresh}" }, attrs: { name: New } }
  - { model: service_core.group, identifiers: { name: "${randomUUID()}" }, attrs: { users: [${userFind(fresh)}, "${who.username}"] } }
  - { model: service_core.group, identifiers: { name: "${randomUUID()}" }, attrs: { users: ["${fresh}"] } }`
    expect(await send(who, entries, '')).toMatchObject({ status: 200, json: { applied: true } })
  })

  test('by another field than the one that the document writes it by is denied', async () => {
    const who = await on.make.user({ permissions: ['add_group', 'add_user', 'change_user'] })
    const target = await on.make.user()
    const entries = `
  - { model: service_core.user, identifiers: { username: "${target.username}" }, attrs: {} }
  - model: service_core.group
    identifiers: { name: "${randomUUID()}" }
    attrs: { attributes: { a: !If [!Find [service_core.user, { username: "${target.username}", is_active: true }], 1, 2] } }`
    expect(await send(who, entries)).toMatchObject({ status: 403 })
  })
})

test('a name that a row had is not looked up by the runs that changed the row', async () => {
  const target = await on.make.user()
  const before = target.username
  const change = (by: Asker, attrs: object) => {
    const entries = [{ model: 'service_core.user', identifiers: { pk: target.pk }, attrs }]
    return by.put('/api/v3/blueprints/', { version: 1, metadata: { name: 'rename' }, entries })
  }
  expect((await change(on.admin, { username: `now-${before}` })).json).toMatchObject({ applied: true })
  const runsOf = async (by: Asker, name: string) => {
    const { json } = await answered(200, by.get(`/api/v3/blueprints/runs/?object=user:${name}`))
    return Object(json).results.length
  }
  const blind = await on.make.user({ permissions: ['change_user'] })
  const viewer = await on.make.user({ permissions: ['change_user', 'view_user'] })
  for (const by of [blind, viewer])
    expect((await change(by, { email: `${randomUUID()}@example.com` })).status).toBe(200)
  expect([await runsOf(blind, before), await runsOf(blind, `now-${before}`)]).toEqual([0, 0])
  expect([await runsOf(viewer, before), await runsOf(viewer, `now-${before}`)]).toEqual([1, 1])
})

test('names of flows, mappings and certificates are free, and other fields of them are not', async () => {
  const who = await on.make.user({ permissions: ['add_group'] })
  const entry = (find: string) =>
    `  - { model: service_core.group, identifiers: { name: "${randomUUID()}" }, attrs: { attributes: { a: !If [!Find ${find}, 1, 2] } } }`
  await answered(200, send(who, entry('[service_flows.flow, { slug: default-provider-invalidation }]')))
  expect(await send(who, entry('[service_flows.flow, { designation: invalidation }]'))).toMatchObject({ status: 403 })
})

test('a caller who may view the model looks it up', async () => {
  const who = await on.make.user({ permissions: ['add_group', 'view_user'] })
  const entry = `  - { model: service_core.group, identifiers: { name: "${randomUUID()}" }, attrs: { attributes: { a: ${userFind(root.username)} } } }`
  expect(await send(who, entry)).toMatchObject({ status: 200 })
})

test('a name finds only providers of a kind that the caller may view', async () => {
  const who = await on.make.user({ permissions: ['add_application', 'view_radiusprovider', 'change_racprovider'] })
  const provider = { name: `rac-${randomUUID()}` }
  await answered(200, on.admin.submit('rac', provider.name))
  const slug = randomUUID()
  const entry = (name: string) =>
    `  - { model: service_core.application, identifiers: { slug: "${slug}" }, attrs: { name: App, provider: "${name}" } }`
  const [there, absent] = [await send(who, entry(provider.name)), await send(who, entry('not there'))]
  expect([there.status, absent.status]).toEqual([400, 400])
  expect(there.text.replaceAll(provider.name, 'not there')).toBe(absent.text)
})
