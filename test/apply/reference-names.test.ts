import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { KeyOf } from '../../src/document/document.ts'
import { type Permission, system } from '../../src/permissions.ts'
import { aGroup, aUser, name } from '../support/kit.ts'
import { application, bench, flow, oauth2, scim, shipped } from './engine.ts'

/** What changed, by the names of the rows that it refers to. */

const there = await bench()

const implicit = 'default-authorization-implicit'

const holder = (...permissions: Permission[]) => ({
  ...{ pk: null, username: 'holder', isSuperuser: false },
  permissions: new Set(permissions),
})

test('both sides of an update, in the changes and in the log', async () => {
  await there.apply([oauth2(name)])
  const { changes, logs } = await there.apply([oauth2(name, { authorization_flow: implicit })])
  expect(changes[0]?.fields).toEqual({ authorization_flow: { from: 'default-authorization-explicit', to: implicit } })
  expect(logs).toEqual([
    `provider oauth2 "${name}" updated: authorization_flow "default-authorization-explicit" -> "${implicit}"`,
  ])
})

test('lists by their items', async () => {
  const [first, second] = [`${name}-a`, `${name}-b`]
  const mapping = (of: string) => ({
    model: 'service_mappings.propertymapping',
    identifiers: { name: of, kind: 'oauth2' },
  })
  await there.apply([mapping(first), mapping(second), oauth2(name, { property_mappings: [first] })])
  const { changes, logs } = await there.apply([oauth2(name, { property_mappings: [second] })])
  expect(changes[0]?.fields.property_mappings).toEqual({ from: [first], to: [second] })
  expect(logs[0]).toContain(`property_mappings - "${first}" + "${second}"`)
})

test('a new row has the names of its document, and the keys of one that has keys', async () => {
  const { changes } = await there.apply([
    flow(name),
    oauth2(name, { authorization_flow: name }),
    oauth2(`${name}-b`, { authorization_flow: shipped.flow }),
  ])
  expect(changes.slice(1).map(({ fields }) => fields.authorization_flow)).toEqual([
    { from: null, to: name },
    { from: null, to: shipped.flow },
  ])
})

test('rows that the document creates, renames or deletes', async () => {
  await there.apply([scim(`${name}-a`), application(name, { backchannel_providers: [`${name}-a`] })])
  const { changes } = await there.apply([
    { ...scim(`${name}-b`), id: 'b' },
    application(name, { backchannel_providers: [new KeyOf('b')] }),
    { ...scim(`${name}-a`), state: 'absent' },
  ])
  expect(changes[1]?.fields.backchannel_providers).toEqual({ from: [`${name}-a`], to: [`${name}-b`] })
  const renamed = await there.apply([
    { ...scim(`${name}-c`), was: `${name}-b` },
    application(name, { backchannel_providers: [] }),
  ])
  expect(renamed.changes[1]?.fields.backchannel_providers).toEqual({ from: [`${name}-c`], to: [] })
})

test('two rows of one name have their keys behind it', async () => {
  const [plain, managed] = [null, name].map((managed) => ({ ...{ pk: randomUUID(), kind: 'oauth2', name }, managed }))
  await there.db.propertyMapping.createMany({ data: [plain, managed].flatMap((each) => each ?? []) })
  await there.apply([oauth2(name, { property_mappings: [plain?.pk] })])
  const { changes } = await there.apply([oauth2(name, { property_mappings: [managed?.pk] })])
  expect(changes[0]?.fields.property_mappings).toEqual({
    from: [`${name} (${plain?.pk})`],
    to: [`${name} (${managed?.pk})`],
  })
})

test('names are for those who may know the rows', async () => {
  await there.apply([aGroup(`${name}-a`), aUser(`${name}-a`), aUser(`${name}-b`), aGroup(name)])
  const [a, b] = await Promise.all(
    ['a', 'b'].map((of) => there.db.user.findUniqueOrThrow({ where: { username: `${name}-${of}` } })),
  )
  const parent = await there.db.group.findUniqueOrThrow({ where: { name: `${name}-a` } })
  const moved = aGroup(name, { parent: parent.pk, users: [a?.pk, b?.pk] })
  const named = await there.apply([moved])
  expect(named.changes[0]?.fields).toMatchObject({ users: { to: [`${name}-a`, `${name}-b`] } })
  await there.apply([aGroup(name, { users: [] })])
  const actor = holder('change_group', 'view_group', 'add_user_to_group')
  const { changes } = await there.apply([aGroup(name, { users: [a?.pk] })], actor)
  expect(changes[0]?.fields.users).toMatchObject({ to: [a?.pk] })
})

test('a row of another owner stays a key', async () => {
  await there.apply([scim(name), application(name, { backchannel_providers: [name] })])
  const { pk } = await there.db.provider.update({ where: { name }, data: { owner: `${name}-others` } })
  const { changes } = await there.apply([application(name, { backchannel_providers: [] })])
  expect(changes[0]?.fields.backchannel_providers).toEqual({ from: [pk], to: [] })
})

test('a flow that is renamed meanwhile is no reason to plan again', async () => {
  await there.apply([flow(name)])
  const digests = async () => {
    await there.apply([oauth2(name, { authorization_flow: name })])
    return (await there.apply([oauth2(name, { authorization_flow: implicit })], system, { mode: 'plan' })).digests
  }
  const planned = await digests()
  await there.apply([{ identifiers: { slug: name }, attrs: { slug: `${name}-new` } }])
  await there.apply([oauth2(name, { authorization_flow: `${name}-new` })])
  const again = await there.apply([oauth2(name, { authorization_flow: implicit })], system, { mode: 'plan' })
  expect(again.changes[0]?.fields).toMatchObject({ authorization_flow: { from: `${name}-new` } })
  expect(again.digests).toEqual(planned)
})
