import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { parse } from '../../src/document/yaml.ts'
import { loadRegistry } from '../../src/models/registry.ts'
import { compile } from '../../src/plan/compile.ts'
import { designations, errorsOf, ruleErrors } from './check.ts'

const registry = await loadRegistry()
const root = new URL('../../', import.meta.url)
const bootstrap = await parse(readFileSync(new URL('blueprints/bootstrap.yaml', root), 'utf8'))
const attrs = bootstrap.entries.map((entry) => entry.attrs)

const fields = z.record(z.string(), z.unknown())
const submission = z.strictObject({ app: fields, provider_model: z.string(), provider: fields })

const examples = readdirSync(new URL('examples/', root))
  .filter((file) => file.endsWith('.json'))
  .map((file) => ({
    kind: file.replace('.json', ''),
    ...submission.parse(JSON.parse(readFileSync(new URL(`examples/${file}`, root), 'utf8'))),
  }))

test('the bootstrap blueprint compiles without an error, and only creates', () => {
  expect(compile(bootstrap, registry).errors.list).toEqual([])
  for (const { state } of bootstrap.entries) expect(state).toBe('created')
})

test('the bootstrap blueprint creates the rows that submissions refer to', () => {
  const served = attrs.flatMap(({ designation }) => designation ?? [])
  expect(new Set(served)).toEqual(new Set(designations))
  const managed = attrs.flatMap((entry) => entry.managed ?? [])
  expect(managed).toEqual(
    expect.arrayContaining(
      ['openid', 'email', 'profile', 'offline_access'].map((scope) => `gatewright/oauth2/scope-${scope}`),
    ),
  )
  const scopes = attrs.filter(({ kind }) => kind === 'oauth2')
  for (const each of scopes) expect(each.managed).toBe(`gatewright/oauth2/scope-${each.scope_name}`)
  expect(attrs).toContainEqual({ name: 'gatewright Admins', is_superuser: true })
  for (const key of ['pk', 'name', 'slug', 'managed']) {
    const values = bootstrap.entries.flatMap((entry) => entry.identifiers[key] ?? entry.attrs[key] ?? [])
    expect(new Set(values).size, key).toBe(values.length)
  }
})

test('each kind has one example, with names of its own', () => {
  expect(examples.map(({ kind }) => kind).sort()).toEqual([...registry.kinds.keys()].sort())
  for (const { kind, provider_model } of examples)
    expect(provider_model).toBe(`service_providers_${kind}.${kind}provider`)
  expect(new Set(examples.map(({ app }) => app.slug)).size).toBe(examples.length)
  expect(new Set(examples.map(({ provider }) => provider.name)).size).toBe(examples.length)
})

const keys = new Map(
  bootstrap.entries.flatMap(({ identifiers, model }) =>
    typeof identifiers.pk === 'string' ? [[identifiers.pk, registry.byName(model)?.target]] : [],
  ),
)

test.each(examples)(
  'the example of $kind has no error and refers to bootstrap rows of the right kind',
  ({ app, provider_model, provider }) => {
    for (const [name, sent] of [
      ['service_core.application', app],
      [provider_model, provider],
    ] as const) {
      const model = registry.byName(name) ?? expect.fail(`there is no ${name}`)
      for (const field of model.fields.values()) {
        const value = sent[field.name]
        if (value === undefined) expect(field.required, field.name).toBe(false)
        else expect(errorsOf(model, field.name, value), field.name).toEqual([])
        for (const key of [value].flat())
          if (field.reference && key != null) expect(keys.get(String(key)), field.name).toBe(field.reference.target)
      }
      expect(Object.keys(sent).filter((field) => !model.fields.has(field))).toEqual([])
      const initial = Object.fromEntries([...model.fields.values()].map((field) => [field.name, field.initial]))
      expect(ruleErrors(model, { ...initial, ...sent })).toEqual([])
    }
  },
)

test('secrets of examples are recognizable as examples', () => {
  for (const { kind, provider } of examples) {
    const model = registry.kinds.get(kind) ?? expect.fail(`there is no ${kind}`)
    const secrets = [...model.fields.values()].filter(({ secret, name }) => secret && provider[name] !== undefined)
    // They may hold a password, and the example's do not.
    if (kind === 'rac')
      expect(provider.settings).toEqual({ 'enable-audio': 'false', 'resize-method': 'display-update' })
    else for (const { name } of secrets) expect(JSON.stringify(provider[name])).toContain('example-only')
  }
})
