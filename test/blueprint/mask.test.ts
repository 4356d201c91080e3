import { expect, test } from 'vitest'
import { type Blueprint, KeyOf } from '../../src/blueprint/document.ts'
import { mask, masked } from '../../src/blueprint/mask.ts'
import { print } from '../../src/blueprint/yaml.ts'
import { loadRegistry } from '../../src/models/index.ts'
import { example, kinds } from '../support/installation.ts'

const registry = await loadRegistry()

const of = (model: string, attrs: Record<string, unknown>): Blueprint => ({
  version: 1,
  metadata: { name: 'a' },
  entries: [{ model, state: 'present', identifiers: { name: 'x' }, attrs }],
})

const shown = (model: string, attrs: Record<string, unknown>) => mask(of(model, attrs), registry).entries[0]?.attrs

test.each(kinds)('%s: secrets are masked whole, the rest stands as it was sent', async (kind) => {
  const { provider_model, provider } = await example(kind)
  const secrets = [...(registry.byName(provider_model)?.members.values() ?? [])]
    .filter(({ secret }) => secret)
    .map(({ name }) => name)
  const expected = Object.entries(provider).map(([name, value]) => [name, secrets.includes(name) ? masked : value])
  expect(shown(provider_model, provider)).toEqual(Object.fromEntries(expected))
})

test('a secret of any shape is masked, and null is not one', () => {
  const model = 'service_providers_workspace_sync_a.workspace_sync_aprovider'
  expect(shown(model, { credentials: { private_key: 'k', list: ['k'] } })).toEqual({ credentials: masked })
  expect(shown(model, { credentials: null })).toEqual({ credentials: null })
})

test('what no model knows is masked: nobody can say what it is', () => {
  expect(shown('service_core.application', { client_secret: 's', name: 'n' })).toEqual({
    client_secret: masked,
    name: 'n',
  })
  expect(shown('service_core.nothing', { name: 'n' })).toEqual({ name: masked })
})

test('tags are shown, and the document itself keeps its secrets', () => {
  const blueprint = of('service_core.application', { provider: new KeyOf('provider'), secret: 's' })
  expect(print(mask(blueprint, registry))).toContain('provider: !KeyOf provider')
  expect(blueprint.entries[0]?.attrs.secret).toBe('s')
})
