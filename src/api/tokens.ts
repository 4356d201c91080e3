import { z } from 'zod'
import type { Engine } from '../blueprint/inspect.ts'
import { findToken, viewKey } from '../blueprint/token-key.ts'
import { writable } from '../blueprint/writable.ts'
import { type Write, write } from '../blueprint/write.ts'
import type { Db } from '../db/client.ts'
import type { Api } from '../http/api.ts'
import { isObject } from '../json-object.ts'
import type { Actor } from '../permissions.ts'
import { readOne } from '../views/rows.ts'
import { tokenView } from '../views/token.ts'
import type { Row, View } from '../views/view.ts'

/** POST /api/v3/core/tokens/, PATCH /api/v3/core/tokens/{identifier}/, GET .../view_key/ */

const model = 'service_core.token'

/** What no identifier can be names no token. */
const params = z.object({
  identifier: z
    .string()
    .max(255)
    .regex(/^[-a-zA-Z0-9_]+$/),
})

/** What `escalation-rules.ts` and `token-key.ts` ask, as the description tells it. */
const alsoHeld = 'all of whose rights the caller must hold, too'
const toMake = [{ permission: 'add_token', when: `for another user, ${alsoHeld}` }] as const
const toChange = [
  { permission: 'change_token', when: `for another user's; its intent and expiry only if it is one ${alsoHeld}` },
] as const
const toView = [
  { permission: 'view_token_key', when: `for that of another user, ${alsoHeld}, and for whoever acts as the owner` },
] as const
const forPowers = {
  permission: 'superuser',
  when: 'for a token that is managed, does not expire or lives longer than TOKEN_MAX_DAYS, and for the intents verification and recovery',
} as const

/** Answers are what the view makes of rows: nothing is validated on the way out. */
const full: View['schema'] = tokenView.schema

export function tokenRoutes(app: Api, db: Db, engine: Engine): void {
  const save = (actor: Actor, request: Omit<Write, 'model'>): Promise<Row> =>
    write(db, engine, actor, { model, ...request }, (tx, pk) => readOne(tx, tokenView, pk))

  app.post(
    '/core/tokens/',
    {
      config: {
        permission: 'authenticated',
        tellsTextFaults: true,
        document: {
          body: () => writable(engine.registry, model, 'create'),
          alsoNeeds: [...toMake, forPowers],
        },
      },
      schema: { summary: 'Create a token', body: z.unknown(), response: { 201: full } },
    },
    async ({ actor, body, textFaults, id: requestId }, reply) => {
      const members = ownUnlessSaid(actor, body)
      return reply.code(201).send(await save(actor, { mode: { create: true }, members, textFaults, requestId }))
    },
  )

  app.patch(
    '/core/tokens/:identifier/',
    {
      config: {
        permission: 'authenticated',
        tellsTextFaults: true,
        document: {
          body: () => writable(engine.registry, model, 'change'),
          alsoNeeds: [...toChange, forPowers],
        },
      },
      schema: { summary: 'Change a token', params, body: z.unknown(), response: { 200: full } },
    },
    async ({ params: { identifier }, actor, body: members, textFaults, id: requestId }, reply) => {
      const { pk } = await findToken(db, actor, identifier, 'change_token')
      return reply.send(await save(actor, { mode: { change: pk }, members, textFaults, requestId }))
    },
  )

  app.get(
    '/core/tokens/:identifier/view_key/',
    {
      // It would take the one view, and show nothing.
      exposeHeadRoute: false,
      config: { permission: 'authenticated', document: { codes: ['key_gone'], alsoNeeds: toView } },
      schema: { summary: "View a new token's key, once", params, response: { 200: z.object({ key: z.string() }) } },
    },
    async ({ params: { identifier }, actor, id: requestId }, reply) => {
      reply.header('Cache-Control', 'no-store')
      return { key: await viewKey(db, engine, actor, identifier, requestId) }
    },
  )
}

const ownUnlessSaid = (actor: Actor, body: unknown): unknown => (isObject(body) ? { user: actor.pk, ...body } : body)
