import { z } from 'zod'
import { check } from '../apply/check.ts'
import { reader } from '../db/engine-tx.ts'
import { denied } from '../http/access.ts'
import type { Api } from '../http/api.ts'
import {
  answerApply,
  applyAnswer,
  applyDocument,
  applyQuery,
  isCreateOnly,
  refuseUnbuilt,
} from '../http/apply-answer.ts'
import { countApply, type Metrics } from '../http/metrics.ts'
import { submission, submissionExamples } from '../openapi/writable.ts'
import { kindOf, mayWrite, toBlueprint } from '../plan/submission.ts'
import { type Submitter, submit } from '../runs/submit.ts'

/** PUT /api/v3/core/transactional/applications/: an application and its provider, applied in one transaction. */

const description = `Converts both to a blueprint, validates it, and applies it in one transaction: all of it, or nothing.

The same again answers \`unchanged\` and writes nothing. Of what exists already, members that are not sent stay as they
are; then only the slug and the provider's name are required.`

export function transactionalRoutes(app: Api, submitter: Submitter, metrics: Metrics): void {
  const { registry } = submitter.engine
  const document = {
    ...applyDocument,
    body: () => submission(registry),
    examples: () => submissionExamples(registry),
    alsoNeeds: [...registry.kinds.values()].map(({ resource, provider: { verboseName } }) => ({
      permission: [`add_${resource}`, `change_${resource}`] as const,
      when: `for the provider, by whether it is there already: ${verboseName}`,
    })),
  }
  app.put(
    '/core/transactional/applications/',
    {
      config: { permission: ['add_application', 'change_application'], reportsTextErrors: true, document },
      schema: {
        summary: 'Apply an application and its provider',
        description,
        querystring: applyQuery,
        body: z.unknown(),
        response: { 200: applyAnswer },
      },
    },
    async (request, reply) => {
      const { actor, body, headers, query, textErrors, id: requestId } = request
      const { db, engine } = submitter
      const kind = kindOf(body, engine.registry)
      const { id, run } = await countApply(metrics, { kind: kind?.provider.kind, reply }, async () => {
        refuseUnbuilt(headers, query)
        if (kind !== undefined && !mayWrite(actor, kind))
          throw denied([`add_${kind.resource}`, `change_${kind.resource}`])
        const submission = toBlueprint(body, engine.registry, isCreateOnly(headers), textErrors)
        await check(reader(db), engine, submission.plan, actor, submission.conditions)
        return submit(submitter, submission, actor, requestId)
      })
      return answerApply(reply, id, run)
    },
  )
}
