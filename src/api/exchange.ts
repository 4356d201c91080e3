import formbody from '@fastify/formbody'
import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { query } from '../db/raw.ts'
import { Problem } from '../errors.ts'
import { withExample } from '../example.ts'
import { type ExchangeToken, lifetimeS } from '../exchange/exchange.ts'
import { tokenHash } from '../http/access.ts'
import type { Api } from '../http/api.ts'
import { bodyLimits } from '../http/body.ts'
import type { Door } from '../http/plausible.ts'
import type { CountRequest } from '../http/rate-limit.ts'
import { pipelineForm, storedPipeline } from '../pipeline.ts'
import { bondsOf, boundTo } from '../views/token.ts'

/** POST /api/v3/auth/token/: an access token for a job. GET: the token of the request. */

const urn = (name: string) => `urn:ietf:params:oauth:${name}`
const accessToken = urn('token-type:access_token')

/** Longer than the tokens of all known systems. */
const maxBytes = 20_000

const ignored = z.string().optional().meta({ description: 'Standard clients send it. It is ignored.' })
/** RFC 8693, section 2.1: it may be sent several times. A text in OpenAPI: generated clients do not compile a text or a list. */
const repeated = z.preprocess((value) => (Array.isArray(value) ? value[0] : value), ignored)

const sent = z
  .strictObject({
    grant_type: z.literal(urn('grant-type:token-exchange')),
    subject_token: z
      .string()
      .max(16_384)
      .regex(/^[\w-]+\.[\w-]+\.[\w-]+$/, 'Must be a signed JSON Web Token.')
      .meta({ description: 'The identity token.' }),
    subject_token_type: z.enum([urn('token-type:jwt'), urn('token-type:id_token')]),
    requested_token_type: z.literal(accessToken).optional(),
    ...{ client_id: ignored, scope: ignored, audience: repeated, resource: repeated },
  })
  .meta({ id: 'TokenExchange' })

const given = z
  .object({
    access_token: withExample(z.string(), 'gw_a_EXAMPLE'),
    issued_token_type: withExample(z.string(), accessToken),
    token_type: withExample(z.string(), 'Bearer'),
    expires_in: withExample(z.int(), lifetimeS, 'Seconds.'),
  })
  .meta({ id: 'ExchangedToken' })

const present = z
  .object({
    identifier: withExample(z.string().nullable(), null, 'Null for the token of a job, which is in no list.'),
    user: withExample(z.string(), 'pipeline-shop', 'Its username.'),
    expires: z.iso.datetime().nullable(),
    bound_to: boundTo,
    pipeline: pipelineForm.nullable().meta({ description: 'The job whose identity token was exchanged.' }),
  })
  .meta({ id: 'PresentToken' })

const presentRow = present
  .pick({ identifier: true, user: true })
  .extend({ expires: z.date().nullable(), ceiling: z.unknown(), pipeline: storedPipeline })

/** The `error` of RFC 6749, section 5.2, for clients of OAuth. */
const oauthErrors: Readonly<Record<number, string>> = { 400: 'invalid_request', 401: 'invalid_grant' }

type Counts = Pick<Door, 'countFailedLogin'> & { readonly countRequest: CountRequest }

export function exchangeRoutes(app: Api, db: Db, exchange: ExchangeToken, counts: Counts): void {
  app.register(async (scope: Api) => {
    scope.removeAllContentTypeParsers()
    await scope.register(formbody, { bodyLimit: maxBytes })
    scope.addHook('preSerialization', async (_, { statusCode }, body: object) => {
      const error = oauthErrors[statusCode]
      return error === undefined ? body : { ...body, error }
    })
    scope.post(
      '/auth/token/',
      {
        config: {
          permission: 'anyone',
          bodyLimits: { ...bodyLimits, bytes: maxBytes },
          document: { codes: ['not_authenticated', 'too_many_requests'] },
        },
        schema: {
          summary: 'Exchange the identity token of a job',
          description:
            'RFC 8693. By the rules of trusted issuers, a job of a CI system gets an access token for at most 15 minutes. A 401 has one text for all reasons: operators see them. A 400 and a 401 have the `error` of RFC 6749, too.',
          body: sent,
          response: { 200: given },
        },
      },
      async (request, reply) => {
        await counts.countRequest(request, reply, `exchange ${request.ip}`, 'address')
        try {
          const secret = await exchange(request.body.subject_token, request.id)
          return { access_token: secret, issued_token_type: accessToken, token_type: 'Bearer', expires_in: lifetimeS }
        } catch (error) {
          if (error instanceof Problem && error.code === 'not_authenticated') counts.countFailedLogin(request)
          throw error
        }
      },
    )
  })

  app.get(
    '/auth/token/',
    {
      config: { permission: 'authenticated' },
      schema: { summary: 'Read the token of the request', response: { 200: present } },
    },
    async (request) => {
      const [row] = await query(db, presentRow, {
        text: `SELECT t.identifier, u.username AS "user", t.expires, t.ceiling, t.pipeline
          FROM bearer_tokens t JOIN users u ON u.pk = t.user_pk WHERE t.key_hash = $1`,
        values: [tokenHash(request)],
      })
      if (row === undefined) throw new Problem('not_authenticated', 'The access token became invalid meanwhile.')
      const { ceiling, expires, ...shown } = row
      return { ...shown, expires: expires?.toISOString() ?? null, bound_to: bondsOf(ceiling) }
    },
  )
}
