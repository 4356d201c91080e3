import { z } from 'zod'
import { inTime } from '../db/in-time.ts'
import type { Api } from '../http/api.ts'
import { cancelForUser } from '../runs/cancel.ts'
import { applyAccess } from '../submissions/access.ts'
import { answerApply, applyAnswer, applyDocument, applyQuery } from '../submissions/answer.ts'
import { submitFormer } from '../submissions/former.ts'
import type { Submitter } from '../submissions/submission.ts'
import { readRun } from '../views/one-run.ts'
import { run } from '../views/run.ts'

/**
 * POST /api/v3/blueprints/runs/{id}/apply/: applies the stored document of a former run again, as a new run.
 * POST /api/v3/blueprints/runs/{id}/cancel/: a run that waits is not applied.
 */

const toApply = `The document is applied with what both the caller and its submitter may do now. Entries that its run skipped or
left as they were are no part of it. A plan may be applied as well; with its \`ETag\` as \`If-Match\` exactly that plan is applied. That of another user's
document must be sent.

\`Gatewright-Owner\` is that of the former run unless it is sent, and entries keep an \`owner\` of their own; the other conditions
are those of this request. Fields that the document does not name go back to what the recorded changes left in them then, but for secrets,
references, fields of trusted issuers, and fields that a stack does not manage: the run lists these in \`not_put_back\`. What runs of its
stack created since is left over. It takes no body. Values that the service generated for the former run are no part of its document: they stay as they
are now. 409 when the run has not ended, when its document can no longer be read, and when its submitter is gone.`

const toCancel = `Nothing of it is applied, now or later. The client that waits for it is answered with 409 \`cancelled_by_user\`,
and so is the same request again under its \`Idempotency-Key\`. It takes no body.

409 \`conflict\` when the run has ended, and when a worker has it.`

const params = z.object({ id: z.guid().meta({ description: 'The id of the run.' }) })

export function runActRoutes(app: Api, submitter: Submitter): void {
  const { db, engine } = submitter
  const applying = {
    ...applyDocument,
    alsoNeeds: [
      { permission: 'roll_back_run', when: "to apply another user's run" },
      { permission: applyAccess.submission, when: 'for the run of an application, with those for its provider' },
    ],
  } as const
  app.post(
    '/blueprints/runs/:id/apply/',
    {
      config: { permission: 'authenticated', takes: 'run', document: applying },
      schema: {
        summary: 'Apply the document of a former run again',
        description: toApply,
        params,
        querystring: applyQuery,
        response: { 200: applyAnswer },
      },
    },
    async (request, reply) => {
      const { headers, params, query } = request
      return answerApply(reply, await submitFormer(submitter, request, reply, { id: params.id, query, headers }))
    },
  )

  const cancelling = {
    codes: ['conflict', 'unavailable'],
    alsoNeeds: [{ permission: 'manage_queue', when: "to cancel another user's run" }],
  } as const
  app.post(
    '/blueprints/runs/:id/cancel/',
    {
      config: { permission: 'authenticated', secret: true, document: cancelling },
      schema: { summary: 'Cancel a run that waits', description: toCancel, params, response: { 200: run } },
    },
    async ({ params: { id }, actor, id: requestId }) => {
      await cancelForUser(submitter, id, actor, requestId)
      return inTime(readRun(db, engine, { id, withBlueprint: false }, actor))
    },
  )
}
