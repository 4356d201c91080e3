import { STATUS_CODES } from 'node:http'
import type { RouteOptions } from 'fastify'
import { z } from 'zod'
import { catalogue, type ProblemCode } from '../errors.ts'
import type { Documented } from '../http/documented.ts'
import { isObject, type JsonObject } from '../json-object.ts'
import { basePath, versionPath } from '../paths.ts'
import type { Components } from './json-schema.ts'
import { sentencesOf, toAlsoNeeds } from './permission-docs.ts'
import { headersNamed, nameOf } from './problems.ts'

/** A route as it was registered. `mediaTypes`: those of its body. */
export type Route = { readonly options: RouteOptions; readonly mediaTypes: readonly string[] }

/** A route for `@fastify/swagger`, and the parts of its description that the plugin lacks. */
export type Described = {
  readonly path: string
  readonly method: string
  /** The statuses of its refusals. */
  readonly statuses: readonly number[]
  /** Whether it submits a document to be applied. */
  readonly applies: boolean
  readonly schema: object
  complete(operation: JsonObject, components: Components): JsonObject
}

const verbs: Readonly<Record<string, string>> = {
  GET: 'retrieve',
  POST: 'create',
  PUT: 'update',
  PATCH: 'partial_update',
  DELETE: 'destroy',
}

export function describeRoute({ options, mediaTypes }: Route): Described {
  const { schema = {}, config = {} } = options
  // `servers` has the base path.
  const url = options.url.slice(basePath.length)
  const { document = {}, permission = 'anyone' } = config
  const { alsoNeeds = [] } = document
  const method = [options.method].flat()[0] ?? ''
  const names = url
    .slice(versionPath.length)
    .split('/')
    .filter((part) => part !== '')
  const body = document.body?.() ?? schema.body
  const isPaged = Object.values(Object(schema.response)).some(
    (each) => each instanceof z.ZodObject && 'pagination' in each.shape,
  )
  const codes: ProblemCode[] = [
    ...(['invalid', 'headers_too_large', 'server_error', 'unavailable'] as const),
    ...(permission === 'anyone' ? [] : (['not_authenticated', 'permission_denied', 'too_many_requests'] as const)),
    ...(isPaged || schema.params !== undefined ? (['not_found'] as const) : []),
    ...(body === undefined ? [] : (['invalid_json', 'too_large', 'too_slow', 'unsupported_media_type'] as const)),
    ...(document.codes ?? []),
  ]
  const statuses = [...new Set(codes.map((code) => catalogue[code]))]
  return {
    path: url.replace(/:(\w+)/g, '{$1}'),
    method,
    statuses,
    applies: config.takes === 'run' && body !== undefined,
    schema: {
      ...schema,
      operationId: [
        ...names.filter((name) => !name.startsWith(':')),
        document.verb ?? (isPaged ? 'list' : verbs[method]),
      ]
        .join('_')
        .replace(/[^\w]/g, '_'),
      description: [schema.description, document.note, sentencesOf(permission, alsoNeeds)]
        .filter((text) => text !== undefined)
        .join('\n\n'),
      tags: [names[0]],
      'x-permission': [permission].flat(),
      ...(alsoNeeds.length > 0 && { 'x-also-needs': toAlsoNeeds(alsoNeeds) }),
      ...(permission === 'anyone' && { security: [] }),
      ...(document.headers !== undefined && { headers: document.headers }),
      ...(body !== undefined && { body }),
    },
    complete: (operation, components) => ({
      ...operation,
      parameters: [
        ...sorted(operation.parameters),
        ...(permission === 'anyone' ? [] : [{ $ref: '#/components/parameters/Impersonate-User' }]),
      ],
      ...(isObject(operation.requestBody) && {
        requestBody: { required: true, content: bodiesOf(operation.requestBody, mediaTypes, document) },
      }),
      responses: {
        ...Object.fromEntries(statuses.map((status) => [status, { $ref: `#/components/responses/${nameOf(status)}` }])),
        ...Object.fromEntries(
          Object.entries(Object(operation.responses)).map(([status, response]) => [
            status,
            answerOf(status, schemaIn(response), document, components),
          ]),
        ),
      },
    }),
  }
}

const locations = ['path', 'query', 'header']

function sorted(parameters: unknown): JsonObject[] {
  const shown = (Array.isArray(parameters) ? parameters : [])
    .filter(isObject)
    // A parameter without a type is declared only to be refused.
    .filter(({ schema }) => isObject(schema) && Object.keys(schema).length > 0 && schema['x-internal'] !== true)
    .map(serialised)
  const rank = ({ in: location, name }: JsonObject) => `${locations.indexOf(String(location))} ${name}`
  return shown.toSorted((one, other) => (rank(one) < rank(other) ? -1 : 1))
}

/** Moves `explode` from the schema to the parameter. The schema has it, because zod's schemas describe values alone. */
function serialised({ schema, ...parameter }: JsonObject): JsonObject {
  const { explode, ...value } = Object(schema)
  return { ...parameter, ...(explode !== undefined && { style: 'form', explode }), schema: value }
}

/** The schema of a body or an answer in JSON. */
function schemaIn(holder: unknown): JsonObject {
  const { content } = Object(holder)
  const { schema } = Object(Object(content)['application/json'])
  return isObject(schema) ? schema : {}
}

function answerOf(
  status: string,
  found: JsonObject,
  { answerHeaders = [] }: Documented,
  components: Components,
): JsonObject {
  const answer = { description: STATUS_CODES[status], headers: headersNamed(...answerHeaders) }
  // These answers have no body.
  if (status === '204' || status === '304') return answer
  const isPaged = isObject(found.properties) && 'pagination' in found.properties
  const schema = isPaged ? nameList(found, components) : found
  return { ...answer, content: { 'application/json': { schema } } }
}

/** Names a list after its items. */
function nameList(list: JsonObject, components: Components): JsonObject {
  const { $ref } = Object(Object(Object(list.properties).results).items)
  const name = `Paginated${String($ref).replace('#/components/schemas/', '')}List`
  components.set(name, list)
  return { $ref: `#/components/schemas/${name}` }
}

function bodiesOf(body: JsonObject, mediaTypes: readonly string[], { examples, text }: Documented): JsonObject {
  const named = examples?.() ?? {}
  const shown = Object.keys(named).length > 0 && { examples: named }
  const content = mediaTypes.map((type) =>
    type === 'application/json'
      ? [type, { schema: schemaIn(body), ...shown }]
      : [type, { schema: { type: 'string' }, ...(text && { example: text() }) }],
  )
  return Object.fromEntries(content)
}
