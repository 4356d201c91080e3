import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import { findRemovable, findToken, newToken, viewKey } from '../apply/token-key.ts'
import { type Write, write } from '../apply/write.ts'
import type { Db, Tx } from '../db/client.ts'
import type { Api } from '../http/api.ts'
import { etagOf, matchHeaders, preconditionOf, sendWritten } from '../http/etag.ts'
import type { Headers } from '../http/headers.ts'
import * as filter from '../lists/filters.ts'
import { listAndOne } from '../lists/one.ts'
import { tokenText } from '../lists/tables.ts'
import { writable } from '../openapi/writable.ts'
import type { Actor, Permission } from '../permissions.ts'
import type { Engine } from '../plan/engine.ts'
import { tokenIntents } from '../token-secret.ts'
import { type ReadToken, readToken, type Token, token, tokenView } from '../views/token.ts'
import { readUidOf } from '../views/uid.ts'

/** GET and POST /api/v3/core/tokens/, GET, PATCH and DELETE /api/v3/core/tokens/{identifier}/, GET .../view_key/ */

const model = 'service_core.token'

/** The parameters of the path. A malformed identifier is a 404. */
const params = z.object({
  identifier: z
    .string()
    .max(255)
    .regex(/^[-a-zA-Z0-9_]+$/)
    .meta({ description: 'The identifier of the token.' }),
})

/** The policies of `rights/policies.ts` and of `apply/token-key.ts`, in the words of the API description. */
const ofAnother = (permission: Permission, when = "for another user's token") => ({
  permission,
  when: `${when}; the caller must also hold all rights of that user`,
})
const unusual = 'for a token that is managed, does not expire or lives longer than TOKEN_MAX_DAYS'
const forPowers = { permission: 'superuser', when: unusual } as const
const forIntents = {
  permission: 'superuser',
  when: `${unusual}, and for the intents verification and recovery`,
} as const

/** The schema for the types and the description: answers are not validated. */
const full: z.ZodType<Token> = token

const sendToken = (reply: FastifyReply, { bound_to, ...written }: ReadToken): FastifyReply =>
  sendWritten(reply, JSON.stringify(written satisfies Token), JSON.stringify({ ...written, bound_to }))

export function tokenRoutes(app: Api, db: Db, engine: Engine): void {
  const save = async (actor: Actor, request: Omit<Write, 'model'>): Promise<ReadToken> => {
    const uidOf = await readUidOf(db)
    return write(db, engine, actor, { model, ...request }, (tx, pk) => readToken(tx, String(pk), { uidOf, actor }))
  }
  const precondition = async (actor: Actor, headers: Headers, pk: string) => {
    const uidOf = await readUidOf(db)
    return preconditionOf(headers, 'token', async (tx: Tx) => [
      etagOf(JSON.stringify(await readToken(tx, pk, { uidOf, actor }))),
    ])
  }

  listAndOne(app, db, {
    path: '/core/tokens/',
    summary: 'List tokens',
    permission: 'authenticated',
    own: { field: 'userPk', unless: 'view_token' },
    view: tokenView,
    count: 'rows',
    search: tokenText,
    order: {
      identifier: 'identifier',
      description: 'description',
      intent: 'intent',
      user: 'userPk',
      expires: 'expires',
    },
    defaultOrder: 'identifier',
    compared: { user: 'its pk' },
    filters: {
      pk: filter.isOneOfKeys('pk', 'uuid'),
      identifier: filter.unique('identifier'),
      intent: filter.isOneOf('intent', 'token_intent', tokenIntents, 'What the token is for.', 'TokenIntent'),
      user: filter.hasKey('userPk', 'Of the user with this key.'),
      managed: filter.unique('managed', 'Under this mark of what manages it.'),
      expiring: filter.isTrue('expiring', 'Whether it expires at all.'),
      expires_after: filter.isSince('expires', 'Expires at this time or later.'),
      expires_before: filter.isBefore('expires', 'Expires before this time.'),
    },
    one: { by: 'identifier', displayName: 'token' },
  })

  app.post(
    '/core/tokens/',
    {
      config: {
        permission: 'authenticated',
        reportsTextErrors: true,
        document: {
          body: () => writable(engine.registry, model, 'create'),
          alsoNeeds: [ofAnother('add_token', 'for another user'), forIntents],
          answerHeaders: ['ETag'],
        },
      },
      schema: { summary: 'Create a token', body: z.unknown(), response: { 201: full } },
    },
    async ({ actor: caller, body, textErrors, id: requestId }, reply) => {
      const { actor, fields } = await newToken(db, caller, body)
      const token = await save(actor, { mode: { create: true }, fields, textErrors, requestId })
      return sendToken(reply.code(201), token)
    },
  )

  app.patch(
    '/core/tokens/:identifier/',
    {
      config: {
        permission: 'authenticated',
        reportsTextErrors: true,
        document: {
          body: () => writable(engine.registry, model, 'change'),
          alsoNeeds: [ofAnother('change_token'), forPowers],
          codes: ['precondition_failed'],
          headers: matchHeaders,
          answerHeaders: ['ETag'],
        },
      },
      schema: { summary: 'Change a token', params, body: z.unknown(), response: { 200: full } },
    },
    async ({ params: { identifier }, actor, body: fields, headers, textErrors, id: requestId }, reply) => {
      const { pk } = await findToken(db, actor, identifier, 'change_token')
      const conditions = { precondition: await precondition(actor, headers, pk) }
      const token = await save(actor, { mode: { change: pk }, fields, textErrors, requestId, ...conditions })
      return sendToken(reply, token)
    },
  )

  app.delete(
    '/core/tokens/:identifier/',
    {
      config: {
        permission: 'authenticated',
        document: { codes: ['precondition_failed'], headers: matchHeaders, alsoNeeds: [ofAnother('delete_token')] },
      },
      schema: {
        summary: 'Delete a token',
        description: 'Its key authenticates no more. The last token by which a superuser can authenticate stays.',
        params,
        response: { 204: z.null() },
      },
    },
    async ({ params: { identifier }, actor: caller, headers, id: requestId }, reply) => {
      const { pk, actor } = await findRemovable(db, caller, identifier)
      const removal = { mode: { remove: { pk } }, requestId, precondition: await precondition(actor, headers, pk) }
      await write(db, engine, actor, { model, ...removal }, async () => undefined)
      return reply.code(204).send(null)
    },
  )

  app.get(
    '/core/tokens/:identifier/view_key/',
    {
      // HEAD would use up the one view, and show nothing.
      exposeHeadRoute: false,
      config: {
        permission: 'authenticated',
        secret: true,
        document: {
          codes: ['key_gone'],
          alsoNeeds: [ofAnother('view_token_key', "for another user's token, and while impersonating the owner")],
        },
      },
      schema: {
        summary: "View a new token's key, once",
        params,
        response: { 200: z.object({ key: z.string() }).meta({ id: 'TokenKey' }) },
      },
    },
    async ({ params: { identifier }, actor, id: requestId }) => ({
      key: await viewKey(db, engine, actor, identifier, requestId),
    }),
  )
}
