import manifest from '../../../package.json' with { type: 'json' }
import type { JsonObject } from '../../json-object.ts'
import { nameSchemas } from './names.ts'
import { type Operation, type Route, toOperation } from './operation.ts'
import { nameOf, problemResponse } from './problems.ts'

/** The description of these routes, in an order of its own. @param prefix below which they are */
export function toDocument(routes: readonly Route[], prefix: string): JsonObject {
  nameSchemas()
  const components = new Map<string, unknown>()
  const operations = routes.map((route) => toOperation(route, prefix, components)).sort(byPath)
  const paths: Record<string, Record<string, unknown>> = {}
  for (const { path, method, operation } of operations) paths[path] = { ...paths[path], [method]: operation }
  const statuses = [...new Set(operations.flatMap((each) => each.statuses))].sort()
  const responses = statuses.map((status) => [nameOf(status), problemResponse(status, components)])
  return {
    openapi: '3.1.0',
    info: { title: 'Gatewright', version: manifest.version, description, license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: '/', description: 'This installation.' }],
    security: [{ bearer: [] }],
    tags: tags.filter(({ name }) => operations.some(({ operation }) => String(operation.tags) === name)),
    paths,
    components: {
      schemas: Object.fromEntries([...components].sort(([one], [other]) => (one < other ? -1 : 1))),
      responses: Object.fromEntries(responses),
      parameters,
      headers,
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description:
            'An access token: `Authorization: Bearer <ACCESS_TOKEN>`. At the first start one is made for the admin.',
        },
      },
    },
  }
}

const methods = ['get', 'post', 'put', 'patch', 'delete']

function byPath(one: Operation, other: Operation): number {
  if (one.path !== other.path) return one.path < other.path ? -1 : 1
  return methods.indexOf(one.method) - methods.indexOf(other.method)
}

const description = `An application and its provider in one call, applied in one transaction; and the users, groups, tokens, devices
and consents around it.

- Bodies and answers are JSON. A body is at most 1 MiB, nested at most 32 levels deep, and of at most 10 000 values.
- Parameters and members that are not known are refused by name, with the nearest known one. Members that answers only
  show are accepted in bodies and read over, so that what was read can be sent back.
- A 400 names **all** that is wrong: member -> messages, nested as the body is. Every other refusal is \`{detail, code}\`.
- Lists come in pages: \`page\`, \`page_size\` (at most 1000), \`ordering\` (a comma list, \`-\` for descending), \`search\`
  (all words must match). \`count\` is exact.
- A path with another method is a 405, with \`Allow\`.
- \`x-permission\` names what an operation needs: one of the permissions listed, or \`authenticated\`, \`superuser\`.
  \`x-also-needs\` names what it needs besides for some of what it does.`

const tags = [
  { name: 'authenticators', description: 'Devices that prove who somebody is.' },
  { name: 'blueprints', description: 'What was submitted, and what became of it.' },
  { name: 'core', description: 'Applications, groups, tokens, users and their consents.' },
]

const parameters = {
  'Impersonate-User': {
    name: 'Impersonate-User',
    in: 'header',
    description:
      'The username of whom to act as: needs the permission `impersonate`, and for a superuser to be one. What is written is recorded under both names.',
    'x-permission': ['impersonate'],
    schema: { type: 'string', maxLength: 150 },
  },
}

const headers = {
  'Content-Location': { description: 'Where the run tells what was done.', schema: { type: 'string' } },
  Location: { description: 'Where the outcome will stand.', schema: { type: 'string' } },
  'Retry-After': { description: 'Seconds after which another try makes sense.', schema: { type: 'integer' } },
  'WWW-Authenticate': { schema: { type: 'string', const: 'Bearer' } },
  'X-Request-Id': {
    description: 'The one that was sent, or else a new one: it stands in the log, the run and the audit.',
    schema: { type: 'string' },
  },
}
