import { z } from 'zod'
import { documentLimits } from '../document/document.ts'
import { readForm } from '../document/yaml.ts'
import { ErrorList } from '../errors.ts'
import type { Api } from '../http/api.ts'
import { acceptDocuments, readLong } from '../http/body.ts'
import { blueprintOrSubmissions, blueprintText, bodyExamples } from '../openapi/blueprint-body.ts'
import { compileInTurns } from '../plan/compile.ts'
import { maxFinds } from '../plan/lookups.ts'
import { errorsOfEntries, placed, readSent, type SentBlueprint } from '../plan/read-blueprint.ts'
import { setIn, toSet } from '../plan/submission.ts'
import { applyAccess } from '../submissions/access.ts'
import { answerApply, applyAnswer, applyDocument, applyQuery, conditionsIn } from '../submissions/answer.ts'
import { maxChecked } from '../submissions/check.ts'
import { readConditions } from '../submissions/conditions.ts'
import type { Submitter } from '../submissions/submission.ts'
import { submit } from '../submissions/submit.ts'

/**
 * PUT /api/v3/blueprints/: a whole blueprint, as YAML or, without tags, as JSON, or submissions as JSON. The
 * caller needs the permissions that its entries need.
 */

const description = `All of it in one transaction, or nothing. As JSON, it may also be \`{"submissions": [...]}\`, each as
\`PUT /core/transactional/applications/\` takes it, or the list alone.

Each entry needs the permission to create, change or delete its object, as its own operation does. What it looks up
by \`!Find\` or by name needs the permission to view it; names of flows, property mappings and certificates are free. A document
looks up at most ${maxFinds} different rows by \`!Find\`.

More than ${maxChecked} entries are answered with 202 as soon as they are recorded: the worker checks them. A caller
without any permission to write sends at most 64 KiB.`

export function blueprintRoutes(app: Api, submitter: Submitter): void {
  const { registry } = submitter.engine
  const document = {
    ...applyDocument,
    body: () => blueprintOrSubmissions(registry),
    examples: () => bodyExamples(registry),
    text: blueprintText,
  }
  app.register(async (scope: Api) => {
    acceptDocuments(scope, documentLimits)
    scope.put(
      '/blueprints/',
      {
        config: {
          permission: applyAccess.blueprint,
          takes: 'run',
          bodyLimits: documentLimits,
          reportsTextErrors: true,
          document,
        },
        schema: {
          summary: 'Apply a blueprint, or submissions',
          description,
          querystring: applyQuery,
          body: z.unknown(),
          response: { 200: applyAnswer },
        },
      },
      async (request, reply) => {
        let sent: SentBlueprint | undefined
        const read = async () => {
          const { body, headers, query, textErrors } = request
          const errors = new ErrorList().include(textErrors === undefined ? [] : [textErrors])
          const run = { kind: 'blueprint', slug: null }
          const submissions = setIn(body)
          if (submissions !== undefined) {
            const conditions = readConditions(headers, errors, conditionsIn(query))
            const title = `${conditions.mode} ${submissions.bodies.length} submissions`
            return { ...(await toSet(submissions, registry, conditions, errors)), ...run, title }
          }
          sent = await readLong(request, typeof body === 'string' ? body.length : 0, () => readSent(body))
          const blueprint = readForm(sent.value, errors)
          const conditions = {
            ...readConditions(headers, errors, { ...blueprint, ...conditionsIn(query) }),
            expectedKeys: {},
          }
          if (blueprint === undefined) throw errors.include([errorsOfEntries(sent, registry)]).problem()
          const { errors: found, ...plan } = await compileInTurns(blueprint, registry, undefined, conditions)
          const title = `${conditions.mode} blueprint ${blueprint.metadata.name.replace(/\s+/g, ' ').slice(0, 100)}`
          return { ...run, title, blueprint, conditions, plan: { ...plan, errors: errors.include([found]) } }
        }
        try {
          return answerApply(reply, await submit(submitter, request, reply, read))
        } catch (error) {
          throw sent === undefined ? error : placed(error, sent, registry)
        }
      },
    )
  })
}
