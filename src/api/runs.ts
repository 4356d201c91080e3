import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'
import { Problem } from '../errors.ts'
import type { Api } from '../http/api.ts'
import { queryBoolean } from '../http/query.ts'
import { changedObject } from '../lists/changed-object.ts'
import * as filter from '../lists/filters.ts'
import { runTitle } from '../lists/find.ts'
import { list } from '../lists/list.ts'
import type { Engine } from '../plan/engine.ts'
import type { ApplyQueue } from '../queue/backend.ts'
import { progressOf } from '../queue/enqueue.ts'
import { readRun, run, runView } from '../views/run.ts'

/** GET /api/v3/blueprints/runs/, GET /api/v3/blueprints/runs/{id}/: the outcomes of submissions. */

const includeBlueprint = queryBoolean.default(true).meta({
  description: 'False leaves `blueprint` empty: for those who ask often, until the run has ended.',
})

const toSeeOthers = [{ permission: 'view_run', when: "to see others' runs" }] as const

export function runRoutes(app: Api, db: Db, engine: Engine, queue: ApplyQueue): void {
  list(app, db, {
    path: '/blueprints/runs/',
    summary: 'List runs',
    permission: 'authenticated',
    own: { field: 'submitterPk', unless: 'view_run' },
    view: runView,
    // As `mayReadRun` says of one run.
    owned: {
      unless: 'view_application',
      sql: "(runs.options->>'owner')",
      or: "(runs.options->>'owner' IS NULL AND runs.submitter_pk = {caller})",
    },
    count: 'rows',
    search: runTitle,
    order: { created_at: 'createdAt', title: 'title', state: 'state', id: 'id' },
    defaultOrder: '-created_at',
    filters: {
      state: filter.isOneOf(
        'state',
        'run_state',
        ['queued', 'done', 'failed', 'cancelled'],
        'In this stored state: a run that is `running` is a `queued` one that a worker has locked.',
      ),
      mode: filter.isOneOf('mode', 'run_mode', ['apply', 'plan'], 'Applied, or only planned.'),
      reason: filter.equals('reason', 'Ended for this reason.'),
      kind: filter.equals('kind', 'Of this kind.'),
      slug: filter.equals('slug'),
      object: changedObject(engine.registry),
      submitter: filter.hasKey('submitterPk', 'Submitted by the user with this key.'),
      request_id: filter.equals('requestId', 'Submitted by the request with this `X-Request-Id`.'),
      created_after: filter.isSince('createdAt', 'Made at this time or later.'),
      created_before: filter.isBefore('createdAt', 'Made before this time.'),
    },
  })

  app.get(
    '/blueprints/runs/:id/',
    {
      config: { permission: 'authenticated', document: { alsoNeeds: toSeeOthers } },
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
