import { z } from 'zod'
import { inTime } from '../db/in-time.ts'
import type { Blueprint } from '../document/document.ts'
import { ErrorList, Problem } from '../errors.ts'
import { requireAccess } from '../http/access.ts'
import type { Api } from '../http/api.ts'
import { applyAccess, requireKind, requireSubmitter } from '../http/apply-access.ts'
import { applyAnswer, applyDocument, applyQuery, conditionsIn, serveApply } from '../http/apply-answer.ts'
import { readConditions } from '../http/apply-conditions.ts'
import type { Registry } from '../models/registry.ts'
import type { Actor } from '../permissions.ts'
import { compile } from '../plan/compile.ts'
import { documentOf, type FormerRun, readFormerRun } from '../runs/documents.ts'
import { mayReadRun } from '../runs/options.ts'
import type { Submitter } from '../runs/submit.ts'

/** POST /api/v3/blueprints/runs/{id}/apply/: applies the stored document of a former run again, as a new run. */

const description = `The document is applied as if the caller had sent it now: with the caller's permissions, plan and guards. A
plan may be applied as well; with its \`ETag\` as \`If-Match\` exactly that plan is applied.

\`Gatewright-Owner\` is that of the former run unless it is sent; the other conditions are those of this request. It
takes no body. Values that the service generated for the former run are no part of its document: they stay as they
are now. 409 when the run has not ended, and when its document can no longer be read.`

export function runApplyRoutes(app: Api, submitter: Submitter): void {
  const { registry, keyring } = submitter.engine
  const document = {
    ...applyDocument,
    alsoNeeds: [
      { permission: 'roll_back_run', when: "to apply another user's run" },
      { permission: applyAccess.submission, when: 'for the run of an application, with those for its provider' },
    ],
  } as const
  app.post(
    '/blueprints/runs/:id/apply/',
    {
      config: { permission: 'authenticated', takes: 'run', document },
      schema: {
        summary: 'Apply the document of a former run again',
        description,
        params: z.object({ id: z.guid().meta({ description: 'The id of the run.' }) }),
        querystring: applyQuery,
        response: { 200: applyAnswer },
      },
    },
    async (request, reply) => {
      const { actor, body, headers, params, query } = request
      const former = await inTime(readFormerRun(submitter.db, params.id))
      if (former === null || !mayReadRun(former, actor)) throw new Problem('not_found', 'There is no such run.')
      requireSubmitter(actor, former.submitterPk)
      requireSender(actor, former, registry)
      const stored = await inTime(documentOf(submitter.db, keyring, former))
      const { blueprint } = stored
      const read = () => {
        const errors = new ErrorList()
        if (body !== undefined && body !== null)
          errors.add([], 'unknown_field', 'The document is that of the run: send no body.')
        const asked = { ...blueprint, ...conditionsIn(query), formerOwner: stored.conditions.owner }
        const { expectedKeys } = stored.conditions
        const conditions = { ...readConditions(headers, errors, asked), expectedKeys }
        const { steps, errors: found } = compileAsSent(former, blueprint, registry)
        const title = former.title.replace(/^\w+/, conditions.mode)
        const submission = { blueprint, conditions, title, kind: former.kind, slug: former.slug }
        return { plan: { steps, errors: errors.include([found]) }, submission }
      }
      return serveApply(submitter, request, reply, read)
    },
  )
}

const isBlueprint = ({ slug }: FormerRun): boolean => slug === null

/** What the route requires by which the document was sent. */
function requireSender(actor: Actor, former: FormerRun, { kinds }: Registry): void {
  requireAccess(actor, isBlueprint(former) ? applyAccess.blueprint : applyAccess.submission)
  const kind = kinds.get(former.kind)
  if (!isBlueprint(former) && kind !== undefined) requireKind(actor, kind)
}

/** Errors have the paths that they have in the answers of that route. */
const compileAsSent = (former: FormerRun, blueprint: Blueprint, registry: Registry) =>
  isBlueprint(former)
    ? compile(blueprint, registry)
    : compile(blueprint, registry, (entry, index) => [entry.id ?? index])
