import { expect, test } from 'vitest'
import type { Model, Values } from '../../src/models/define.ts'
import { linksOf } from '../../src/plan/statements.ts'
import { toValues } from '../../src/plan/storage.ts'
import { chainLength } from '../../tools/seed/organisation.ts'
import type { Row } from '../../tools/seed/table.ts'
import { errorsOf, ruleErrors } from '../models/check.ts'
import { key, registry, rowsOf, templates } from './organisation.ts'

const small = { users: 500, groups: 80, applications: 20 }
const large = { users: 100_000, groups: 2_000, applications: 200 }
const tree = rowsOf(1, { ...large, users: 20_000 })

/** Leaves out sealed values, which differ each time. */
const readable = (rows: unknown) => JSON.stringify(rows).replaceAll(/v2(\.[\w-]+){3}/g, 'sealed')
const deviceKeys = (rows: readonly Row[]) =>
  rows.map(({ uuid, sealed_key }) =>
    key.open(String(sealed_key), { table: 'totp_devices', row: String(uuid), column: 'sealed_key' }),
  )

test('the same seed makes the same rows', () => {
  const [one, other] = [rowsOf(7, small), rowsOf(7, small)]
  expect(readable(one.rows)).toBe(readable(other.rows))
  expect(deviceKeys(one.of('totp_devices'))).toEqual(deviceKeys(other.of('totp_devices')))
})

test('another seed shares no key and no name', () => {
  const identities = (seed: number) => {
    const { of } = rowsOf(seed, small)
    const columns: [string, string][] = [
      ['users', 'uuid'],
      ['users', 'username'],
      ['groups', 'pk'],
      ['groups', 'name'],
      ['roles', 'pk'],
      ['roles', 'name'],
      ['tokens', 'pk'],
      ['tokens', 'identifier'],
      ['tokens', 'key_hash'],
      ['applications', 'pk'],
      ['applications', 'slug'],
      ['providers', 'uuid'],
      ['providers', 'name'],
      ['totp_devices', 'uuid'],
    ]
    return columns.flatMap(([table, column]) => of(table).map((row) => `${table} ${column} ${row[column]}`))
  }
  const all = [...identities(1), ...identities(2), ...identities(12)]
  expect(new Set(all).size).toBe(all.length)
})

test('a user does not depend on the number of users', () => {
  const { tables } = rowsOf(1, small)
  const users = tables.find(({ name }) => name === 'users')
  expect(users?.rows(417)).toEqual([tree.of('users')[417]])
})

test('a hundred thousand users have two thousand groups: ten chains of fifty, and no child before its parent', () => {
  const { groups, purposes } = tree.organisation
  expect(groups).toHaveLength(2_000)
  expect(purposes.chains).toHaveLength(10)
  for (const [index, { parent }] of groups.entries()) expect(parent ?? -1).toBeLessThan(index)
  const depthOf = (index: number): number => {
    const parent = groups[index]?.parent ?? null
    return parent === null ? 1 : 1 + depthOf(parent)
  }
  expect(Math.max(...groups.keys().map(depthOf))).toBe(chainLength)
})

test('names that must be unique are', () => {
  for (const [table, column] of [
    ['users', 'username'],
    ['groups', 'name'],
    ['roles', 'name'],
    ['tokens', 'identifier'],
    ['applications', 'slug'],
    ['providers', 'name'],
  ] as const) {
    const values = tree.of(table).map((row) => row[column])
    expect(new Set(values).size, `${table}.${column}`).toBe(values.length)
  }
})

test('one group has a fifth of all users, a handful has many, and most have few', () => {
  const sizes = new Map<unknown, number>()
  for (const { group_pk } of tree.of('memberships')) sizes.set(group_pk, (sizes.get(group_pk) ?? 0) + 1)
  const sorted = [...sizes.values()].sort((a, b) => b - a)
  expect(sorted[0]).toBe(4_000)
  expect(sizes.get(tree.organisation.groups[tree.organisation.purposes.vpn]?.pk)).toBe(4_000)
  expect(sorted.filter((size) => size > 300).length).toBeLessThan(10)
  expect(sorted[1_000]).toBeLessThan(30)
})

test('some have never logged in, some are inactive, some are service accounts; none logged in before being created', () => {
  const users = tree.of('users')
  const share = (is: (row: Row) => boolean) => users.filter(is).length / users.length
  expect(share(({ last_login }) => last_login === null)).toBeCloseTo(0.15, 1)
  expect(share(({ is_active }) => is_active === false)).toBeCloseTo(0.04, 1)
  expect(share(({ type }) => type === 'service_account')).toBeCloseTo(0.03, 1)
  expect(share(({ last_login, created_at }) => last_login !== null && Number(last_login) < Number(created_at))).toBe(0)
})

const modelOf = (name: string): Model => {
  const model = registry.byName(name)
  if (model === undefined) throw new Error(`no model ${name}`)
  return model
}

/** The errors that the engine would report for these values. */
const faultsIn = (model: Model, values: Values) => [
  ...Object.entries(values).flatMap(([name, value]) =>
    errorsOf(model, name, value).map((error) => `${name}: ${error}`),
  ),
  ...ruleErrors(model, values),
]

/** The fields of a row as the engine reads them, with open secrets and the defaults of missing columns. */
function membersOf(model: Model, row: Row): Values {
  const links = Object.fromEntries(linksOf(model).map(([{ name }]) => [name, []]))
  const read = toValues(model, { pk: '', links, ...row }, key)
  const values = [...model.fields.values()].map(({ name, storage, initial }) => {
    const isLeftOut = 'column' in storage && !(storage.column in row)
    const value = isLeftOut ? initial : read[name]
    return [name, value instanceof Date ? value.toISOString() : value]
  })
  return Object.fromEntries(values)
}

test.each([
  ['users', 'service_core.user'],
  ['groups', 'service_core.group'],
  ['roles', 'service_rbac.role'],
  ['tokens', 'service_core.token'],
  ['totp_devices', 'service_stages_totp.totpdevice'],
  ['user_consents', 'service_core.userconsent'],
])('the engine would accept all %s', (table, name) => {
  const model = modelOf(name)
  const rows = tree.of(table)
  expect(rows.length).toBeGreaterThan(0)
  expect(rows.flatMap((row) => faultsIn(model, membersOf(model, row)))).toEqual([])
})

test('the engine would accept all applications and providers as it reads them', () => {
  const application = modelOf('service_core.application')
  for (const row of tree.of('applications')) expect(faultsIn(application, membersOf(application, row))).toEqual([])
  const seen = new Set<unknown>()
  for (const [number, row] of tree.of('providers').entries()) {
    const model = tree.portfolio.providers[number]?.template.model ?? application
    const values = membersOf(model, row)
    expect(faultsIn(model, values)).toEqual([])
    for (const { name, secret } of model.fields.values()) if (secret) expect(values[name]).toBeTruthy()
    seen.add(row.kind)
  }
  expect(seen.size).toBe(templates.length)
})
