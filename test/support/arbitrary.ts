import fc from 'fast-check'
import type { Json } from './openapi.ts'

/** Values that fit a JSON Schema, and values that nearly do. */

/** Values that exist in the installation, by field or parameter, so that some requests succeed. */
export type Known = ReadonlyMap<string, readonly unknown[]>

export type Values = (schema: Json) => fc.Arbitrary<unknown>

export function valuesOf(components: Readonly<Record<string, Json>>, known: Known): Values {
  const made = new Map<string, fc.Arbitrary<unknown>>()
  const of: Values = (schema) => {
    const { $ref, const: only, enum: choices, anyOf, oneOf, type } = schema
    if (typeof $ref === 'string') {
      const name = $ref.split('/').at(-1) ?? ''
      const found = made.get(name) ?? of(components[name] ?? {})
      made.set(name, found)
      return found
    }
    if (only !== undefined) return fc.constant(only)
    if (Array.isArray(choices)) return fc.constantFrom(...choices)
    const variants = [anyOf ?? oneOf ?? []].flat()
    if (variants.length > 0) return fc.oneof(...variants.map((each) => of(each as Json)))
    if (Array.isArray(type)) return fc.oneof(...type.map((each) => of({ ...schema, type: each })))
    switch (type) {
      case 'null':
        return fc.constant(null)
      case 'string':
        return textOf(schema)
      case 'integer':
      case 'number':
        return integerOf(schema)
      case 'boolean':
        return fc.boolean()
      case 'array':
        return fc.array(of(isJson(schema.items) ? schema.items : {}), { maxLength: 4 })
      case 'object':
        return objectOf(schema, of, known)
      default:
        return fc.jsonValue({ maxDepth: 2 })
    }
  }
  return of
}

const zone = fc.constantFrom('Z', 'Z', '+01:00', '-08:00', '+15:59', '+16:00', '-23:59')

function textOf({ format, pattern, minLength = 0, maxLength = 60 }: Json): fc.Arbitrary<string> {
  if (format === 'uuid') return fc.uuid()
  if (format === 'date-time')
    return fc.tuple(fc.date({ noInvalidDate: true }), zone).map(([at, of]) => at.toISOString().replace('Z', of))
  const [min, max] = [Number(minLength), Math.min(Number(maxLength), 60)]
  if (typeof pattern === 'string') return fc.stringMatching(new RegExp(pattern), { maxLength: max })
  return fc.string({ minLength: min, maxLength: max, unit: 'grapheme' })
}

const integerOf = ({ minimum = -1_000, maximum = 1_000 }: Json) =>
  fc.integer({ min: Number(minimum), max: Math.min(Number(maximum), 2 ** 31) })

/** Mostly a value that exists for this name. */
export const preferring = (known: readonly unknown[] | undefined, values: fc.Arbitrary<unknown>) =>
  known === undefined ? values : fc.oneof({ weight: 6, arbitrary: fc.constantFrom(...known) }, values)

function objectOf({ properties, required, additionalProperties }: Json, of: Values, known: Known) {
  const fields = Object.entries(isJson(properties) ? properties : {}).map(([name, schema]) => [
    name,
    preferring(known.get(name), of(isJson(schema) ? schema : {})),
  ])
  if (fields.length === 0 && isJson(additionalProperties))
    return fc.dictionary(fc.string({ maxLength: 8 }), of(additionalProperties), { maxKeys: 4 })
  const all: Record<string, fc.Arbitrary<unknown>> = Object.fromEntries(fields)
  return fc.record(all, { requiredKeys: [required ?? []].flat().map(String), noNullPrototype: true })
}

export const isJson = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Values that some field does not expect. */
export const odd: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    0,
    -1,
    1.5,
    2 ** 31,
    -(2 ** 63),
    1e300,
    '',
    ' ',
    '%',
    '*',
    '{}',
    "'; --",
    [],
    {},
    [[]],
    [null],
  ),
  fc.constantFrom(
    '\0',
    'a\ud800b',
    '\u0085',
    'x'.repeat(2_704),
    '😀'.repeat(500),
    '10000-01-01T00:00:00Z',
    '-0',
    '1e3',
  ),
  fc.jsonValue({ maxDepth: 2, stringUnit: 'binary' }),
)

type Change = { at: number; how: 'replace' | 'remove' | 'add' | 'wrap'; value: unknown; name: string }

const change: fc.Arbitrary<Change> = fc.record({
  at: fc.nat(200),
  how: fc.constantFrom('replace', 'replace', 'remove', 'add', 'wrap'),
  value: odd,
  name: fc.oneof(
    fc.constantFrom('__proto__', 'constructor', 'pk', 'code', 'non_field_errors', 'parent', ''),
    fc.string({ maxLength: 6 }),
  ),
})

/** The same with some fields replaced, left out, added or wrapped; often with none. */
export const mutated = (values: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc
    .tuple(values, fc.oneof(fc.constant([]), fc.array(change, { minLength: 1, maxLength: 3 })))
    .map(([value, changes]) => {
      const root = { value: structuredClone(value) }
      // A copy for each change: a shared object could come to contain itself.
      for (const each of changes) apply(root, structuredClone(each))
      return root.value
    })

type Place = { holder: Record<string, unknown>; name: string }

const places = (value: unknown): Place[] =>
  typeof value !== 'object' || value === null
    ? []
    : Object.entries(value).flatMap(([name, inner]) => [{ holder: value as Place['holder'], name }, ...places(inner)])

function apply(root: object, { at, how, value, name }: Change): void {
  const all = places(root)
  const place = all[at % all.length]
  if (place === undefined) return
  const { holder } = place
  const before = holder[place.name]
  if (how === 'remove' && !Array.isArray(holder)) delete holder[place.name]
  else if (how === 'wrap') holder[place.name] = [before, value]
  else if (how === 'add' && isJson(before))
    Object.defineProperty(before, name, { value, enumerable: true, configurable: true, writable: true })
  else holder[place.name] = value
}
