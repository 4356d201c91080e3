import { z } from 'zod'
import { documentLimits } from '../document/document.ts'
import { parseSent, readDocument } from '../document/yaml.ts'
import { ErrorList } from '../errors.ts'
import type { Api } from '../http/api.ts'
import { applyAnswer, applyDocument, applyQuery, askedIn, serveApply } from '../http/apply-answer.ts'
import { readConditions } from '../http/apply-conditions.ts'
import { acceptYaml } from '../http/body.ts'
import type { Metrics } from '../http/metrics.ts'
import { blueprintBody, blueprintText } from '../openapi/blueprint-body.ts'
import { compile } from '../plan/compile.ts'
import type { Submitter } from '../runs/submit.ts'

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
        config: { permission: 'superuser', takes: 'run', document },
        schema: {
          summary: 'Apply a blueprint',
          querystring: applyQuery,
          body: z.unknown(),
          response: { 200: applyAnswer },
        },
      },
      async (request, reply) => {
        const read = () => {
          const { body, headers, query } = request
          const blueprint = typeof body === 'string' ? parseSent(body) : readDocument(body)
          const errors = new ErrorList()
          const asked = { ...blueprint, ...askedIn(query) }
          const conditions = { ...readConditions(headers, errors, asked), expectedKeys: {} }
          const { steps, errors: found } = compile(blueprint, submitter.engine.registry)
          const title = `${conditions.mode} blueprint ${blueprint.metadata.name.replace(/\s+/g, ' ').slice(0, 100)}`
          const submission = { blueprint, conditions, title, kind: 'blueprint', slug: null }
          return { plan: { steps, errors: errors.include([found]) }, submission }
        }
        return serveApply({ submitter, metrics }, request, reply, { kind: 'blueprint', read })
      },
    )
  })
}
