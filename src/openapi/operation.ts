import { STATUS_CODES } from 'node:http'
import type { RouteOptions } from 'fastify'
import { z } from 'zod'
import { catalogue, type ProblemCode } from '../errors.ts'
import type { Documented, Need } from '../http/documented.ts'
import { isObject, type JsonObject } from '../json-object.ts'
import { basePath, versionPath } from '../paths.ts'
import type { Access } from '../permissions.ts'
import { type Components, toSchema } from './json-schema.ts'
import { headersNamed, nameOf } from './problems.ts'

/** A route as it was registered. `mediaTypes`: those of its body. */
export type Route = { readonly options: RouteOptions; readonly mediaTypes: readonly string[] }

export type Described = {
  readonly path: string
  readonly method: string
  /** The statuses of its refusals. */
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

/** @param components gets the named schemas */
export function describeRoute({ options, mediaTypes }: Route, components: Components): Described {
  const { schema = {}, config = {} } = options
  // `servers` has the base path.
  const url = options.url.slice(basePath.length)
  const { document = {}, permission = 'anyone' } = config
  const { alsoNeeds = [] } = document
  const method = [options.method].flat()[0] ?? ''
  const names = url.slice(versionPath.length).split('/').filter(Boolean)
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
  const path = url.replace(/:(\w+)/g, '{$1}')
  const applies = config.takes === 'run' && body !== undefined
  const places = { path: schema.params, query: schema.querystring, header: document.headers }
  const parameters = Object.entries(places).flatMap(([location, of]) => parametersIn(location, of))
  const answers = Object.entries<z.ZodType>(Object(schema.response))
  const operation = {
    operationId: [...names.filter((name) => !name.startsWith(':')), document.verb ?? (isPaged ? 'list' : verbs[method])]
      .join('_')
      .replace(/[^\w]/g, '_'),
    summary: schema.summary,
    tags: [names[0]],
    description: [schema.description, document.note, sentencesOf(permission, alsoNeeds)]
      .filter((text) => text !== undefined)
      .join('\n\n'),
    ...(body instanceof z.ZodType && {
      requestBody: { required: true, content: bodiesOf(toSchema(body, 'input', components), mediaTypes, document) },
    }),
    ...(parameters.length > 0 && { parameters }),
    ...(permission === 'anyone' && { security: [] }),
    'x-permission': [permission].flat(),
    ...(alsoNeeds.length > 0 && {
      'x-also-needs': alsoNeeds.map(({ permission: needed, when }) => ({ permission: [needed].flat(), when })),
    }),
    responses: {
      ...Object.fromEntries(statuses.map((status) => [status, { $ref: `#/components/responses/${nameOf(status)}` }])),
      ...Object.fromEntries(answers.map(([status, of]) => [status, answerOf(status, of, document, components)])),
    },
  }
  const impersonating = permission === 'anyone' ? [] : [{ $ref: '#/components/parameters/Impersonate-User' }]
  return { path, method, statuses, applies, operation: { ...operation, parameters: [...parameters, ...impersonating] } }
}

/** Parameters in the order of their names. One without a type is declared only to be refused. */
function parametersIn(location: string, schema: unknown): JsonObject[] {
  if (!(schema instanceof z.ZodType)) return []
  const { properties, required = [] } = toSchema(schema, 'input', new Map())
  return Object.entries<JsonObject>(Object(properties))
    .filter(([, of]) => Object.keys(of).length > 0 && of['x-internal'] !== true)
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, { description, examples, explode, ...value }]) => ({
      ...(Array.isArray(examples) && { example: examples[0] }),
      in: location,
      name,
      required: Array.isArray(required) && required.includes(name),
      description,
      // The schema has it, because zod's schemas describe values alone.
      ...(explode !== undefined && { style: 'form', explode }),
      schema: value,
    }))
}

function answerOf(status: string, schema: z.ZodType, document: Documented, components: Components): JsonObject {
  const answer = { description: STATUS_CODES[status], headers: headersNamed(...(document.answerHeaders ?? [])) }
  // These answers have no body.
  if (status === '204' || status === '304') return answer
  const found = toSchema(schema, 'output', components)
  const isPaged = isObject(found.properties) && 'pagination' in found.properties
  return { ...answer, content: { 'application/json': { schema: isPaged ? nameList(found, components) : found } } }
}

/** Names a list after its items. */
function nameList(list: JsonObject, components: Components): JsonObject {
  const { $ref } = Object(Object(Object(list.properties).results).items)
  const name = `Paginated${String($ref).replace('#/components/schemas/', '')}List`
  components.set(name, list)
  return { $ref: `#/components/schemas/${name}` }
}

function bodiesOf(schema: JsonObject, mediaTypes: readonly string[], { examples, text }: Documented): JsonObject {
  const named = examples?.() ?? {}
  const shown = Object.keys(named).length > 0 && { examples: named }
  const content = mediaTypes.map((type) =>
    type !== 'application/yaml'
      ? [type, { schema, ...shown }]
      : [type, { schema: { type: 'string' }, ...(text && { example: text() }) }],
  )
  return Object.fromEntries(content)
}

/** Sentences for the description of an operation: the callers who may call it. */
function sentencesOf(permission: Access, alsoNeeds: readonly Need[]): string {
  const sentence = callers[String(permission)] ?? `Needs the permission ${oneOf(permission)}.`
  if (alsoNeeds.length === 0) return sentence
  const lines = alsoNeeds.map(({ permission, when }) => `- ${oneOf(permission)}: ${when}`)
  return `${sentence} Some requests need more:\n\n${lines.join('\n')}`
}

const callers: Readonly<Record<string, string>> = {
  anyone: 'Anyone may call it, without an access token.',
  authenticated: 'Any authenticated user may call it.',
  superuser: 'Only superusers may call it.',
}

const oneOf = (permission: Access): string =>
  [permission]
    .flat()
    .map((name) => `\`${name}\``)
    .join(' or ')
