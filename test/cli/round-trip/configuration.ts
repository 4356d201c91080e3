import fc from 'fast-check'
import { z } from 'zod'
import { type Blueprint, type Entry, Find, KeyOf } from '../../../src/document/document.ts'
import type { Field, Model } from '../../../src/models/define.ts'
import { permissionNames, type Registry } from '../../../src/models/registry.ts'
import { kinds } from '../../support/examples.ts'
import { keyPair, name, slug, values } from './values.ts'

/** A random configuration as a blueprint: rows of every model, of all provider kinds, that refer to each other. */

type Draw = <Value>(arbitrary: fc.Arbitrary<Value>) => Value

type Made = { readonly id: string; readonly model: Model; readonly fields: Readonly<Record<string, unknown>> }

/** Rows of the first start, by reference target, which random rows refer to, too. */
const shipped: Readonly<Record<string, readonly Record<string, unknown>[]>> = {
  flow: [
    { slug: 'default-authentication', designation: 'authentication' },
    { slug: 'default-authorization-explicit', designation: 'authorization' },
    { slug: 'default-invalidation', designation: 'invalidation' },
  ],
  certificatekeypair: [{ name: 'Gatewright self-signed' }],
  role: [{ name: 'Application deployer' }],
  group: [{ name: 'gatewright Deployers' }],
}

export function configuration(registry: Registry): fc.Arbitrary<Blueprint> {
  return fc.gen().map((gen) => {
    const draw: Draw = (arbitrary) => gen(() => arbitrary)
    return new Configuration(registry, draw).blueprint()
  })
}

class Configuration {
  readonly #registry: Registry
  readonly #draw: Draw
  readonly #made: Made[] = []
  readonly #entries: Entry[] = []
  /** Names by table, in lower case. */
  readonly #taken = new Map<string, Set<string>>()
  readonly #owned = new Set<string>()

  constructor(registry: Registry, draw: Draw) {
    this.#registry = registry
    this.#draw = draw
  }

  blueprint(): Blueprint {
    this.#changeShipped()
    this.#times(4, () => this.#add('service_flows.flow', ['slug'], { slug: this.#unique('flows', slug) }))
    for (const kind of [...kinds, ...kinds, 'not_yet_a_kind']) this.#addMapping(kind)
    this.#times(3, () => this.#addNamed('service_crypto.certificatekeypair', this.#draw(keyPair)))
    this.#times(3, () => {
      const permissions = this.#draw(fc.subarray([...permissionNames(this.#registry)], { maxLength: 6 }))
      this.#addNamed('service_rbac.role', { permissions })
    })
    this.#times(5, () => this.#addNamed('service_core.group', { users: this.#draw(fc.subarray(['admin'])) }))
    this.#times(2, () =>
      this.#addNamed('service_rbac.trustedissuer', {
        issuer: this.#unique(
          'issuers',
          fc.constantFrom('https://ci.example.com', 'https://ci.example.com/', 'http://localhost:80/a'),
        ),
        audience: this.#draw(name),
        ...{ jwks: null, algorithms: this.#draw(fc.shuffledSubarray(['ES256', 'RS256', 'EdDSA'], { minLength: 1 })) },
        ...{ clock_skew: this.#draw(fc.nat(300)), rules: this.#draw(rules) },
      }),
    )
    const models = [...this.#registry.kinds.values()]
    for (const model of [...models, ...this.#draw(fc.subarray(models))]) this.#addNamed(model.name, {})
    this.#times(6, () => {
      const fields = { name: this.#draw(name), slug: this.#unique('applications', slug), ...this.#providers() }
      this.#add('service_core.application', ['slug'], fields)
    })
    return { version: 1, metadata: { name: 'random' }, entries: this.#entries }
  }

  #times(count: number, work: () => void): void {
    for (let done = 0; done < count; done += 1) work()
  }

  #some<Item>(all: readonly Item[], most: number): Item[] {
    return this.#draw(fc.shuffledSubarray([...all], { maxLength: Math.min(most, all.length) }))
  }

  #unique(table: string, arbitrary: fc.Arbitrary<string>): string {
    const taken = this.#taken.getOrInsertComputed(table, () => new Set())
    let text = this.#draw(arbitrary)
    while (taken.has(text.toLowerCase())) text = `${text}x`.slice(-50)
    taken.add(text.toLowerCase())
    return text
  }

  #changeShipped(): void {
    const change = (model: string, identifiers: Entry['identifiers'], attrs: Entry['attrs']) => {
      if (this.#draw(fc.boolean())) this.#entries.push({ model, state: 'present', identifiers, attrs })
    }
    change(
      'service_flows.flow',
      { slug: 'default-recovery' },
      { title: this.#draw(values.title as fc.Arbitrary<string>) },
    )
    change('service_mappings.propertymapping', { managed: 'gatewright/scim/user' }, { expression: 'return 1\n' })
    change('service_crypto.certificatekeypair', { name: 'Gatewright self-signed' }, this.#draw(keyPair))
    change('service_core.group', { name: 'gatewright Admins' }, { attributes: { a: 1 } })
  }

  #addMapping(kind: string): void {
    const managed = this.#draw(fc.option(name.map((each) => ` ${each}`)))
    // Mappings of several kinds may have one name, where no provider takes both.
    const called = managed === null ? name : fc.constantFrom('a', 'b').map((text) => `${text} ${kind}`)
    const own = this.#unique(`mappings ${kind === 'proxy' ? 'oauth2' : kind}`, called)
    const scope = { scope_name: kind === 'oauth2' ? this.#draw(fc.constantFrom('', 'roles', 'a:b')) : '' }
    if (managed === null)
      this.#add('service_mappings.propertymapping', ['name', 'kind'], { name: own, kind, managed, ...scope })
    else
      this.#add('service_mappings.propertymapping', ['managed'], {
        ...{ name: own, kind, ...scope },
        managed: this.#unique('managed', fc.constant(managed)),
      })
  }

  #addNamed(model: string, fields: Made['fields']): void {
    const table = this.#registry.byName(model)?.table ?? ''
    this.#add(model, ['name'], { name: this.#unique(table, name), ...fields })
  }

  /** Each provider has one application at most. */
  #providers() {
    const free = this.#made.filter(({ id, model }) => model.target === 'provider' && !this.#owned.has(id))
    const take = (found: readonly Made[]) => {
      for (const { id } of found) this.#owned.add(id)
      return found.map(({ id }) => new KeyOf(id))
    }
    const [provider = null] = take(this.#some(free, 1))
    const backchannel = this.#registry.targets.get('backchannel provider')?.only?.values ?? []
    const fitting = free.filter(
      ({ id, model }) => backchannel.includes(model.discriminator.kind ?? '') && !this.#owned.has(id),
    )
    return { provider, backchannel_providers: take(this.#some(fitting, 2)) }
  }

  #add(modelName: string, identified: readonly string[], given: Made['fields']): void {
    const model = this.#registry.byName(modelName)
    if (model === undefined) throw new Error(`there is no ${modelName}`)
    const fields: Record<string, unknown> = { ...given }
    const isPair = model.target === 'certificatekeypair'
    for (const field of isPair ? [] : model.fields.values()) {
      if (Object.hasOwn(given, field.name)) continue
      const isLeftOut = !field.required && this.#draw(fc.nat(4)) === 0
      if (!isLeftOut) fields[field.name] = this.#value(field)
    }
    if (model.unique.includes('client_id') && fields.client_id !== undefined)
      fields.client_id = this.#unique('client_id', fc.constant(String(fields.client_id)))
    keepRules(fields, this.#draw(fc.boolean()))
    const id = `${this.#made.length}`
    const isIdentifier = ([each]: [string, unknown]) => identified.includes(each)
    const all = Object.entries(fields)
    this.#entries.push({
      ...{ model: modelName, id, state: 'present' as const },
      identifiers: Object.fromEntries(all.filter(isIdentifier)),
      attrs: Object.fromEntries(all.filter((each) => !isIdentifier(each))),
    })
    this.#made.push({ id, model, fields })
  }

  #value(field: Field): unknown {
    const { reference, schema } = field
    if (reference !== undefined) return this.#reference(reference, schema.safeParse(null).success)
    const bare = schema instanceof z.ZodNullable ? schema.unwrap() : schema
    if (bare instanceof z.ZodBoolean) return this.#draw(fc.boolean())
    if (bare instanceof z.ZodEnum) return this.#draw(fc.constantFrom(...bare.options))
    const found = values[field.name]
    if (found === undefined) throw new Error(`values.ts has no values for ${field.name}`)
    return this.#draw(found)
  }

  #reference({ target, only, many }: NonNullable<Field['reference']>, isNullable: boolean): unknown {
    const fits = (fields: Made['fields']) => only === undefined || only.values.includes(String(fields[only.column]))
    const own = this.#made
      .filter(({ model, fields }) => model.target === target && fits(fields))
      .map(({ id }) => new KeyOf(id))
    const old = (shipped[target] ?? []).filter(fits).map(({ designation, ...by }) => {
      const [model] = this.#registry.targets.get(target)?.models ?? []
      return new Find(model?.name ?? '', by)
    })
    const all = [...own, ...old]
    if (many) return this.#some(all, 4)
    if (all.length === 0 || (isNullable && this.#draw(fc.nat(3)) === 0)) return null
    return this.#draw(fc.constantFrom(...all))
  }
}

const claim = fc.oneof(
  // Not a text that looks like a placeholder: no claim does.
  fc.stringMatching(/^[a-zé日][-\w: /]{0,20}$/).map((text) => text.trim()),
  fc.constantFrom('refs/heads/*', '*/shop', '7', 'true', 'null', '$X', '- a'),
)
const rule = fc.record({
  name: fc.stringMatching(/^[a-zé日][-\w: ]{0,20}$/),
  claims: fc.record(
    { repository: fc.constant('acme/shop'), sub: claim, ref: claim, environment: claim },
    { requiredKeys: ['repository'], noNullPrototype: true },
  ),
  user: fc.constantFrom('admin', 'pipeline-shop', 'not-there'),
  owners: fc.subarray(['team-a', 'Team b']),
  stacks: fc.subarray(['one', 'corp/two']),
})
const rules = fc.uniqueArray(rule, { selector: (each) => each.name.normalize('NFC').trim(), maxLength: 3 })

/** What rules that span fields ask for. */
function keepRules(fields: Record<string, unknown>, isEmpty: boolean): void {
  if (fields.client_type === 'public' && isEmpty) fields.client_secret = ''
  if (fields.mode === undefined || fields.mode === 'proxy') fields.internal_host &&= 'https://internal.example.com'
  if ('external_host' in fields) fields.internal_host ??= 'https://internal.example.com'
  if (fields.mode === 'forward_domain') fields.cookie_domain ??= 'example.com'
  if (fields.basic_auth_enabled === true) {
    fields.basic_auth_password_attribute ??= 'password'
    fields.basic_auth_user_attribute ??= 'user'
  }
  // What signs, serves TLS or encrypts takes a key that fits: the pairs here are of EC, and some have none.
  for (const name of ['signing_kp', 'signing_key', 'encryption_kp', 'encryption_key', 'certificate'])
    if (fields[name] !== undefined) fields[name] = null
}
