import { expect, test } from 'vitest'
import { nameVariables, type Secret } from '../../src/cli/export/variables.ts'
import { loadRegistry } from '../../src/models/registry.ts'

/** The names of variables, without a service. */

const registry = await loadRegistry()

function secret(kind: string, name: string, field: string, values: Record<string, unknown> = {}): Secret {
  const model = registry.kinds.get(kind)
  const found = model?.fields.get(field)
  if (model === undefined || found === undefined) throw new Error(`${kind} has no ${field}`)
  const row = {
    pk: name,
    model,
    values: { name, ...values },
    owner: null,
    isGenerated: false,
    secrets: [found],
  }
  return { row, field: found }
}

const namesOf = (...secrets: Secret[]) => nameVariables(secrets).map(({ name }) => name)

test.each([
  ['oauth2', 'Grafana', 'client_secret', 'GW_GRAFANA_CLIENT_SECRET'],
  ['radius', 'Büro  (2. Stock)', 'shared_secret', 'GW_BURO_2_STOCK_SHARED_SECRET'],
  ['scim', 'GitHub', 'token', 'GW_GITHUB_TOKEN'],
  ['oauth2', '1st', 'client_secret', 'GW_1ST_CLIENT_SECRET'],
  ['oauth2', '日本', 'client_secret', 'GW_OAUTH2PROVIDER_CLIENT_SECRET'],
  ['oauth2', 'gatewright', 'client_secret', 'GW_GATEWRIGHT_CLIENT_SECRET'],
  ['oauth2', 'azure', 'client_secret', 'GW_AZURE_CLIENT_SECRET'],
])('%s %s: %s is %s', (kind, name, field, variable) => {
  expect(namesOf(secret(kind, name, field))).toEqual([variable])
})

test('two that would have one name get longer ones, in any order, and others keep theirs', () => {
  const [first, second] = [secret('oauth2', 'a', 'client_secret'), secret('directory_sync_b', 'A', 'client_secret')]
  const other = secret('oauth2', 'b', 'client_secret')
  const expected = [
    'GW_OAUTH2PROVIDER_A_CLIENT_SECRET',
    'GW_DIRECTORY_SYNC_BPROVIDER_A_CLIENT_SECRET',
    'GW_B_CLIENT_SECRET',
  ]
  expect(namesOf(first, second, other)).toEqual(expected)
  expect(namesOf(other, second, first)).toEqual(expected.toReversed())
})

test('a digest tells apart what the model does not', () => {
  const names = namesOf(secret('oauth2', 'a-b', 'client_secret'), secret('oauth2', 'a b', 'client_secret'))
  expect(new Set(names).size).toBe(2)
  for (const name of names) expect(name).toMatch(/^GW_OAUTH2PROVIDER_A_B_CLIENT_SECRET_[\dA-F]{16}$/)
  expect(namesOf(secret('oauth2', 'a b', 'client_secret'), secret('oauth2', 'a-b', 'client_secret'))).toEqual(
    names.toReversed(),
  )
})

test('only a secret that may be empty has a default', () => {
  const of = (client_type: string) => nameVariables([secret('oauth2', 'a', 'client_secret', { client_type })])
  expect(of('public')).toMatchObject([{ mayBeEmpty: true, isJson: false }])
  expect(of('confidential')).toMatchObject([{ mayBeEmpty: false }])
  expect(nameVariables([secret('rac', 'a', 'settings')])).toMatchObject([{ mayBeEmpty: false, isJson: true }])
})
