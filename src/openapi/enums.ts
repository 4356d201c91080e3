import { isDeepStrictEqual } from 'node:util'
import { isObject, type JsonObject } from '../json-object.ts'
import type { Components } from './json-schema.ts'

/**
 * An enum with a `title` gets that name, and its places refer to it: generated clients make one type of a named enum, but a type
 * for each place of the same values without a name. Null is no value of it, for generators of languages where it is none.
 *
 * @param paths those of the document; they are changed in place, like the components
 */
export function nameEnums(paths: unknown, components: Components): void {
  for (const schema of titledEnums([paths, ...components.values()])) {
    const { type, title, enum: values } = schema
    const $ref = `#/components/schemas/${title}`
    const named = { type: 'string', enum: values.filter((value) => value !== null) }
    if (!isDeepStrictEqual(components.get(title) ?? named, named))
      throw new Error(`Two schemas have the name ${title}.`)
    components.set(title, named)
    for (const name of ['type', 'title', 'enum']) Reflect.deleteProperty(schema, name)
    Object.assign(schema, Array.isArray(type) ? { anyOf: [{ $ref }, { type: 'null' }] } : { $ref })
  }
  nameValues(components)
}

type TitledEnum = JsonObject & { readonly title: string; readonly enum: readonly unknown[] }

const isTitledEnum = (node: JsonObject): node is TitledEnum =>
  typeof node.title === 'string' && Array.isArray(node.enum)

function titledEnums(node: unknown): TitledEnum[] {
  if (Array.isArray(node)) return node.flatMap(titledEnums)
  if (!isObject(node)) return []
  return isTitledEnum(node) ? [node] : Object.values(node).flatMap(titledEnums)
}

/**
 * Enums that share a value get names for their values, which start with the name of the enum: `TOKEN_INTENT_API`. The
 * constants of all enums are in one package in Go, where openapi-generator calls them after the value alone. Orders get names
 * too: `name` and `-name` have one name otherwise.
 */
function nameValues(components: Components): void {
  const enums = [...components].flatMap(([name, schema]) =>
    isObject(schema) && Array.isArray(schema.enum) ? [{ name, schema, values: schema.enum.map(String) }] : [],
  )
  for (const { name, schema, values } of enums)
    if (
      values.some(isDescending) ||
      enums.some((other) => other.name !== name && other.values.some((value) => values.includes(value)))
    )
      Object.assign(schema, { 'x-enum-varnames': values.map((value) => constantOf(name, value)) })
}

const isDescending = (value: string) => value.startsWith('-')

/** `TokenIntent` and `api` -> `TOKEN_INTENT_API`, `UserOrdering` and `-name` -> `USER_ORDERING_NAME_DESC`. */
const constantOf = (name: string, value: string) =>
  `${name}_${isDescending(value) ? `${value.slice(1)}_desc` : value}`
    .replace(/([a-z0-9])(?=[A-Z])/g, '$1_')
    .replace(/\W+/g, '_')
    .toUpperCase()
