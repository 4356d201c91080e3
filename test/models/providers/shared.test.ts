import { expect, test } from 'vitest'
import { loadRegistry } from '../../../src/models/index.ts'
import { faultsOf, keysRow, memberOf, referenceRow, testMembers, textRow } from '../check.ts'

const { kinds } = await loadRegistry()

for (const model of kinds.values()) {
  testMembers(model, [textRow('name', 255, { filled: true }), keysRow('property_mappings')])
}

test('kinds that people pass through have the three flows, the others none', () => {
  const withFlows = [...kinds.values()]
    .filter(({ members }) => members.has('authorization_flow'))
    .map(({ provider }) => provider.kind)
  expect(withFlows).toEqual(['ldap', 'oauth2', 'proxy', 'rac', 'radius', 'saml'])
  for (const { members } of kinds.values()) {
    expect(members.has('authentication_flow')).toBe(members.has('authorization_flow'))
    expect(members.has('invalidation_flow')).toBe(members.has('authorization_flow'))
  }
})

for (const model of kinds.values()) {
  if (!model.members.has('authorization_flow')) continue
  testMembers(model, [referenceRow('authentication_flow'), referenceRow('invalidation_flow')])

  test(`${model.noun}: authorization_flow may not be null`, () => {
    expect(faultsOf(model, 'authorization_flow', null)).toEqual(['Must be a UUID.'])
    expect(memberOf(model, 'authorization_flow').place).toEqual({
      in: 'column',
      column: 'authorization_flow',
      json: false,
    })
  })
}

test('keys are stored in lower case, whatever was sent', () => {
  const [model] = kinds.values()
  if (model === undefined) throw new Error('there are no kinds')
  const upper = '6F7E0000-0000-4000-8000-00000000020A'
  expect(memberOf(model, 'property_mappings').schema.parse([upper])).toEqual([upper.toLowerCase()])
})
