import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'
import { Problem } from '../errors.ts'
import type { Api } from '../http/api.ts'
import { queryBoolean } from '../http/query.ts'
import { list } from '../lists/list.ts'
import { runList } from '../lists/runs.ts'
import type { Engine } from '../plan/engine.ts'
import type { ApplyQueue } from '../queue/backend.ts'
import { progressOf } from '../queue/enqueue.ts'
import { readRun } from '../views/one-run.ts'
import { run } from '../views/run.ts'

/** GET /api/v3/blueprints/runs/, GET /api/v3/blueprints/runs/{id}/: the outcomes of submissions. */

const includeBlueprint = queryBoolean.default(true).meta({
  description: 'False leaves `blueprint` empty: for those who ask often, until the run has ended.',
})

const toSeeOthers = [{ permission: 'view_run', when: "to see others' runs" }] as const

export function runRoutes(app: Api, db: Db, engine: Engine, queue: ApplyQueue): void {
  list(app, db, runList(engine.registry))

  app.get(
    '/blueprints/runs/:id/',
    {
      config: { permission: 'authenticated', secret: true, document: { alsoNeeds: toSeeOthers } },
      schema: {
        summary: 'Read what became of a submission',
        description: 'Its submitter and superusers see generated values too, as long as they are kept.',
        params: z.object({ id: z.guid().meta({ description: 'The id of the run.' }) }),
        querystring: z.strictObject({ include_blueprint: includeBlueprint }),
        response: { 200: run },
      },
    },
    async ({ params, query, actor }) => {
      const wanted = { id: params.id, withBlueprint: query.include_blueprint }
      const found = await inTime(readRun(db, engine, wanted, actor, (of, attempt) => progressOf(queue, of, attempt)))
      if (found === null) throw new Problem('not_found', 'There is no such run.')
      return found
    },
  )
}
