import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { isObject, type JsonObject } from '../json-object.ts'

/** The schemas that others refer to, by name. */
export type Components = Map<string, unknown>

/** What the schema describes. Bodies have no `default`: generated clients send it, and reset what is stored. */
export type Use = 'parameter' | 'body' | 'answer'
type Node = { zodSchema: z.core.$ZodType; jsonSchema: z.core.JSONSchema.BaseSchema }

/**
 * The JSON Schema 2020-12 of a zod schema. Each part that has a name (`.meta({ id })`) becomes a component.
 *
 * @throws when two different schemas have one name
 */
export function toJsonSchema(schema: z.core.$ZodType, use: Use, components: Components): JsonObject {
  const { $schema, $defs = {}, ...converted } = convert(schema, use)
  for (const [name, found] of Object.entries($defs)) {
    const component = relocated(found)
    const known = components.get(name)
    if (known !== undefined && !isDeepStrictEqual(known, component)) throw new Error(`Two schemas are called ${name}.`)
    components.set(name, component)
  }
  return relocated(converted)
}

const convert = (schema: z.core.$ZodType, use: Use) =>
  z.toJSONSchema(schema, {
    io: use === 'answer' ? 'output' : 'input',
    unrepresentable: 'any',
    override: (node) => fix(node, use),
  })

const relocated = (schema: object): JsonObject =>
  JSON.parse(JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/'), (_, node) => withoutNull(node))

/** A value of one type, or null, as `type: [string, null]`: generators make a type of two variants of an `anyOf`. */
function withoutNull(node: unknown): unknown {
  if (!isObject(node) || !Array.isArray(node.anyOf)) return node
  const { anyOf, ...others } = node
  const [only, none, more] = anyOf
  if (!isObject(only) || typeof only.type !== 'string' || !isDeepStrictEqual(none, { type: 'null' }) || more)
    return node
  const choices = Array.isArray(only.enum) ? { enum: [...only.enum, null] } : {}
  return { ...only, ...choices, ...others, type: [only.type, 'null'] }
}

/** zod describes the texts of a query string as texts; a reader needs the types that they are converted to. */
function fix({ zodSchema, jsonSchema }: Node, use: Use): void {
  if (zodSchema instanceof z.ZodPipe && use !== 'answer') {
    const { in: from, out: to } = zodSchema.def
    if (!(from instanceof z.ZodTransform) && !(to instanceof z.ZodTransform)) replaceBy(jsonSchema, convert(to, use))
    // Every number in a query string is an integer.
    if (jsonSchema.type === 'number') jsonSchema.type = 'integer'
  }
  if (zodSchema instanceof z.ZodDefault && isOfType(zodSchema.def.defaultValue, jsonSchema.type))
    jsonSchema.default = zodSchema.def.defaultValue
  if (use === 'body') delete jsonSchema.default
  if (zodSchema instanceof z.ZodObject && isDeepStrictEqual(jsonSchema.additionalProperties, {}))
    jsonSchema.additionalProperties = true
  // Generators of older languages know only enums, and openapi-generator's Java compiles none of a `number`.
  if (jsonSchema.const !== undefined) {
    if (Number.isInteger(jsonSchema.const)) jsonSchema.type = 'integer'
    jsonSchema.enum = [jsonSchema.const]
    delete jsonSchema.const
  }
  omitImplied(jsonSchema)
}

function replaceBy(
  jsonSchema: z.core.JSONSchema.BaseSchema,
  { $schema, ...other }: z.core.JSONSchema.BaseSchema,
): void {
  for (const key of Object.keys(jsonSchema)) if (key !== 'description') Reflect.deleteProperty(jsonSchema, key)
  Object.assign(jsonSchema, other)
}

/** A default has the type after conversion. It is shown only where a request sends that type, too. */
function isOfType(value: unknown, type: unknown): boolean {
  if (Array.isArray(value)) return type === 'array'
  if (typeof value === 'number') return type === 'integer' || type === 'number'
  return typeof value === type
}

/** Removes what follows from the rest of the schema. */
function omitImplied(jsonSchema: z.core.JSONSchema.BaseSchema): void {
  const { format, minimum, maximum } = jsonSchema
  if (format === 'uuid' || format === 'date-time' || jsonSchema.type === 'boolean') delete jsonSchema.pattern
  if (minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
  if (isDeepStrictEqual(jsonSchema.propertyNames, { type: 'string' })) delete jsonSchema.propertyNames
}
