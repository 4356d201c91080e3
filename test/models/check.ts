import { describe, expect, test } from 'vitest'
import type { Field, Model, Values } from '../../src/models/define.ts'
import type { ProviderModel } from '../../src/models/provider.ts'
import type { Syntax } from '../../src/models/syntax.ts'

export function fieldOf(model: Model, name: string): Field {
  const field = model.fields.get(name)
  if (field === undefined) throw new Error(`${model.name} has no field ${name}`)
  return field
}

/** @returns the errors of a value, with the path inside the value: `0.url: May not be empty.` */
export function errorsOf(model: Model, name: string, value: unknown): string[] {
  const parsed = fieldOf(model, name).schema.safeParse(value)
  return (parsed.error?.issues ?? []).map(({ path, message }) =>
    path.length > 0 ? `${path.join('.')}: ${message}` : message,
  )
}

export function ruleErrors(model: Model, values: Values): string[] {
  const errors: string[] = []
  model.rules?.(values, (path, _code, message) => errors.push(`${path.join('.')}: ${message}`))
  return errors
}

/** A field, values that it accepts, and values that it refuses with a part of the message. */
export type Row = readonly [
  field: string,
  good: readonly unknown[],
  bad: readonly (readonly [value: unknown, message: string])[],
]

/** One test for each field of the table. */
export function testFields(model: Model, rows: readonly Row[]): void {
  for (const [name, good, bad] of rows) {
    test(`${model.displayName}: ${name} takes ${good.length} values and refuses ${bad.length}`, () => {
      for (const value of good) expect(errorsOf(model, name, value), JSON.stringify(value)?.slice(0, 200)).toEqual([])
      for (const [value, message] of bad) {
        expect(errorsOf(model, name, value), JSON.stringify(value)?.slice(0, 200)).toContainEqual(
          expect.stringContaining(message),
        )
      }
    })
  }
}

export type Expected = {
  verboseName: string
  component: string
  /** Default: false. */
  backchannel?: boolean | 'only'
  /** Default: true. */
  flows?: boolean
  required: readonly string[]
  secrets: readonly string[]
  /** Fields that the service generates, with the length of the value. */
  generated?: Readonly<Record<string, number>>
  /** Fields that refer to rows, with their reference target, except those that all kinds have. */
  references?: Readonly<Record<string, string>>
  defaults: Values
}

const flowDefaults = { authentication_flow: null, invalidation_flow: null }
const flowReferences = { authentication_flow: 'flow', authorization_flow: 'flow', invalidation_flow: 'flow' }

/** Compares a kind with the table of kinds: names, required, secret, generated and reference fields, and all defaults. */
export function testKind(model: ProviderModel, { flows = true, ...expected }: Expected): void {
  const fields = [...model.fields.values()]
  const { kind } = model.provider

  test(`provider ${kind} has its names`, () => {
    expect(model.provider).toMatchObject({
      verboseName: expected.verboseName,
      component: expected.component,
      backchannel: expected.backchannel ?? false,
    })
    expect(model).toMatchObject({
      name: `service_providers_${kind}.${kind}provider`,
      resource: `${kind}provider`,
      discriminator: { kind },
    })
  })

  test(`provider ${kind} requires exactly the required fields`, () => {
    const required = fields.filter((field) => field.required).map(({ name }) => name)
    expect(required.sort()).toEqual(['name', ...(flows ? ['authorization_flow'] : []), ...expected.required].sort())
  })

  test(`provider ${kind} seals its secrets and generates missing values`, () => {
    expect(
      fields
        .filter(({ secret }) => secret)
        .map(({ name }) => name)
        .sort(),
    ).toEqual([...expected.secrets].sort())
    for (const name of expected.secrets) expect(fieldOf(model, name).storage).toEqual({ in: 'secrets' })
    const made = fields.flatMap(({ name, generate }) => (generate === undefined ? [] : [[name, generate()] as const]))
    expect(Object.fromEntries(made.map(([name, value]) => [name, value.length]))).toEqual(expected.generated ?? {})
    for (const [name, value] of made) expect(errorsOf(model, name, value)).toEqual([])
    for (const { name, generate } of fields) if (generate !== undefined) expect(generate(), name).not.toBe(generate())
  })

  test(`provider ${kind} has the defaults of the table, and accepts them when sent`, () => {
    const optional = fields.filter(({ required, generate }) => !required && generate === undefined)
    const defaults = { ...(flows ? flowDefaults : {}), property_mappings: [], ...expected.defaults }
    expect(Object.fromEntries(optional.map(({ name, initial }) => [name, initial]))).toEqual(defaults)
    for (const { name, initial } of optional) expect(errorsOf(model, name, initial), name).toEqual([])
  })

  test(`provider ${kind} declares its references`, () => {
    const found = fields.flatMap(({ name, reference }) => (reference === undefined ? [] : [[name, reference.target]]))
    expect(Object.fromEntries(found)).toEqual({
      ...(flows ? flowReferences : {}),
      property_mappings: 'propertymapping',
      ...expected.references,
    })
  })
}

/** Any key: these tests do not look up the row. */
export const key = '6f7e0000-0000-4000-8000-000000000301'

/** All flow designations, written out again to test the list of the model. */
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

export const referenceRow = (field: string): Row => [field, [null, key, key.toUpperCase()], notUuid]

export const keysRow = (field: string): Row => [
  field,
  [[], [key]],
  [
    [null, 'Must be a list.'],
    [[key, 'x'], '1: Must be a UUID.'],
    [[key, key.toUpperCase()], 'Must not hold a key twice.'],
    [Array.from({ length: 501 }, () => key), 'Must be at most 500 entries.'],
  ],
]

export const booleanRow = (field: string): Row => [
  field,
  [true, false],
  [
    ['true', 'Must be true or false.'],
    [null, 'Must be true or false.'],
  ],
]

export const choiceRow = (field: string, ...choices: readonly string[]): Row => [
  field,
  choices,
  [
    ['sometimes', `Must be one of: ${choices.join(', ')}.`],
    ['', 'Must be one of'],
    [null, 'Must be one of'],
  ],
]

export const durationRow = (field: string): Row => [
  field,
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
export const textRow = (field: string, max: number, { filled = false } = {}): Row => [
  field,
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

export const httpUrlRow = (field: string): Row => [
  field,
  ['https://app.example.com', 'http://localhost:9000/x?y=z', 'http://[2001:db8::1]:8080/'],
  [
    ['app.example.com', 'Must be a URL that starts with http:// or https://.'],
    ['ftp://app.example.com', 'Must be a URL'],
    ['javascript:alert(1)', 'Must be a URL'],
    ['https://ada:secret@app.example.com', 'May not hold a user name or password.'],
    [null, 'Must be text.'],
  ],
]

/** Texts that a syntax accepts, and texts that it refuses with a part of the message. */
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
