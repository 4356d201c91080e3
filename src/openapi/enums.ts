import { isObject } from '../json-object.ts'
import { schemaName } from '../views/stored.ts'
import type { Components } from './json-schema.ts'

/**
 * Enums that stand in several places get one name, and the places refer to it. Generated clients make one type of a named
 * enum; of the same values without a name they make a type for each place.
 */

/** Names of those whose fields have different names, or names that mean little by themselves. An enum of one model has a `title`. */
const names: Readonly<Record<string, readonly string[]>> = {
  DeleteAction: ['do_nothing', 'delete', 'suspend'],
  FlowDesignation: [
    ...['authentication', 'authorization', 'enrollment', 'invalidation', 'recovery', 'stage_configuration'],
    'unenrollment',
  ],
  LdapMode: ['direct', 'cached'],
  RunMode: ['apply', 'plan'],
  RunState: ['queued', 'running', 'done', 'failed', 'cancelled'],
  TokenIntent: ['verification', 'api', 'recovery', 'app_password'],
  UserType: ['external', 'internal', 'internal_service_account', 'service_account'],
}

type Place = { readonly schema: Record<string, unknown>; readonly property: string }

/**
 * @param paths of the document; changed in place, as the components are
 * @throws when an enum has no name that is free: it gets one in `names`
 */
export function nameEnums(paths: unknown, components: Components): void {
  const places = new Map<string, Place[]>()
  for (const part of [paths, ...components.values()]) {
    for (const place of enumsIn(part, '')) {
      const values = JSON.stringify(valuesOf(place.schema))
      places.set(values, [...(places.get(values) ?? []), place])
    }
  }
  const shared = [...places].filter(([, found]) => found.length > 1)
  for (const [values, found] of shared) {
    const name = nameOf(values, found)
    if (components.has(name)) throw new Error(`There is a schema ${name} already: name the enum ${values}.`)
    components.set(name, { type: 'string', enum: JSON.parse(values) })
    for (const { schema } of found) {
      const isNullable = Array.isArray(schema.type)
      const $ref = `#/components/schemas/${name}`
      delete schema.type
      delete schema.title
      delete schema.enum
      Object.assign(schema, isNullable ? { anyOf: [{ $ref }, { type: 'null' }] } : { $ref })
    }
  }
  nameValues(components)
}

/**
 * Enums that share a value get names for their values, which start with the name of the enum: `TOKEN_INTENT_API`. The
 * constants of all enums are in one package in Go, where openapi-generator calls them after the value alone.
 */
function nameValues(components: Components): void {
  const enums = [...components].flatMap(([name, schema]) =>
    isObject(schema) && Array.isArray(schema.enum) ? [{ name, schema, values: schema.enum.map(String) }] : [],
  )
  for (const { name, schema, values } of enums)
    if (enums.some((other) => other.name !== name && other.values.some((value) => values.includes(value))))
      Object.assign(schema, { 'x-enum-varnames': values.map((value) => constantOf(`${name}_${value}`)) })
}

/** `TOKEN_INTENT_API` of `TokenIntent_api`. */
const constantOf = (words: string) =>
  words
    .replace(/([a-z0-9])(?=[A-Z])/g, '$1_')
    .replace(/\W+/g, '_')
    .toUpperCase()

const valuesOf = ({ enum: values }: Place['schema']) => [values].flat().filter((value) => value !== null)

function nameOf(values: string, places: readonly Place[]): string {
  const title = places.find(({ schema }) => typeof schema.title === 'string')?.schema.title
  const [given = title] = Object.entries(names).find(([, named]) => JSON.stringify(named) === values) ?? []
  const [property = '', ...others] = [...new Set(places.map((place) => place.property))]
  if (given === undefined && others.length > 0)
    throw new Error(`${[property, ...others].join(' and ')} share an enum: name ${values}.`)
  return typeof given === 'string' ? given : schemaName(property)
}

/** @param property the name of the field or parameter that this is part of */
function enumsIn(node: unknown, property: string): Place[] {
  if (Array.isArray(node)) return node.flatMap((item) => enumsIn(item, property))
  if (!isObject(node)) return []
  if ([node.type].flat()[0] === 'string' && Array.isArray(node.enum))
    return valuesOf(node).length > 1 ? [{ schema: node, property }] : []
  return Object.entries(node).flatMap(([key, value]) => {
    if (key === 'example' || key === 'examples') return []
    if (key === 'properties' && isObject(value))
      return Object.entries(value).flatMap(([name, inner]) => enumsIn(inner, name))
    return enumsIn(value, typeof node.in === 'string' ? String(node.name) : property)
  })
}
