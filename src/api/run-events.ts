import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Db } from '../db/client.ts'
import type { Streams } from '../events/streams.ts'
import { actorAgain } from '../http/access.ts'
import type { Api } from '../http/api.ts'
import { hasUuid } from '../lists/filters.ts'
import { narrowingParametersOf, shows } from '../lists/list.ts'
import { runList } from '../lists/runs.ts'
import type { Registry } from '../models/registry.ts'

/** GET /api/v3/blueprints/runs/events/ and GET /api/v3/blueprints/runs/{id}/events/, as Server-Sent Events. */

const toSeeOthers = [{ permission: 'view_run', when: "to see others' runs" }] as const

const headers = z.object({
  'Last-Event-ID': z
    .string()
    .max(200)
    .optional()
    .meta({ description: 'The id of the last event that was read: the answer goes on behind it.' }),
})

const events = z.string().meta({ description: 'Events, as text.' })

const sample = (...lines: string[]) => `${lines.join('\n')}\n\n`
const ended = sample(
  'id: 81233-1795445596-ended-01a1fd66-cb30-7a41-8c55-2f1b7a9d0e63',
  'event: ended',
  'data: {"id":"01a1fd66-cb30-7a41-8c55-2f1b7a9d0e63","state":"done","title":"apply oauth2 grafana","applied":true}',
)

const document = {
  alsoNeeds: toSeeOthers,
  headers,
  codes: ['too_many_requests', 'unavailable'],
  eventStream: () => ended,
} as const

export function runEventRoutes(app: Api, db: Db, registry: Registry, streams: Streams): void {
  const spec = runList(registry)
  const of = (request: Pick<FastifyRequest, 'actor' | 'headers' | 'routeOptions'>) => ({
    actor: request.actor,
    again: () => actorAgain(db, request),
  })

  app.get(
    '/blueprints/runs/events/',
    {
      sse: 'manual',
      config: { permission: 'authenticated', document: { ...document, verb: 'follow' } },
      schema: {
        summary: 'Follow runs',
        description:
          'Server-Sent Events of the runs that the list of runs shows with these parameters, from now on: `queued`, `running`, `progress`, `attempt`, `ended`; `queue` and `worker` with `view_queue`; `reset` when too much was missed. No `queued`, `attempt` or `ended` is omitted; one may be repeated with its id after a reconnect.',
        querystring: narrowingParametersOf(spec),
        response: { 200: events },
      },
    },
    async (request, reply) =>
      streams.serve(request, reply, {
        ...of(request),
        kind: 'runs',
        condition: (actor) => shows(spec, request.query, actor),
      }),
  )

  const byId = { ...spec, filters: { id: hasUuid('id', 'Of this id.') } } as const

  app.get(
    '/blueprints/runs/:id/events/',
    {
      sse: 'manual',
      config: { permission: 'authenticated', document },
      schema: {
        summary: 'Follow a run',
        description:
          'Server-Sent Events of one run: its present state, what changes, and the end of the stream behind `ended`. 204 when the caller has read `ended` already, so that a browser does not connect again.',
        params: z.object({ id: z.guid().meta({ description: 'The id of the run.' }) }),
        response: { 200: events, 204: z.null() },
      },
    },
    async (request, reply) => {
      const run = request.params.id.toLowerCase()
      return streams.serve(request, reply, {
        ...of(request),
        kind: 'run',
        run,
        condition: (actor) => shows(byId, { ...{ id: run }, search: [] }, actor),
      })
    },
  )
}
