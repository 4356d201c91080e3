import { STATUS_CODES } from 'node:http'
import type { RouteOptions } from 'fastify'
import { z } from 'zod'
import { catalogue, type ProblemCode } from '../errors.ts'
import type { Documented } from '../http/documented.ts'
import { isObject, type JsonObject } from '../json-object.ts'
import { exampleOf } from './example.ts'
import { type Components, toJsonSchema } from './json-schema.ts'
import { sentencesOf, toAlsoNeeds } from './permission-docs.ts'
import { headersNamed, nameOf } from './problems.ts'

/** A route as it was registered. `mediaTypes`: those of its body. */
export type Route = { readonly options: RouteOptions; readonly mediaTypes: readonly string[] }

export type Operation = {
  readonly path: string
  readonly method: string
  readonly statuses: readonly number[]
  /** Whether it submits a document to be applied. */
  readonly applies: boolean
  readonly operation: JsonObject
}

const verbs: Readonly<Record<string, string>> = {
  GET: 'retrieve',
  POST: 'create',
  PUT: 'update',
  PATCH: 'partial_update',
  DELETE: 'destroy',
}

export function toOperation({ options, mediaTypes }: Route, prefix: string, components: Components): Operation {
  const { schema = {}, config = {} } = options
  const { document = {}, permission = 'anyone' } = config
  const { alsoNeeds = [] } = document
  const method = [options.method].flat()[0] ?? ''
  const names = options.url
    .slice(prefix.length)
    .split('/')
    .filter((part) => part !== '')
  const responses = successes(schema.response, document, components)
  const isPaged = Object.values(responses).some((each) => each.isPaged)
  const parameters = [
    ...parametersIn('path', schema.params, components),
    ...parametersIn('query', schema.querystring, components),
    ...parametersIn('header', document.headers, components),
    ...(permission === 'anyone' ? [] : [{ $ref: '#/components/parameters/Impersonate-User' }]),
  ]
  const body = document.body?.() ?? schema.body
  const codes: ProblemCode[] = [
    ...(['invalid', 'headers_too_large', 'server_error', 'unavailable'] as const),
    ...(permission === 'anyone' ? [] : (['not_authenticated', 'permission_denied', 'too_many_requests'] as const)),
    ...(isPaged || schema.params !== undefined ? (['not_found'] as const) : []),
    ...(body === undefined ? [] : (['invalid_json', 'too_large', 'too_slow', 'unsupported_media_type'] as const)),
    ...(document.codes ?? []),
  ]
  const statuses = [...new Set(codes.map((code) => catalogue[code]))]
  const refusals = statuses.map((status) => [status, { $ref: `#/components/responses/${nameOf(status)}` }])
  return {
    path: options.url.replace(/:(\w+)/g, '{$1}'),
    method: method.toLowerCase(),
    statuses,
    applies: config.takes === 'run' && body !== undefined,
    operation: {
      operationId: [...names.filter((name) => !name.startsWith(':')), isPaged ? 'list' : verbs[method]]
        .join('_')
        .replace(/[^\w]/g, '_'),
      summary: schema.summary,
      description: [schema.description, sentencesOf(permission, alsoNeeds)]
        .filter((text) => text !== undefined)
        .join('\n\n'),
      tags: [names[0]],
      'x-permission': [permission].flat(),
      ...(alsoNeeds.length > 0 && { 'x-also-needs': toAlsoNeeds(alsoNeeds) }),
      ...(permission === 'anyone' && { security: [] }),
      ...(parameters.length > 0 && { parameters }),
      ...(body instanceof z.core.$ZodType && { requestBody: requestBody(body, mediaTypes, document, components) }),
      responses: {
        ...Object.fromEntries(refusals),
        ...Object.fromEntries(Object.entries(responses).map(([status, { response }]) => [status, response])),
      },
    },
  }
}

function parametersIn(location: 'path' | 'query' | 'header', schema: unknown, components: Components): JsonObject[] {
  if (!(schema instanceof z.core.$ZodType)) return []
  const { properties, required } = toJsonSchema(schema, 'parameter', components)
  if (!isObject(properties)) return []
  const parameters = Object.entries(properties).flatMap(([name, found]) => {
    const { description, ...value } = isObject(found) ? found : {}
    // Of no type: it is declared only to be refused.
    if (Object.keys(value).length === 0) return []
    const isRequired = location === 'path' || (Array.isArray(required) && required.includes(name))
    return {
      name,
      in: location,
      ...(isRequired && { required: true }),
      ...(description !== undefined && { description }),
      schema: value,
    }
  })
  return parameters.sort((one, other) => (one.name < other.name ? -1 : 1))
}

type Success = { readonly isPaged: boolean; readonly response: JsonObject }

function successes(
  response: unknown,
  { answerHeaders = [] }: Documented,
  components: Components,
): Record<string, Success> {
  const declared = Object.entries(isObject(response) ? response : {})
  return Object.fromEntries(
    declared.flatMap(([status, found]) => {
      if (!(found instanceof z.core.$ZodType)) return []
      const converted = toJsonSchema(found, 'answer', components)
      const isPaged = isObject(converted.properties) && 'pagination' in converted.properties
      const schema = isPaged ? nameList(converted, components) : converted
      const content = { 'application/json': { schema, example: exampleOf(schema, components) } }
      const answer = { description: STATUS_CODES[status], headers: headersNamed(...answerHeaders) }
      // 204 and 304 have no body.
      return [[status, { isPaged, response: status === '204' || status === '304' ? answer : { ...answer, content } }]]
    }),
  )
}

/** A list is named by what it lists. */
function nameList(list: JsonObject, components: Components): JsonObject {
  const { results } = isObject(list.properties) ? list.properties : {}
  const { $ref } = isObject(results) && isObject(results.items) ? results.items : {}
  if (typeof $ref !== 'string') throw new Error('What a list lists has no name: give its schema an `id`.')
  const name = `Paginated${$ref.replace('#/components/schemas/', '')}List`
  components.set(name, list)
  return { $ref: `#/components/schemas/${name}` }
}

function requestBody(
  body: z.core.$ZodType,
  mediaTypes: readonly string[],
  { examples, text }: Documented,
  components: Components,
): JsonObject {
  const schema = toJsonSchema(body, 'body', components)
  const named = examples?.() ?? {}
  const example = exampleOf(schema, components)
  const shown = Object.keys(named).length > 0 ? { examples: named } : example !== undefined && { example }
  const content = mediaTypes.map((type) =>
    type === 'application/json'
      ? [type, { schema, ...shown }]
      : [type, { schema: { type: 'string' }, ...(text && { example: text() }) }],
  )
  return { required: true, content: Object.fromEntries(content) }
}
