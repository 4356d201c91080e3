import { isObject, type JsonObject } from '../json-object.ts'
import type { Components } from './json-schema.ts'

/** Values by format, for schemas without an example of their own. */
const ofFormat: Readonly<Record<string, string>> = {
  'date-time': '2026-11-21T09:30:00.000Z',
  email: 'ada@example.com',
  uuid: '01a1fd66-cb34-7782-913d-bbffaaf714c9',
}

/** An example of a schema, put together from the examples of its parts. */
export function exampleOf(schema: JsonObject, components: Components): unknown {
  const { examples, default: initial, const: only, enum: choices, anyOf, oneOf, type, format } = schema
  if (typeof schema.$ref === 'string') {
    const named = components.get(schema.$ref.replace('#/components/schemas/', ''))
    return isObject(named) ? exampleOf(named, components) : undefined
  }
  for (const value of [first(examples), only, first(choices), initial]) if (value !== undefined) return value
  const variant = first(anyOf) ?? first(oneOf)
  if (isObject(variant)) return exampleOf(variant, components)
  switch (Array.isArray(type) ? type[0] : type) {
    case 'object':
      return ofProperties(schema, components)
    case 'array':
      return isObject(schema.items) ? [exampleOf(schema.items, components)] : []
    case 'string':
      return ofFormat[String(format)] ?? 'text'
    case 'integer':
    case 'number':
      return typeof schema.minimum === 'number' ? schema.minimum : 1
    case 'boolean':
      return true
    default:
      return undefined
  }
}

function ofProperties({ properties }: JsonObject, components: Components): JsonObject {
  if (!isObject(properties)) return {}
  const examples = Object.entries(properties).map(([name, property]) => [
    name,
    isObject(property) ? exampleOf(property, components) : undefined,
  ])
  return Object.fromEntries(examples.filter(([, value]) => value !== undefined))
}

const first = (values: unknown): unknown => (Array.isArray(values) ? values[0] : undefined)
