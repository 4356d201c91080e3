import { expect, test } from 'vitest'
import { loadRegistry } from '../../../src/models/registry.ts'
import { errorsOf, fieldOf, keysRow, referenceRow, testFields, textRow } from '../check.ts'

const { kinds } = await loadRegistry()

for (const model of kinds.values()) {
  testFields(model, [textRow('name', 255, { filled: true }), keysRow('property_mappings')])
}

test('kinds through which users log in have the three flows, the others none', () => {
  const withFlows = [...kinds.values()]
    .filter(({ fields }) => fields.has('authorization_flow'))
    .map(({ provider }) => provider.kind)
  expect(withFlows).toEqual(['ldap', 'oauth2', 'proxy', 'rac', 'radius', 'saml'])
  for (const { fields } of kinds.values()) {
    expect(fields.has('authentication_flow')).toBe(fields.has('authorization_flow'))
    expect(fields.has('invalidation_flow')).toBe(fields.has('authorization_flow'))
  }
})

for (const model of kinds.values()) {
  if (!model.fields.has('authorization_flow')) continue
  testFields(model, [referenceRow('authentication_flow'), referenceRow('invalidation_flow')])

  test(`${model.displayName}: authorization_flow may not be null`, () => {
    expect(errorsOf(model, 'authorization_flow', null)).toEqual(['Must be a UUID.'])
    expect(fieldOf(model, 'authorization_flow').storage).toEqual({
      in: 'column',
      column: 'authorization_flow',
      json: false,
    })
  })
}

test('UUID keys are stored in lower case', () => {
  const [model] = kinds.values()
  if (model === undefined) throw new Error('there are no kinds')
  const upper = '6F7E0000-0000-4000-8000-00000000020A'
  expect(fieldOf(model, 'property_mappings').schema.parse([upper])).toEqual([upper.toLowerCase()])
})
