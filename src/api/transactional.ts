import { z } from 'zod'
import { ErrorList } from '../errors.ts'
import type { Api } from '../http/api.ts'
import { submissionExamples } from '../openapi/submission-examples.ts'
import { submission } from '../openapi/writable.ts'
import { kindOf, ownerIn, toBlueprint } from '../plan/submission.ts'
import { applyAccess, requireKind } from '../submissions/access.ts'
import { answerApply, applyAnswer, applyDocument, applyQuery, conditionsIn } from '../submissions/answer.ts'
import { readConditions } from '../submissions/conditions.ts'
import type { Submitter } from '../submissions/submission.ts'
import { submit } from '../submissions/submit.ts'

/** PUT /api/v3/core/transactional/applications/: an application and its provider, applied in one transaction. */

const description = `Converts both to a blueprint, validates it, and applies it in one transaction: all of it, or nothing.

The same again answers \`unchanged\` and writes nothing. Fields that are not sent keep their values; for an
existing object only the slug and the provider's name are required.

A provider that is there already, in \`backchannel_providers\`, needs the permission to change it.`

export function transactionalRoutes(app: Api, submitter: Submitter): void {
  const { registry } = submitter.engine
  const examples = submissionExamples(registry)
  const document = {
    ...applyDocument,
    body: () => submission(registry),
    examples: () => examples,
    alsoNeeds: [...registry.kinds.values()].flatMap(({ resource, provider: { verboseName } }) => [
      {
        permission: [`add_${resource}`, `change_${resource}`] as const,
        when: `for the provider, by whether it is there already: ${verboseName}`,
      },
      { permission: `delete_${resource}` as const, when: `for \`replace_provider\`, to delete one: ${verboseName}` },
    ]),
  }
  app.put(
    '/core/transactional/applications/',
    {
      config: { permission: applyAccess.submission, takes: 'run', reportsTextErrors: true, document },
      schema: {
        summary: 'Apply an application and its provider',
        description,
        querystring: applyQuery,
        body: z.unknown(),
        response: { 200: applyAnswer },
      },
    },
    async (request, reply) => {
      const { actor, body, headers, query, textErrors } = request
      const kind = kindOf(body, registry)
      const read = () => {
        if (kind !== undefined) requireKind(actor, kind)
        const errors = new ErrorList().include(textErrors === undefined ? [] : [textErrors])
        const owner = ownerIn(body, errors)
        const own = owner === undefined ? {} : { owner }
        const conditions = readConditions(headers, errors, { ...conditionsIn(query), ...own })
        return toBlueprint(body, registry, conditions, errors)
      }
      return answerApply(reply, await submit(submitter, request, reply, read))
    },
  )
}
