import { describe, expect, test } from 'vitest'
import { type Blueprint, KeyOf } from '../../src/document/document.ts'
import { keptForm as masked } from '../../src/document/generate.ts'
import { mask } from '../../src/document/mask.ts'
import { print } from '../../src/document/yaml.ts'
import { loadRegistry } from '../../src/models/registry.ts'
import { example, kinds } from '../support/examples.ts'

const registry = await loadRegistry()

const of = (model: string, attrs: Record<string, unknown>): Blueprint => ({
  version: 1,
  metadata: { name: 'a' },
  entries: [{ model, state: 'present', identifiers: { name: 'x' }, attrs }],
})

const maskedAttrs = (model: string, attrs: Record<string, unknown>) =>
  mask(of(model, attrs), registry).entries[0]?.attrs

test.each(kinds)('%s: secrets are masked completely, other values are unchanged', async (kind) => {
  const { provider_model, provider } = await example(kind)
  const secrets = [...(registry.byName(provider_model)?.fields.values() ?? [])]
    .filter(({ secret }) => secret)
    .map(({ name }) => name)
  const expected = Object.entries(provider).map(([name, value]) => [name, secrets.includes(name) ? masked : value])
  expect(maskedAttrs(provider_model, provider)).toEqual(Object.fromEntries(expected))
})

test('a secret of any type is masked, but not null', () => {
  const model = 'service_providers_workspace_sync_a.workspace_sync_aprovider'
  expect(maskedAttrs(model, { credentials: { private_key: 'k', list: ['k'] } })).toEqual({ credentials: masked })
  expect(maskedAttrs(model, { credentials: null })).toEqual({ credentials: null })
})

test('fields that no model has are masked: they may hold secrets', () => {
  expect(maskedAttrs('service_core.application', { client_secret: 's', name: 'n' })).toEqual({
    client_secret: masked,
    name: 'n',
  })
  expect(maskedAttrs('service_core.nothing', { name: 'n' })).toEqual({ name: masked })
})

test('tags are kept, and the document itself is not changed', () => {
  const blueprint = of('service_core.application', { provider: new KeyOf('provider'), secret: 's' })
  expect(print(mask(blueprint, registry))).toContain('provider: !KeyOf provider')
  expect(blueprint.entries[0]?.attrs.secret).toBe('s')
})

describe('of a secret for a new object only', () => {
  test.each(kinds)('%s: the value is masked in every secret field, and in no other', async (kind) => {
    const { provider_model } = await example(kind)
    for (const { name, secret } of registry.byName(provider_model)?.fields.values() ?? []) {
      const sent = { create: 'a value' }
      expect(maskedAttrs(provider_model, { [name]: sent })).toEqual({ [name]: secret ? { create: masked } : sent })
    }
  })

  test.each([
    [{ create: { key: 's' } }, { create: masked }],
    [{ create: null }, { create: null }],
    [{ create: 's', more: 's' }, masked],
    [{ create: 's', overlap: 's' }, masked],
  ])('%o is masked as %o', (client_secret, shown) => {
    expect(maskedAttrs('service_providers_oauth2.oauth2provider', { client_secret })).toEqual({ client_secret: shown })
  })

  test('not of a field that the model does not have', () => {
    expect(maskedAttrs('service_core.application', { client_secret: { create: 's' } })).toEqual({
      client_secret: masked,
    })
  })
})

describe('of a secret with an overlap', () => {
  const model = 'service_providers_oauth2.oauth2provider'
  test.each([
    [
      { value: 's', overlap: 'hours=1' },
      { value: masked, overlap: 'hours=1' },
    ],
    [
      { generate: true, overlap: 'hours=1' },
      { generate: true, overlap: 'hours=1' },
    ],
    [
      { generate: true, value: 's', overlap: 'hours=1' },
      { value: masked, overlap: 'hours=1' },
    ],
    [{ value: 's', overlap: 'a secret' }, masked],
    [{ value: 's' }, masked],
  ])('%o is masked as %o', (client_secret, shown) => {
    expect(maskedAttrs(model, { client_secret })).toEqual({ client_secret: shown })
  })

  test('a field without an overlap is masked completely', () => {
    const others = 'service_providers_directory_sync_b.directory_sync_bprovider'
    expect(maskedAttrs(others, { client_secret: { value: 's', overlap: 'hours=1' } })).toEqual({
      client_secret: masked,
    })
  })
})
