import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'
import { Problem } from '../errors.ts'
import { authenticateAgain } from '../http/access.ts'
import type { Api } from '../http/api.ts'
import { etagHeaders, hasTag, neverStored, sendTagged } from '../http/etag.ts'
import { preferencesIn } from '../http/prefer.ts'
import { queryBoolean } from '../http/query.ts'
import { queryInteger, queryText } from '../lists/filters.ts'
import { list } from '../lists/list.ts'
import { runList } from '../lists/runs.ts'
import type { Engine } from '../plan/engine.ts'
import { type Live, readRun } from '../views/one-run.ts'
import { run } from '../views/run.ts'
import { longestRevision, parseRevision } from '../waits/revision.ts'
import { longestWait, type Waits } from '../waits/waits.ts'

/** GET /api/v3/blueprints/runs/, GET /api/v3/blueprints/runs/{id}/: the outcomes of submissions. */

const includeBlueprint = queryBoolean.default(true).meta({
  description: 'False leaves `blueprint` empty: for those who ask often, until the run has ended.',
})

const headers = etagHeaders.extend({
  Prefer: z
    .string()
    .optional()
    .meta({
      description: `\`wait=N\`, with \`If-None-Match\`: the answer comes when the run is another one, or after N seconds, at most ${longestWait} (RFC 7240).`,
      examples: ['wait=25'],
    }),
})

const parameters = {
  since: queryText(longestRevision)
    .refine((text) => parseRevision(text) !== undefined, 'Must be a `Gatewright-Revision` of an answer.')
    .optional()
    .meta({
      description: `The \`Gatewright-Revision\` of the answer that the client has. With \`wait=N\`, the answer has a revision, and comes when something else stands in the ledger, in the queue or of the workers, or after N seconds, at most ${longestWait}. The list may be the same all the same. \`wait\` is no parameter of this description: a client in Java cannot have a method of that name.`,
    }),
  wait: queryInteger(0, longestWait).optional().meta({ 'x-internal': true }),
}

const waiting = z.object(parameters)

type Parts = { readonly db: Db; readonly engine: Engine; readonly live: Live; readonly waits: Waits }

export function runRoutes(app: Api, { db, engine, live, waits }: Parts): void {
  const before = {
    parameters,
    laterBy: 'wait',
    answerHeaders: ['Gatewright-Revision'],
    run: async (request: FastifyRequest, reply: FastifyReply) => {
      const { since, wait } = request.query as z.output<typeof waiting>
      if (wait === undefined) return
      const of = { kind: 'runs', seconds: request.method === 'HEAD' ? 0 : wait } as const
      reply.header('Gatewright-Revision', await waits.untilChanged(request, reply, since, of))
      await authenticateAgain(db, request)
      await request.takeShare(reply)
    },
  }
  list(app, db, { ...runList(engine.registry, live.whyOf), before })

  app.get(
    '/blueprints/runs/:id/',
    {
      config: {
        permission: 'authenticated',
        secret: true,
        document: {
          alsoNeeds: [{ permission: 'view_run', when: "to see others' runs" }],
          headers,
          answerHeaders: ['ETag', 'Vary'],
          codes: ['precondition_failed', 'too_many_requests', 'unavailable'],
        },
      },
      schema: {
        summary: 'Read what became of a submission',
        description: 'Its submitter and superusers see generated values too, as long as they are kept.',
        params: z.object({ id: z.guid().meta({ description: 'The id of the run.' }) }),
        querystring: z.strictObject({ include_blueprint: includeBlueprint }),
        response: { 200: run, 304: z.null() },
      },
    },
    async (request, reply) => {
      const wanted = { id: request.params.id.toLowerCase(), withBlueprint: request.query.include_blueprint }
      const read = async () => JSON.stringify(await inTime(readRun(db, engine, wanted, request.actor, live)))
      const seconds = secondsOf(request)
      if (seconds > 0) reply.header('Preference-Applied', `wait=${seconds}`)
      const until = performance.now() + seconds * 1_000
      for (let isWaiting = seconds > 0; ; ) {
        const standing = isWaiting ? await waits.standing(wanted.id) : undefined
        const text = await read()
        if (standing === undefined || !hasTag(request.headers['if-none-match'], text))
          return sendTagged(reply, text, 'run', neverStored)
        // The state may be another one without a difference that is shown: the request waits on.
        const left = (until - performance.now()) / 1_000
        isWaiting = await waits.untilRunChanged(request, reply, standing, left)
        await authenticateAgain(db, request)
      }
    },
  )

  goneRoutes(app)
}

/** @returns how long the request is to wait; 0 when it does not say what it has */
function secondsOf({ method, headers }: Pick<FastifyRequest, 'method' | 'headers'>): number {
  const wait = preferencesIn(headers.prefer).get('wait') ?? ''
  if (method === 'HEAD' || headers['if-none-match'] === undefined || !/^\d{1,9}$/.test(wait)) return 0
  return Math.min(Number(wait), longestWait)
}

const whatInstead = {
  '/blueprints/runs/events/': 'since and wait to /api/v3/blueprints/runs/',
  '/blueprints/runs/:id/events/': 'If-None-Match and Prefer: wait=30 to /api/v3/blueprints/runs/{id}/',
}

/** These routes were removed in 0.3.0. Version 0.4.0 does not name them any more. */
function goneRoutes(app: Api): void {
  for (const [path, instead] of Object.entries(whatInstead))
    app.get(path, { config: { permission: 'authenticated' }, schema: { hide: true } }, async () => {
      throw new Problem('route_gone', `There are no streams of events any more: send ${instead}.`)
    })
}
