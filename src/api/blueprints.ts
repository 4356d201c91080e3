import { z } from 'zod'
import { check } from '../apply/check.ts'
import { reader } from '../db/engine-tx.ts'
import { documentLimits } from '../document/document.ts'
import { parse, readDocument } from '../document/yaml.ts'
import type { Api } from '../http/api.ts'
import {
  answerApply,
  applyAnswer,
  applyDocument,
  applyQuery,
  isCreateOnly,
  refuseUnbuilt,
} from '../http/apply-answer.ts'
import { acceptYaml } from '../http/body.ts'
import { countApply, type Metrics } from '../http/metrics.ts'
import { blueprintBody, blueprintText } from '../openapi/blueprint-body.ts'
import { compile } from '../plan/compile.ts'
import { type Submitter, submit } from '../runs/submit.ts'

/**
 * PUT /api/v3/blueprints/: a whole blueprint, as YAML or, without tags, as JSON. A blueprint may write anything, so it
 * requires a superuser.
 */

/** Of the text. `documentLimits` limits the parsed document too. */
const bytes = documentLimits.bytes

export function blueprintRoutes(app: Api, submitter: Submitter, metrics: Metrics): void {
  const document = { ...applyDocument, body: () => blueprintBody(submitter.engine.registry), text: blueprintText }
  app.register(async (scope: Api) => {
    acceptYaml(scope, { bytes })
    scope.put(
      '/blueprints/',
      {
        config: { permission: 'superuser', document },
        schema: {
          summary: 'Apply a blueprint',
          querystring: applyQuery,
          body: z.unknown(),
          response: { 200: applyAnswer },
        },
      },
      async ({ actor, body, headers, query, id: requestId }, reply) => {
        const { db, engine } = submitter
        const { id, run } = await countApply(metrics, { kind: 'blueprint', reply }, async () => {
          refuseUnbuilt(headers, query)
          const blueprint = typeof body === 'string' ? parse(body) : readDocument(body)
          const plan = compile(blueprint, engine.registry)
          const conditions = { createOnly: isCreateOnly(headers), expectedKeys: {} }
          await check(reader(db), engine, plan, actor, conditions)
          const title = `apply blueprint ${blueprint.metadata.name.replace(/\s+/g, ' ').slice(0, 100)}`
          return submit(submitter, { blueprint, conditions, title, kind: 'blueprint', slug: null }, actor, requestId)
        })
        return answerApply(reply, id, run)
      },
    )
  })
}
