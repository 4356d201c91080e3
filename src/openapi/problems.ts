import { STATUS_CODES } from 'node:http'
import { z } from 'zod'
import { errorCodes } from '../error-codes.ts'
import { catalogue, type FieldError, maxErrors, Problem, type ProblemCode } from '../errors.ts'
import { bodyLimits } from '../http/body.ts'
import { bodyOf } from '../http/problems.ts'
import type { JsonObject } from '../json-object.ts'
import { runPath } from '../paths.ts'
import { type Components, toSchema } from './json-schema.ts'

/** The refusals of the API, made from the catalogue of error codes. */

/** The case in which an answer has a code, and an example of its message. */
export const texts: Readonly<Record<ProblemCode, readonly [when: string, example: string]>> = {
  accepted: [
    '`Prefer: respond-async` was sent: it was recorded, and a worker will apply it. The run at `Location` will have the result.',
    'Recorded. Its outcome will stand at /api/v3/blueprints/runs/01a1fd66-cb34-7782-913d-bbffaaf714c9/.',
  ],
  outcome_unknown: [
    'It is not known yet whether it was applied. The run at `Location` will have the result.',
    'A worker has it, but did not finish in time. Its outcome will stand at /api/v3/blueprints/runs/01a1fd66-cb34-7782-913d-bbffaaf714c9/.',
  ],
  invalid: ['Parameters, headers or fields are not valid. The answer names every one.', 'The request is not valid.'],
  invalid_json: ['The body cannot be parsed.', 'The body is not JSON (line 3, column 7).'],
  invalid_http: [
    'The request is not valid HTTP, its URL is not percent-encoded as UTF-8, or it sends `Authorization`, `Host` or another header of one value twice.',
    'The request is not valid HTTP.',
  ],
  not_authenticated: [
    'The access token is missing or not valid. The answer is the same for every reason, except that who sends the whole of an expired token learns its name and the day.',
    'Send a valid access token: Authorization: Bearer <ACCESS_TOKEN>.',
  ],
  permission_denied: ['The caller is authenticated, but lacks a permission.', 'You lack the permission view_user.'],
  not_found: ['The object does not exist, or the caller may not see it.', 'There is nothing here.'],
  invalid_page: ['The page is beyond the last one.', 'There are 2 pages: page 3 is beyond the last.'],
  method_not_allowed: ['The path does not take this method.', 'This path takes GET, POST.'],
  too_slow: ['The request did not arrive in time.', 'The request did not arrive in time.'],
  conflict: [
    'An object belongs to another owner or was made by another user, or a group would give rights to members whom the document does not name, or what is left over is not the number that was sent: `Gatewright-Allow` acknowledges it. Or something still refers to what would be deleted.',
    'application "grafana" belongs to owner "team-b" (made by "amira" on 2026-11-22), and the request names no owner. Send it as owner "team-b": `owner: "team-b"` in the file, or Gatewright-Owner. Gatewright-Allow: takeover takes it from that owner.',
  ],
  cancelled_by_user: [
    'A user cancelled the run before a worker took it: nothing was changed. The same again under its `Idempotency-Key` has this answer, too.',
    'The run was cancelled by alice: nothing was changed.',
  ],
  key_gone: ['The key was shown already. It is shown only once.', 'The key was shown already.'],
  route_gone: [
    'The route is gone. The answer names the one in its place.',
    'There are no streams of events any more: send If-None-Match and Prefer: wait=30 to /api/v3/blueprints/runs/{id}/.',
  ],
  precondition_failed: [
    'The object is not as `If-Match` or `If-None-Match` has it: it was changed since it was read or planned, or it exists already. Nothing was changed.',
    'The token is not as `If-Match` has it: read it again, and send the new `ETag` if you still want to change it.',
  ],
  too_large: ['The body is too large.', `The body is larger than ${bodyLimits.bytes} bytes.`],
  unsupported_media_type: ['The body has another media type, or is compressed.', 'Send application/json.'],
  idempotency_key_reused: [
    'Something else was sent under this `Idempotency-Key` in the last 24 hours.',
    'Something else was sent under this Idempotency-Key in the last 24 hours: take another key.',
  ],
  too_many_requests: [
    'There were too many requests of this user or address, or too much is under way. Try again after `Retry-After` seconds.',
    'Too many requests of this user. Try again in 1 s.',
  ],
  headers_too_large: ['The headers are too large.', 'The first line and the headers are larger than 16384 bytes.'],
  server_error: [
    'An error of this service. A different request does not help.',
    'Something went wrong inside. Ask for request 6a1c5f2e-3b0d-4f4e-9a51-0d8f6c1b7e21.',
  ],
  cancelled: [
    'Not applied, and nothing was changed. The same request may be sent again.',
    'Not applied: no worker took it in time. Nothing was changed; try again shortly.',
  ],
  unavailable: [
    'The database or the queue does not answer. Try again.',
    'The database does not answer. Try again shortly.',
  ],
}

const codesOf = (status: number) =>
  (Object.keys(catalogue) as ProblemCode[]).filter((code) => catalogue[code] === status).sort()

function bodySchema(status: number): z.ZodType {
  const code = z.enum(codesOf(status))
  const id = nameOf(status)
  switch (status) {
    case 202:
      // It has nothing in common with the answer of a run that ended, so that a client can tell them apart.
      return z
        .object({ detail: z.string(), code, run: z.string().meta({ description: 'The path of the run.' }) })
        .meta({ id })
    case 400:
      return z
        .looseObject({
          code,
          non_field_errors: z.array(z.string()).optional(),
          errors: z.array(errorDetail).max(maxErrors).optional().meta({
            description: 'The same errors one by one, where parameters, headers or fields are not valid.',
          }),
        })
        .meta({
          id,
          description:
            'Messages by parameter, header or field. Nested objects are nested; items of a list are keyed by their index.',
        })
    default:
      return z
        .looseObject({ detail: z.string(), code, ...([403, 409, 412].includes(status) && ofEntries) })
        .meta({ id })
  }
}

const errorDetail = z
  .object({
    code: z.enum(Object.keys(errorCodes)).meta({ description: 'The kind of the error.' }),
    message: z.string(),
    pointer: z
      .string()
      .optional()
      .meta({
        description: 'A JSON pointer (RFC 6901) into the body that was sent. Of what is missing, to where it belongs.',
        examples: ['/entries/3/attrs/name'],
      }),
    header: z.string().optional().meta({ description: 'The header, instead of `pointer`.' }),
    parameter: z.string().optional().meta({ description: 'The parameter of the query, instead of `pointer`.' }),
    entry: z.string().optional().meta({ description: 'The `id` of the entry of a blueprint.' }),
    line: z.int().optional().meta({ description: 'The line of a blueprint in YAML, from 1.' }),
    column: z.int().optional().meta({ description: 'The column of a blueprint in YAML, from 1.' }),
    source: z.string().optional().meta({
      description:
        'That line, up to 200 characters, with the values of secret and unknown fields masked. Left out for a secret field.',
    }),
  })
  .meta({ id: 'ErrorDetail' })

const ofEntries = {
  errors: z.array(errorDetail).max(maxErrors).optional().meta({
    description: 'The refusal of a document has the entries that it is about, one by one.',
  }),
}

/** 404 -> `NotFound`. */
export const nameOf = (status: number): string => (STATUS_CODES[status] ?? String(status)).replace(/\W/g, '')

const ofAll = ['X-Request-Id', 'Cache-Control', 'RateLimit', 'RateLimit-Policy']

/** The headers of an answer by status, without those that all have. */
const headersOf: Readonly<Record<number, readonly string[]>> = {
  202: ['Location', 'Preference-Applied', 'Retry-After'],
  401: ['WWW-Authenticate'],
  415: ['Accept', 'Accept-Encoding'],
  429: ['Retry-After'],
  503: ['Retry-After'],
}

const examplePath = runPath('01a1fd66-cb34-7782-913d-bbffaaf714c9')

const tooLarge: FieldError = {
  path: ['page_size'],
  code: 'too_large',
  message: 'Must be at most 1000.',
  where: 'parameter',
}

/** The answer with this status, for `components.responses`. */
export function problemResponse(status: number, components: Components): JsonObject {
  const codes = codesOf(status)
  const schema = toSchema(bodySchema(status), 'output', components)
  const examples = codes.map((code) => {
    const [, message] = texts[code]
    const facts = code === 'invalid' ? { fields: { page_size: [tooLarge.message] }, errors: [tooLarge] } : {}
    return [
      code,
      { value: bodyOf(new Problem(code, message, { ...facts, ...(status === 202 && { run: examplePath }) })) },
    ]
  })
  return {
    description: codes.map((code) => `\`${code}\`: ${texts[code][0]}`).join('\n\n'),
    headers: headersNamed(...(headersOf[status] ?? [])),
    content: { 'application/json': { schema, examples: Object.fromEntries(examples) } },
  }
}

/** @param names headers beside those of all answers; `PlanTag` is the `ETag` that only plans have */
export const headersNamed = (...names: string[]): JsonObject =>
  Object.fromEntries(
    [...ofAll, ...names].map((name) => [name === 'PlanTag' ? 'ETag' : name, { $ref: `#/components/headers/${name}` }]),
  )
