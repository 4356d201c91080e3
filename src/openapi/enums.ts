import { isObject } from '../json-object.ts'
import { schemaName } from '../views/schema-names.ts'
import type { Components } from './json-schema.ts'

/**
 * Enums that stand in several places get one name, and the places refer to it. Generated clients make one type of a named
 * enum; of the same values without a name they make a type for each place. The name is the `title` of one of the places, else
 * that of the first field. An enum with a title is named even where it stands once, and apart from others with the same values.
 * So is one that may be null: null is no value of an enum, for generators of languages where it is none.
 */

type Place = { readonly schema: Record<string, unknown>; readonly property: string }

/** @param paths of the document; changed in place, as the components are. An enum whose name is taken stays where it stands. */
export function nameEnums(paths: unknown, components: Components): void {
  const places = new Map<string, Place[]>()
  for (const part of [paths, ...components.values()]) {
    for (const place of enumsIn(part, '')) {
      const values = JSON.stringify(valuesOf(place.schema))
      places.set(values, [...(places.get(values) ?? []), place])
    }
  }
  const named = [...places].flatMap(([values, found]) =>
    found.length === 1 && found[0]?.schema.title === undefined && !found.some(isNullable)
      ? []
      : [...byName(found)].map(([name, group]) => ({ values, name, group })),
  )
  for (const { values, name, group } of named) {
    if (components.has(name)) continue
    components.set(name, { type: 'string', enum: JSON.parse(values) })
    for (const { schema } of group) {
      const orNull = isNullable({ schema })
      const $ref = `#/components/schemas/${name}`
      delete schema.type
      delete schema.title
      delete schema.enum
      Object.assign(schema, orNull ? { anyOf: [{ $ref }, { type: 'null' }] } : { $ref })
    }
  }
  nameValues(components)
}

/**
 * Enums that share a value get names for their values, which start with the name of the enum: `TOKEN_INTENT_API`. The
 * constants of all enums are in one package in Go, where openapi-generator calls them after the value alone. So do orders, of
 * which `name` and `-name` else get one name.
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

const isNullable = ({ schema }: Pick<Place, 'schema'>) => Array.isArray(schema.type)

const isDescending = (value: string) => value.startsWith('-')

/** `TOKEN_INTENT_API` of `TokenIntent` and `api`, `USER_ORDERING_NAME_DESC` of `UserOrdering` and `-name`. */
const constantOf = (name: string, value: string) =>
  `${name}_${isDescending(value) ? `${value.slice(1)}_desc` : value}`
    .replace(/([a-z0-9])(?=[A-Z])/g, '$1_')
    .replace(/\W+/g, '_')
    .toUpperCase()

const valuesOf = ({ enum: values }: Place['schema']) => [values].flat().filter((value) => value !== null)

function byName(places: readonly Place[]): Map<string, Place[]> {
  const titleOf = ({ schema: { title } }: Place) => (typeof title === 'string' ? title : undefined)
  const usual = places.map(titleOf).find((title) => title !== undefined) ?? schemaName(places[0]?.property ?? '')
  return Map.groupBy(places, (place) => titleOf(place) ?? usual)
}

/** @param property the name of the field or parameter that this is part of */
function enumsIn(node: unknown, property: string): Place[] {
  if (Array.isArray(node)) return node.flatMap((item) => enumsIn(item, property))
  if (!isObject(node)) return []
  if ([node.type].flat()[0] === 'string' && Array.isArray(node.enum))
    return valuesOf(node).length > 1 || isNullable({ schema: node }) ? [{ schema: node, property }] : []
  return Object.entries(node).flatMap(([key, value]) => {
    if (key === 'example' || key === 'examples') return []
    if (key === 'properties' && isObject(value))
      return Object.entries(value).flatMap(([name, inner]) => enumsIn(inner, name))
    return enumsIn(value, typeof node.in === 'string' ? String(node.name) : property)
  })
}
