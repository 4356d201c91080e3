import { z } from 'zod'
import { inTime } from '../db/in-time.ts'
import type { Api } from '../http/api.ts'
import { cancelForUser } from '../runs/cancel.ts'
import { noSuchRun } from '../runs/options.ts'
import type { Submitter } from '../submissions/submission.ts'
import { readRun } from '../views/one-run.ts'
import { run } from '../views/run.ts'

/** POST /api/v3/blueprints/runs/{id}/cancel/: a run that waits is not applied. */

const description = `Nothing of it is applied, now or later. The client that waits for it is answered with 409 \`cancelled_by_user\`,
and so is the same request again under its \`Idempotency-Key\`. It takes no body.

409 \`conflict\` when the run has ended, and when a worker has it.`

export function runCancelRoutes(app: Api, submitter: Submitter): void {
  const { db, engine } = submitter
  const document = {
    codes: ['conflict', 'unavailable'],
    alsoNeeds: [{ permission: 'manage_queue', when: "to cancel another user's run" }],
  } as const
  app.post(
    '/blueprints/runs/:id/cancel/',
    {
      config: { permission: 'authenticated', secret: true, document },
      schema: {
        summary: 'Cancel a run that waits',
        description,
        params: z.object({ id: z.guid().meta({ description: 'The id of the run.' }) }),
        response: { 200: run },
      },
    },
    async ({ params: { id }, actor, id: requestId }) => {
      await cancelForUser(submitter, id, actor, requestId)
      const cancelled = await inTime(readRun(db, engine, { id, withBlueprint: false }, actor))
      if (cancelled === null) throw noSuchRun()
      return cancelled
    },
  )
}
