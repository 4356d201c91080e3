import { z } from 'zod'
import { blueprintBody, blueprintText } from '../blueprint/blueprint-body.ts'
import { check } from '../blueprint/check.ts'
import { compile } from '../blueprint/compile.ts'
import { documentLimits } from '../blueprint/document.ts'
import { type Submitter, submit } from '../blueprint/run/submit.ts'
import { parse, readDocument } from '../blueprint/yaml.ts'
import type { Api } from '../http/api.ts'
import { answerApply, applyAnswer, applyDocument, applyQuery, isCreateOnly, refuseUnbuilt } from '../http/apply.ts'
import { acceptYaml } from '../http/body.ts'
import { countApply, type Metrics } from '../http/metrics.ts'

/**
 * PUT /api/v3/blueprints/: a whole blueprint, as YAML or, without tags, as JSON. It may write anything, so that it takes
 * a superuser.
 */

/** Bytes of a blueprint as text; what it says is bounded by `documentLimits`. */
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
          const findings = await check(db, engine, plan, actor, conditions)
          const title = `apply blueprint ${blueprint.metadata.name.replace(/\s+/g, ' ').slice(0, 100)}`
          return submit(submitter, { blueprint, plan, conditions, title }, findings, actor, requestId)
        })
        return answerApply(reply, id, run)
      },
    )
  })
}
