import { randomUUID } from 'node:crypto'
import { beforeEach, expect, test } from 'vitest'
import { aGroup, answered, aProvider, applied, aUser, type Entry, installation } from '../support/kit.ts'

/** A document may choose the UUID key of a new row, and refer to it from there on. */

let key: string
let name: string
const on = await installation()
beforeEach(() => {
  key = randomUUID()
  name = `chosen-${key}`
})

const { apply, plan } = on.admin

const flow = (designation = 'authorization') => ({
  model: 'service_flows.flow',
  identifiers: { pk: key },
  attrs: { name, slug: name.slice(0, 50), designation },
})
const oauth2 = (attrs: object) =>
  aProvider('oauth2', name, { authorization_flow: 'default-authorization-explicit', ...attrs })

/** A plan, an apply, and the same again. */
async function twice(entries: readonly Entry[]): Promise<void> {
  await answered(200, plan(entries))
  await applied(apply(entries))
  const again = await applied(apply(entries))
  expect(again.logs.filter((line) => !line.endsWith(' unchanged'))).toEqual([])
}

test('a provider refers to a flow of which an earlier entry chooses the key', () =>
  twice([flow(), oauth2({ authorization_flow: key })]))

test('a group has a parent, roles, and a mapping and a key pair their provider', async () => {
  const [role, mapping, pair] = [randomUUID(), randomUUID(), randomUUID()]
  await twice([
    { model: 'service_core.group', identifiers: { pk: key }, attrs: { name } },
    { model: 'service_rbac.role', identifiers: { pk: role }, attrs: { name } },
    aGroup(`${name} below`, { parent: key, roles: [role] }),
    aUser(name, { groups: [key.toUpperCase()] }),
    { model: 'service_mappings.propertymapping', identifiers: { pk: mapping }, attrs: { name, kind: 'oauth2' } },
    { model: 'service_crypto.certificatekeypair', identifiers: { pk: pair }, attrs: { name } },
    oauth2({ property_mappings: [mapping], signing_key: pair }),
  ])
  expect(await on.db.group.findUniqueOrThrow({ where: { name: `${name} below` } })).toMatchObject({ parentPk: key })
})

test('!Find and conditions find it by its key', async () => {
  const text = `version: 1
metadata: { name: ${name} }
entries:
  - model: service_flows.flow
    identifiers: { pk: ${key} }
    attrs: { name: ${name}, slug: ${name.slice(0, 50)}, designation: authorization }
  - model: service_providers_oauth2.oauth2provider
    conditions: [!Find [service_flows.flow, [pk, ${key}]]]
    identifiers: { name: ${name} }
    attrs: { authorization_flow: !Find [service_flows.flow, [pk, ${key}]] }
`
  expect(await apply(text)).toMatchObject({ status: 200, json: { applied: true } })
  expect(await on.db.provider.findUniqueOrThrow({ where: { name } })).toMatchObject({ authorizationFlowPk: key })
})

test('what refers to it is judged behind it, and it must fit', async () => {
  const none = { authorization_flow: [`There is no flow with the key ${key}.`] }
  const unfit = {
    authorization_flow: [`The flow ${key} has the designation recovery: this field takes authorization.`],
  }
  await answered(400, apply([oauth2({ authorization_flow: key })]), { entries: { 0: none } })
  await answered(400, apply([flow('recovery'), oauth2({ authorization_flow: key })]), { entries: { 1: unfit } })
  // What the document makes of a row that is there counts.
  await twice([flow()])
  await answered(400, apply([flow('recovery'), oauth2({ authorization_flow: key })]), { entries: { 1: unfit } })
  await answered(400, apply([{ ...flow(), state: 'absent' }, oauth2({ authorization_flow: key })]), {
    entries: { 1: none },
  })
})
