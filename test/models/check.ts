import { describe, expect, test } from 'vitest'
import type { Member, Model, Values } from '../../src/models/define.ts'
import type { ProviderModel } from '../../src/models/provider.ts'
import type { Syntax } from '../../src/models/syntax.ts'

export function memberOf(model: Model, name: string): Member {
  const member = model.members.get(name)
  if (member === undefined) throw new Error(`${model.name} has no member ${name}`)
  return member
}

/** @returns what is said of a value, with where inside the value: `0.url: May not be empty.` */
export function faultsOf(model: Model, name: string, value: unknown): string[] {
  const parsed = memberOf(model, name).schema.safeParse(value)
  return (parsed.error?.issues ?? []).map(({ path, message }) =>
    path.length > 0 ? `${path.join('.')}: ${message}` : message,
  )
}

export function ruleFaults(model: Model, values: Values): string[] {
  const faults: string[] = []
  model.rules?.(values, (path, message) => faults.push(`${path.join('.')}: ${message}`))
  return faults
}

/** A member, values that it takes, and values that it refuses with a part of what is said. */
export type Row = readonly [
  member: string,
  good: readonly unknown[],
  bad: readonly (readonly [value: unknown, message: string])[],
]

/** One test for each member of the table. */
export function testMembers(model: Model, rows: readonly Row[]): void {
  for (const [name, good, bad] of rows) {
    test(`${model.noun}: ${name} takes ${good.length} values and refuses ${bad.length}`, () => {
      for (const value of good) expect(faultsOf(model, name, value), JSON.stringify(value)?.slice(0, 200)).toEqual([])
      for (const [value, message] of bad) {
        expect(faultsOf(model, name, value), JSON.stringify(value)?.slice(0, 200)).toContainEqual(
          expect.stringContaining(message),
        )
      }
    })
  }
}

export type Expected = {
  verboseName: string
  component: string
  backchannel: boolean
  flows: boolean
  required: readonly string[]
  secrets: readonly string[]
  /** Members that the service makes up, with the length of what it makes. */
  madeUp?: Readonly<Record<string, number>>
  /** Members that refer to rows, with their family; those of all kinds aside. */
  references?: Readonly<Record<string, string>>
  defaults: Values
}

const flowDefaults = { authentication_flow: null, invalidation_flow: null }
const flowReferences = { authentication_flow: 'flow', authorization_flow: 'flow', invalidation_flow: 'flow' }

/** What the table of kinds says of one: names, what is required, secret, made up or referred to, and every default. */
export function testKind(model: ProviderModel, expected: Expected): void {
  const members = [...model.members.values()]
  const { kind } = model.provider

  test(`provider ${kind} is called as it must be`, () => {
    expect(model.provider).toMatchObject({
      verboseName: expected.verboseName,
      component: expected.component,
      backchannel: expected.backchannel,
    })
    expect(model).toMatchObject({
      name: `service_providers_${kind}.${kind}provider`,
      resource: `${kind}provider`,
      fixed: { kind },
    })
  })

  test(`provider ${kind} requires what it must, and no more`, () => {
    const required = members.filter((member) => member.required).map(({ name }) => name)
    expect(required.sort()).toEqual(
      ['name', ...(expected.flows ? ['authorization_flow'] : []), ...expected.required].sort(),
    )
  })

  test(`provider ${kind} seals its secrets and makes up what nobody sends`, () => {
    expect(
      members
        .filter(({ secret }) => secret)
        .map(({ name }) => name)
        .sort(),
    ).toEqual([...expected.secrets].sort())
    for (const name of expected.secrets) expect(memberOf(model, name).place).toEqual({ in: 'secrets' })
    const made = members.flatMap(({ name, makeUp }) => (makeUp === undefined ? [] : [[name, makeUp()] as const]))
    expect(Object.fromEntries(made.map(([name, value]) => [name, value.length]))).toEqual(expected.madeUp ?? {})
    for (const [name, value] of made) expect(faultsOf(model, name, value)).toEqual([])
    for (const { name, makeUp } of members) if (makeUp !== undefined) expect(makeUp(), name).not.toBe(makeUp())
  })

  test(`provider ${kind} has the defaults of the table, and takes them back when sent`, () => {
    const optional = members.filter(({ required, makeUp }) => !required && makeUp === undefined)
    const defaults = { ...(expected.flows ? flowDefaults : {}), property_mappings: [], ...expected.defaults }
    expect(Object.fromEntries(optional.map(({ name, initial }) => [name, initial]))).toEqual(defaults)
    for (const { name, initial } of optional) expect(faultsOf(model, name, initial), name).toEqual([])
  })

  test(`provider ${kind} knows what it refers to`, () => {
    const found = members.flatMap(({ name, reference }) => (reference === undefined ? [] : [[name, reference.family]]))
    expect(Object.fromEntries(found)).toEqual({
      ...(expected.flows ? flowReferences : {}),
      property_mappings: 'propertymapping',
      ...expected.references,
    })
  })
}

/** Some key; what it names is looked up elsewhere. */
export const key = '6f7e0000-0000-4000-8000-000000000301'

/** Everything that a flow may be for: written out again, because the list of the model is what it is held against. */
export const designations = [
  'authentication',
  'authorization',
  'enrollment',
  'invalidation',
  'recovery',
  'stage_configuration',
  'unenrollment',
] as const

const notUuid = [
  ['not-a-uuid', 'Must be a UUID.'],
  [7, 'Must be'],
] as const

export const referenceRow = (member: string): Row => [member, [null, key, key.toUpperCase()], notUuid]

export const keysRow = (member: string): Row => [
  member,
  [[], [key]],
  [
    [null, 'Must be a list.'],
    [[key, 'x'], '1: Must be a UUID.'],
    [[key, key.toUpperCase()], 'Must not hold a key twice.'],
    [Array.from({ length: 501 }, () => key), 'Must be at most 500 entries.'],
  ],
]

export const booleanRow = (member: string): Row => [
  member,
  [true, false],
  [
    ['true', 'Must be true or false.'],
    [null, 'Must be true or false.'],
  ],
]

export const choiceRow = (member: string, ...choices: readonly string[]): Row => [
  member,
  choices,
  [
    ['sometimes', `Must be one of: ${choices.join(', ')}.`],
    ['', 'Must be one of'],
    [null, 'Must be one of'],
  ],
]

export const durationRow = (member: string): Row => [
  member,
  [
    'hours=1',
    'hours=1;minutes=30',
    'minutes=-5',
    'days=0.5',
    'weeks=1;days=1;hours=1;minutes=1;seconds=1;milliseconds=1;microseconds=1',
  ],
  [
    ['', 'Must be a duration such as hours=1;minutes=30.'],
    ['1h', 'Must be a duration'],
    ['fortnights=1', 'fortnights is none of'],
    [60, 'Must be text.'],
  ],
]

/** Texts: `filled` ones may not be empty. */
export const textRow = (member: string, max: number, { filled = false } = {}): Row => [
  member,
  ['x', 'x'.repeat(max), ...(filled ? [] : [''])],
  [
    ['x'.repeat(max + 1), `Must be at most ${max} characters.`],
    ['a\0b', 'NUL'],
    ['\ud800', 'surrogate'],
    [1, 'Must be text.'],
    [null, 'Must be text.'],
    ...(filled
      ? ([
          ['', 'May not be empty.'],
          ['  ', 'May not be empty.'],
        ] as const)
      : []),
  ],
]

export const httpUrlRow = (member: string): Row => [
  member,
  ['https://app.example.com', 'http://localhost:9000/x?y=z', 'http://[2001:db8::1]:8080/'],
  [
    ['app.example.com', 'Must be a URL that starts with http:// or https://.'],
    ['ftp://app.example.com', 'Must be a URL'],
    ['javascript:alert(1)', 'Must be a URL'],
    ['https://ada:secret@app.example.com', 'May not hold a user name or password.'],
    [null, 'Must be text.'],
  ],
]

/** Texts that a syntax takes, and texts that it refuses with a part of what is said. */
export type SyntaxTable = {
  check: Syntax
  good: readonly string[]
  bad: readonly (readonly [text: string, message: string])[]
}

export function testSyntaxes(tables: Readonly<Record<string, SyntaxTable>>): void {
  describe.each(Object.entries(tables))('%s', (_, { check, good, bad }) => {
    test.each(good.map((text) => [text]))('takes %j', (text) => {
      expect(check(text)).toBeUndefined()
    })

    test.each(bad.map(([text, message]) => [text, message]))('refuses %j', (text, message) => {
      expect(check(text)).toContain(message)
    })
  })
}
