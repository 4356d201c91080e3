import { z } from 'zod'
import { check } from '../blueprint/check.ts'
import type { Run } from '../blueprint/run/record.ts'
import { type Submitter, submit, type Unknown } from '../blueprint/run/submit.ts'
import { kindOf, mayWrite, toBlueprint } from '../blueprint/submission.ts'
import { Faults, Problem } from '../errors.ts'
import { denied } from '../http/access.ts'
import type { Api } from '../http/api.ts'
import { countApply, type Metrics } from '../http/metrics.ts'
import { runPath } from '../http/paths.ts'

/** PUT /api/v3/core/transactional/applications/: an application and its provider, applied in one transaction. */

/** Known by name, so that it is refused by name (and a mistyped one too) until it is honoured. */
const querystring = z.strictObject({ dry_run: z.unknown().optional() })

const answer = z.object({ applied: z.boolean(), logs: z.array(z.string()) })

export function transactionalRoutes(app: Api, submitter: Submitter, metrics: Metrics): void {
  app.put(
    '/core/transactional/applications/',
    {
      config: { permission: ['add_application', 'change_application'] },
      schema: { querystring, body: z.unknown(), response: { 200: answer } },
    },
    async (request, reply) => {
      const { actor, body, headers, query, id: requestId } = request
      const { db, engine } = submitter
      const kind = kindOf(body, engine.registry)
      const { id, run } = await countApply(metrics, { kind: kind?.provider.kind, reply }, async () => {
        refuseUnbuilt(headers, query)
        if (kind !== undefined && !mayWrite(actor, kind))
          throw denied([`add_${kind.resource}`, `change_${kind.resource}`])
        const submission = toBlueprint(body, engine.registry, isCreateOnly(headers))
        await check(db, engine, submission.plan, actor, submission.conditions)
        return submit(submitter, submission, actor, requestId)
      })
      if (typeof run === 'string') {
        reply.header('Location', runPath(id))
        throw new Problem('outcome_unknown', unknown[run](runPath(id)))
      }
      reply.header('Content-Location', runPath(id))
      refuseUnanswerable(run)
      return { applied: run.applied === true, logs: [...run.logs] }
    },
  )
}

const unknown: Readonly<Record<Unknown, (path: string) => string>> = {
  unfinished: (path) => `A worker has it, but did not finish in time. Its outcome will stand at ${path}.`,
  unrecorded: (path) =>
    `The database went away while the submission was recorded. Once it is back, the outcome stands at ${path}; if nothing is there, nothing was applied.`,
}

/** What is not the submitter's to mend in the document is not a 200, even when only the worker saw it. */
function refuseUnanswerable({ reason, logs }: Run): void {
  const detail = logs.join(' ')
  switch (reason) {
    // Somebody else created it in between. To the client it is the same answer as before queueing.
    case 'precondition_failed':
      throw new Problem('precondition_failed', detail)
    // Every worker that took it died.
    case 'unavailable':
      throw new Problem('not_applied', detail, { retryAfterS: 1 })
    case 'server_error':
      throw new Problem('server_error', detail)
  }
}

type Headers = Readonly<Record<string, string | string[] | undefined>>

function isCreateOnly(headers: Headers): boolean {
  const value = headers['if-none-match']
  if (value === undefined) return false
  if (value === '*') return true
  const faults = new Faults()
  faults.add(['If-None-Match'], 'Only * is taken: create, and refuse what is there already.')
  faults.throwIfAny()
  return false
}

/** What a later version will honour must not be ignored until then: a dry run that deploys is the worst answer. */
function refuseUnbuilt(headers: Headers, { dry_run }: z.infer<typeof querystring>): void {
  const faults = new Faults()
  if (dry_run !== undefined) faults.add(['dry_run'], 'Not supported yet: leave it out, and what is sent is applied.')
  if (headers['idempotency-key'] !== undefined)
    faults.add(['Idempotency-Key'], 'Not supported yet: leave it out. Sending the same body again is safe.')
  if (/respond-async/i.test(String(headers.prefer ?? '')))
    faults.add(['Prefer'], 'respond-async is not supported yet: leave it out.')
  if (faults.any)
    throw new Problem('not_supported', 'The request asks for something that is not supported yet.', {
      fields: faults.tree(),
    })
}
