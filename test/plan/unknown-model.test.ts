import { expect, test } from 'vitest'
import { loadRegistry } from '../../src/models/registry.ts'
import { unconditional } from '../../src/plan/engine.ts'
import { toBlueprint } from '../../src/plan/submission.ts'
import { unknownModel } from '../../src/plan/unknown-model.ts'

const registry = await loadRegistry()
const oauth2 = 'service_providers_oauth2.oauth2provider'

test.each([
  ['oauth2', oauth2],
  ['OAuth2', oauth2],
  ['oauth2provider', oauth2],
  ['theirs_providers_oauth2.oauth2provider', oauth2],
  ['oauth', oauth2],
  ['service_providers_oath2.oauth2provder', oauth2],
  ['samlprovider', 'service_providers_saml.samlprovider'],
  ['workspace_sync_a', 'service_providers_workspace_sync_a.workspace_sync_aprovider'],
  ['group', 'service_core.group'],
  ['core.application', 'service_core.application'],
])('the model of an entry, %s: did you mean %s?', (sent, meant) => {
  expect(unknownModel(sent, registry.models)).toBe(`Unknown model. Did you mean ${meant}?`)
})

test.each(['x', '', '.', 'service_stages.stage', 'toString', 'oauth2'.repeat(20)])('%j is like none', (sent) => {
  expect(unknownModel(sent, registry.models)).toBe('Unknown model.')
})

const messageFor = (provider_model: unknown) =>
  toBlueprint({ app: { slug: 'a', name: 'A' }, provider_model, provider: { name: 'a' } }, registry, unconditional)
    .plan.errors.list.filter(({ path }) => path[0] === 'provider_model')
    .map(({ message }) => message)

test.each([
  ['oauth2', oauth2],
  ['ldapprovider', 'service_providers_ldap.ldapprovider'],
  ['service_provider_scim.scimprovider', 'service_providers_scim.scimprovider'],
])('provider_model %s: did you mean %s?', (sent, meant) => {
  expect(messageFor(sent)).toEqual([
    expect.stringMatching(new RegExp(`^Must be one of: service_.*\\. Did you mean ${meant}\\?$`)),
  ])
})

test.each([5, 'service_core.user', 'group', 'toString'])('provider_model %j is like none', (sent) => {
  expect(messageFor(sent)).toEqual([expect.stringMatching(/^Must be one of: [^?]*\.$/)])
})
