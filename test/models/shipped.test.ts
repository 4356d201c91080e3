import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { compile } from '../../src/blueprint/compile.ts'
import { parse } from '../../src/blueprint/yaml.ts'
import { loadRegistry } from '../../src/models/index.ts'
import { designations, faultsOf, ruleFaults } from './check.ts'

const registry = await loadRegistry()
const root = new URL('../../', import.meta.url)
const bootstrap = parse(readFileSync(new URL('blueprints/bootstrap.yaml', root), 'utf8'))
const attrs = bootstrap.entries.map((entry) => entry.attrs)

const members = z.record(z.string(), z.unknown())
const submission = z.strictObject({ app: members, provider_model: z.string(), provider: members })

const examples = readdirSync(new URL('examples/', root))
  .filter((file) => file.endsWith('.json'))
  .map((file) => ({
    kind: file.replace('.json', ''),
    ...submission.parse(JSON.parse(readFileSync(new URL(`examples/${file}`, root), 'utf8'))),
  }))

test('the bootstrap blueprint compiles without a fault, and creates only', () => {
  expect(compile(bootstrap, registry).faults.list).toEqual([])
  for (const { state } of bootstrap.entries) expect(state).toBe('created')
})

test('the bootstrap blueprint brings what submissions refer to', () => {
  const served = attrs.flatMap(({ designation }) => designation ?? [])
  expect(new Set(served)).toEqual(new Set(designations))
  const managed = attrs.flatMap((entry) => entry.managed ?? [])
  expect(managed).toEqual(
    expect.arrayContaining(
      ['openid', 'email', 'profile', 'offline_access'].map((scope) => `gatewright/oauth2/scope-${scope}`),
    ),
  )
  expect(attrs).toContainEqual({ name: 'gatewright Admins', is_superuser: true })
  for (const key of ['pk', 'name', 'slug', 'managed']) {
    const values = bootstrap.entries.flatMap((entry) => entry.identifiers[key] ?? entry.attrs[key] ?? [])
    expect(new Set(values).size, key).toBe(values.length)
  }
})

test('each kind has one example, under names of their own', () => {
  expect(examples.map(({ kind }) => kind).sort()).toEqual([...registry.kinds.keys()].sort())
  for (const { kind, provider_model } of examples)
    expect(provider_model).toBe(`service_providers_${kind}.${kind}provider`)
  expect(new Set(examples.map(({ app }) => app.slug)).size).toBe(examples.length)
  expect(new Set(examples.map(({ provider }) => provider.name)).size).toBe(examples.length)
})

const keys = new Map(
  bootstrap.entries.flatMap(({ identifiers, model }) =>
    typeof identifiers.pk === 'string' ? [[identifiers.pk, registry.byName(model)?.family]] : [],
  ),
)

test.each(examples)(
  'the example of $kind has no fault and refers to bootstrap rows of the right kind',
  ({ app, provider_model, provider }) => {
    for (const [name, sent] of [
      ['service_core.application', app],
      [provider_model, provider],
    ] as const) {
      const model = registry.byName(name) ?? expect.fail(`there is no ${name}`)
      for (const member of model.members.values()) {
        const value = sent[member.name]
        if (value === undefined) expect(member.required, member.name).toBe(false)
        else expect(faultsOf(model, member.name, value), member.name).toEqual([])
        for (const key of [value].flat())
          if (member.reference && key != null) expect(keys.get(String(key)), member.name).toBe(member.reference.family)
      }
      expect(Object.keys(sent).filter((member) => !model.members.has(member))).toEqual([])
      const initial = Object.fromEntries([...model.members.values()].map((member) => [member.name, member.initial]))
      expect(ruleFaults(model, { ...initial, ...sent })).toEqual([])
    }
  },
)

test('secrets of examples say that they are examples', () => {
  for (const { kind, provider } of examples) {
    const model = registry.kinds.get(kind) ?? expect.fail(`there is no ${kind}`)
    const secrets = [...model.members.values()].filter(({ secret, name }) => secret && provider[name] !== undefined)
    for (const { name } of secrets) expect(JSON.stringify(provider[name])).toContain('example-only')
  }
})
