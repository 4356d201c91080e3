import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { isObject, type JsonObject } from '../json-object.ts'

/** The schemas that others refer to, by name. */
export type Components = Map<string, unknown>

type Node = { zodSchema: z.core.$ZodType; jsonSchema: z.core.JSONSchema.BaseSchema }

/** The options by which zod makes JSON Schema 2020-12. */
export const conversion = { target: 'draft-2020-12', unrepresentable: 'any', override } as const

/** Sets the types to which texts of a query string are converted: a reader needs them, and zod describes the texts. */
function override({ zodSchema, jsonSchema }: Node): void {
  if (zodSchema instanceof z.ZodPipe) {
    const { in: from, out: to } = zodSchema.def
    if (!(from instanceof z.ZodTransform) && !(to instanceof z.ZodTransform)) replaceBy(jsonSchema, to)
    // Every number in a query string is an integer.
    if (jsonSchema.type === 'number') jsonSchema.type = 'integer'
  }
  if (zodSchema instanceof z.ZodDefault) {
    delete jsonSchema.default
    if (isOfType(zodSchema.def.defaultValue, jsonSchema.type)) jsonSchema.default = zodSchema.def.defaultValue
  }
  if (zodSchema instanceof z.ZodObject && isDeepStrictEqual(jsonSchema.additionalProperties, {}))
    jsonSchema.additionalProperties = true
  // Generators of older languages know only enums, and openapi-generator's Java compiles none of a `number`.
  if (jsonSchema.const !== undefined) {
    if (Number.isInteger(jsonSchema.const)) jsonSchema.type = 'integer'
    jsonSchema.enum = [jsonSchema.const]
    delete jsonSchema.const
  }
  // openapi-generator makes a class of a boolean or a list that Java does not compile: the description says what it takes.
  const variants = zodSchema instanceof z.ZodUnion ? zodSchema.def.options : []
  if ([z.ZodBoolean, z.ZodArray].every((type) => variants.some((each) => each instanceof type))) delete jsonSchema.anyOf
  omitImplied(jsonSchema)
}

function replaceBy(jsonSchema: z.core.JSONSchema.BaseSchema, schema: z.core.$ZodType): void {
  const { $schema, ...other } = z.toJSONSchema(schema, { ...conversion, io: 'input' })
  for (const key of Object.keys(jsonSchema)) if (key !== 'description') Reflect.deleteProperty(jsonSchema, key)
  Object.assign(jsonSchema, other)
}

/** A default has the type after conversion. It is shown only where a request sends that type, too. */
function isOfType(value: unknown, type: unknown): boolean {
  if (Array.isArray(value)) return type === 'array'
  if (typeof value === 'number') return type === 'integer' || type === 'number'
  return typeof value === type
}

/** Removes the rules that follow from the rest of the schema. */
function omitImplied(jsonSchema: z.core.JSONSchema.BaseSchema): void {
  const { format, minimum, maximum, type } = jsonSchema
  if (format === 'uuid' || format === 'date-time' || type === 'boolean') delete jsonSchema.pattern
  if (minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
  if (isDeepStrictEqual(jsonSchema.propertyNames, { type: 'string' })) delete jsonSchema.propertyNames
}

/**
 * The JSON Schema of a zod schema. Each schema with a name that it uses becomes a component, and is referred to. Named bodies have
 * no `default`: generated clients send it, and reset what is stored.
 *
 * @param io whether clients send it or get it
 */
export function toSchema(schema: z.ZodType, io: 'input' | 'output', components: Components): JsonObject {
  // The list gives the schema itself a reference, too.
  const { items, $defs = {} } = z.toJSONSchema(z.array(schema), { ...conversion, io })
  const named = Object.entries($defs).map(([name, { id, ...of }]) => [name, io === 'input' ? withoutDefaults(of) : of])
  const text = JSON.stringify({ items, named }).replaceAll('"$ref":"#/$defs/', '"$ref":"#/components/schemas/')
  const made = JSON.parse(text, (_, node) => withoutTypes(withoutNull(node)))
  for (const [name, of] of made.named) {
    if (!isDeepStrictEqual(components.get(name) ?? of, of)) throw new Error(`Two schemas have the name ${name}.`)
    components.set(name, of)
  }
  return made.items
}

const withoutDefaults = (schema: unknown): unknown =>
  JSON.parse(JSON.stringify(schema), (_, node) => {
    if (!isObject(node) || typeof node.type !== 'string') return node
    const { default: _default, ...others } = node
    return others
  })

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

/** A value of several types, as `anyOf`: oapi-codegen takes one type, and null beside it. */
function withoutTypes(node: unknown): unknown {
  if (!isObject(node) || !Array.isArray(node.type)) return node
  const { type: types, ...others } = node
  return types.filter((type) => type !== 'null').length < 2
    ? node
    : { ...others, anyOf: types.map((type) => ({ type })) }
}
