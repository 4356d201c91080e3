import manifest from '../../package.json' with { type: 'json' }
import type { JsonObject } from '../json-object.ts'
import { basePath } from '../paths.ts'
import { nameEnums } from './enums.ts'
import type { Components } from './json-schema.ts'
import { type Described, describeRoute, type Route } from './operation.ts'
import { nameOf, problemResponse } from './problems.ts'

/** The description of these routes: first those that apply a document, then the others, sorted by path. */
export function toDocument(routes: readonly Route[]): JsonObject {
  const components: Components = new Map()
  const described = routes.map((route) => describeRoute(route, components)).sort(inOrder)
  const statuses = [...new Set(described.flatMap((each) => each.statuses))].sort()
  const responses = statuses.map((status) => [nameOf(status), problemResponse(status, components)] as const)
  const paths: Record<string, Record<string, unknown>> = {}
  for (const { path, method, operation } of described)
    paths[path] = { ...paths[path], [method.toLowerCase()]: operation }
  nameEnums(paths, components)
  return {
    openapi: '3.1.0',
    info: { title: 'Gatewright', version: manifest.version, description, license: { name: 'MIT', identifier: 'MIT' } },
    paths,
    servers: [{ url: basePath || '/', description: 'This installation.' }],
    security: [{ bearer: [] }],
    components: {
      schemas: Object.fromEntries([...components].sort(([one], [other]) => (one < other ? -1 : 1))),
      responses: Object.fromEntries(responses),
      parameters,
      headers,
      securitySchemes,
    },
    tags: tags.filter(({ name }) => JSON.stringify(paths).includes(`"tags":["${name}"]`)),
  }
}

const securitySchemes = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: 'An access token: `Authorization: Bearer <ACCESS_TOKEN>`. The first start creates one for the admin.',
  },
} as const

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

function inOrder(one: Described, other: Described): number {
  if (one.applies !== other.applies) return one.applies ? -1 : 1
  if (one.path !== other.path) return one.path < other.path ? -1 : 1
  return methods.indexOf(one.method) - methods.indexOf(other.method)
}

const description = `One call applies an application and its provider in one transaction. Others serve the users, groups, tokens, devices
and consents around it.

- Bodies and answers are JSON. A body has at most 1 MiB, 32 levels of nesting and 10 000 values.
- An unknown parameter or field is refused; the message names it, and the nearest known one. Read-only fields are
  accepted in bodies and ignored, so that an answer can be sent back.
- A 400 names **every** error: messages by field, nested as the body is. Every other refusal is \`{detail, code}\`.
- Lists come in pages: \`page\`, \`page_size\` (at most 1000), \`ordering\` (separated by commas, \`-\` for descending),
  \`search\` (every word must match). \`count\` is exact; the lists of runs and of audit rows count up to 10 000.
- Rates are limited by access token, and failed authentications by address. Answers to an access token have \`RateLimit\`
  and \`RateLimit-Policy\`; a 429 has \`Retry-After\`.
- A path answers 405 to a method that it does not take. \`Allow\` lists the methods that it takes.
- \`x-permission\` lists what an operation needs: at least one of these permissions, or \`authenticated\`, or \`superuser\`.
  \`x-also-needs\` lists what some of its requests need as well.`

/** The tags, in the order in which the page shows them. */
const tags = [
  { name: 'core', description: 'Applications, groups, tokens, users and their consents.' },
  { name: 'blueprints', description: 'Submissions and their results.' },
  { name: 'authenticators', description: 'Devices that prove who a user is.' },
  { name: 'crypto', description: 'Key pairs with certificates.' },
  { name: 'flows', description: 'Flows that providers refer to.' },
  { name: 'propertymappings', description: 'Property mappings that providers refer to.' },
  { name: 'providers', description: 'Providers of all kinds. Names are unique over all kinds.' },
  { name: 'rbac', description: 'Roles: permissions with a name.' },
]

const parameters = {
  'Impersonate-User': {
    name: 'Impersonate-User',
    in: 'header',
    description:
      'The username of the user to impersonate. It needs the permission `impersonate`; only a superuser may impersonate a superuser. Audit rows name both users.',
    'x-permission': ['impersonate'],
    schema: { type: 'string', maxLength: 150 },
  },
}

const headers = {
  Accept: { description: 'The media types that it takes.', schema: { type: 'string' } },
  'Accept-Encoding': { description: 'Bodies are not compressed.', schema: { type: 'string', enum: ['identity'] } },
  'Cache-Control': {
    description: '`no-store`: no cache keeps it. With an `ETag`: `private, no-cache`, to be compared before each use.',
    schema: { type: 'string', enum: ['no-store', 'private, no-cache'] },
  },
  'Content-Location': { description: 'The run, which has the details.', schema: { type: 'string' } },
  ETag: {
    description: 'A digest of the answer: the same as long as it would be the same for this caller.',
    schema: { type: 'string', examples: ['"Jhg7nK2T6yq8eE3xH0b7Qm1cV5rL9sW4dZ2uF6aP0Yk"'] },
  },
  PlanTag: {
    description: 'Only of a plan: for `If-Match` of the apply.',
    required: false,
    schema: { type: 'string', examples: ['"9mfbLkQ0kGoTzVW3fGB1pA"'] },
  },
  'Gatewright-Revision': {
    description: 'Only with `wait`: for `since` of the next request.',
    required: false,
    schema: { type: 'string', examples: ['81233:81240:81233,81236~pXm3cQ0aT7k'] },
  },
  'Preference-Applied': {
    description: '`respond-async` or `wait`, when it was asked for.',
    required: false,
    schema: { type: 'string' },
  },
  Location: { description: 'The run, which will have the result.', schema: { type: 'string' } },
  RateLimit: {
    description:
      'What is left of a rate: the policy, requests (`r`), and seconds until there are more (`t`). Left out where the request was not counted.',
    required: false,
    schema: { type: 'string', examples: ['"user";r=1999;t=1'] },
  },
  'RateLimit-Policy': {
    description:
      'The rate: the name of the policy, requests (`q`) in seconds (`w`). Left out where the request was not counted.',
    required: false,
    schema: { type: 'string', examples: ['"user";q=2000;w=1'] },
  },
  'Retry-After': { description: 'Seconds to wait before the next try.', schema: { type: 'integer' } },
  Vary: { description: 'Another caller may get another answer.', schema: { type: 'string' } },
  'WWW-Authenticate': { description: 'How to authenticate.', schema: { type: 'string', enum: ['Bearer'] } },
  'X-Request-Id': {
    description: 'The id that was sent, or a new one. The log, the run and the audit rows have it.',
    schema: { type: 'string' },
  },
}
