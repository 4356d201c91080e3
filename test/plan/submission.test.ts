import { expect, test } from 'vitest'
import { parse, print } from '../../src/document/yaml.ts'
import { loadRegistry } from '../../src/models/registry.ts'
import type { Actor } from '../../src/permissions.ts'
import { unconditional } from '../../src/plan/engine.ts'
import { kindOf, mayWrite, toBlueprint } from '../../src/plan/submission.ts'
import { example, kinds } from '../support/examples.ts'

const registry = await loadRegistry()

test('a submission becomes two entries: the provider, and the application that refers to it', async () => {
  const { blueprint, conditions, title, plan } = toBlueprint(
    await example('scim', { provider: { property_mappings: [] } }),
    registry,
    { ...unconditional, createOnly: true },
  )
  expect(plan.errors.list).toEqual([])
  expect({ conditions, title }).toEqual({
    conditions: { ...unconditional, createOnly: true },
    title: 'apply scim sentry-accounts',
  })
  expect(print(blueprint)).toBe(`version: 1
metadata:
  name: application sentry-accounts
entries:
  - model: service_providers_scim.scimprovider
    id: provider
    state: present
    identifiers:
      name: sentry-accounts
    attrs:
      property_mappings: []
      property_mappings_group:
        - 6f7e0000-0000-4000-8000-000000000222
      url: https://sentry.example.com/api/0/organizations/example/scim/v2
      token: example-only-scim-token
      verify_certificates: true
      exclude_users_service_account: true
      filter_group: 6f7e0000-0000-4000-8000-000000000502
  - model: service_core.application
    id: app
    state: present
    identifiers:
      slug: sentry-accounts
    attrs:
      name: Sentry accounts
      meta_description: Keeps the accounts of Sentry in step
      group: Monitoring
      provider: !KeyOf provider
`)
})

test.each(kinds)('the blueprint of the example of %s survives printing and parsing', async (kind) => {
  const { blueprint } = toBlueprint(await example(kind), registry, unconditional)
  expect(await parse(print(blueprint))).toEqual(blueprint)
})

test('a sent provider key is an expectation, not a field of the document', async () => {
  const { blueprint, conditions } = toBlueprint(await example('rac', { app: { provider: 7 } }), registry, unconditional)
  expect(conditions.expectedKeys).toEqual({ provider: 7 })
  expect(blueprint.entries[1]?.attrs.provider).not.toBe(7)
  expect(
    toBlueprint(await example('rac', { app: { provider: null } }), registry, unconditional).conditions.expectedKeys,
  ).toEqual({})
})

test('toBlueprint does not change the body', async () => {
  const body = await example('oauth2')
  const before = structuredClone(body)
  toBlueprint(body, registry, unconditional)
  expect(body).toEqual(before)
})

test.each([
  null,
  5,
  'x',
  [],
  {},
  { provider_model: 5 },
  { provider_model: 'service_core.user' },
  { provider_model: 'toString' },
])('%j names no kind', (body) => {
  expect(kindOf(body, registry)).toBeUndefined()
})

test('a caller who may add or change providers of a kind may submit one', () => {
  const holder = (...permissions: string[]): Actor => ({
    pk: 1,
    username: 'u',
    isSuperuser: false,
    permissions: new Set(permissions),
  })
  const kind = { resource: 'samlprovider' }
  expect([holder('add_samlprovider'), holder('change_samlprovider')].map((actor) => mayWrite(actor, kind))).toEqual([
    true,
    true,
  ])
  expect(
    [holder('view_samlprovider', 'delete_samlprovider', 'add_ldapprovider'), holder()].map((actor) =>
      mayWrite(actor, kind),
    ),
  ).toEqual([false, false])
})
