import { z } from 'zod'
import type { Engine } from '../blueprint/inspect.ts'
import { type RunView, readRun } from '../blueprint/run/read.ts'
import type { Db } from '../db/client.ts'
import { Problem } from '../errors.ts'
import type { Api } from '../http/api.ts'

/** GET /api/v3/blueprints/runs/{id}/: what became of a submission, for its submitter and superusers. */

const run = z.object({
  id: z.guid(),
  state: z.enum(['queued', 'running', 'done', 'failed', 'cancelled']),
  title: z.string(),
  applied: z.boolean().nullable(),
  reason: z.string().nullable(),
  logs: z.array(z.string()),
  blueprint: z.string(),
  generated: z.record(z.string(), z.record(z.string(), z.string())),
  submitter: z.int().nullable(),
  request_id: z.string(),
  rings: z.int(),
  created_at: z.string(),
  started_at: z.string().nullable(),
  finished_at: z.string().nullable(),
})

export function runRoutes(app: Api, db: Db, engine: Engine): void {
  app.get(
    '/blueprints/runs/:id/',
    {
      config: { permission: 'authenticated' },
      schema: {
        summary: 'Read what became of a submission',
        description: 'For whoever submitted it, and for superusers.',
        params: z.object({ id: z.guid() }),
        response: { 200: run },
      },
    },
    async ({ params, actor }, reply) => {
      const found = await readRun(db, engine, params.id)
      const own = found?.submitterPk === actor.pk
      if (found === undefined || !(own || actor.isSuperuser)) throw new Problem('not_found', 'There is no such run.')
      reply.header('Cache-Control', 'no-store')
      const { impersonator } = actor
      return toWire(found, own && (impersonator === undefined || impersonator.pk === found.impersonatorPk))
    },
  )
}

const time = (at: Date | null) => at?.toISOString() ?? null

/** Values that the service made up are for the one who submitted, and for nobody who only acts as him. */
function toWire(
  { submitterPk, impersonatorPk: _, requestId, createdAt, startedAt, finishedAt, generated, ...view }: RunView,
  isForHim: boolean,
): z.infer<typeof run> {
  return {
    ...view,
    generated: isForHim ? generated : {},
    submitter: submitterPk,
    request_id: requestId,
    created_at: createdAt.toISOString(),
    started_at: time(startedAt),
    finished_at: time(finishedAt),
  }
}
