import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import { type FieldError, Problem } from '../errors.ts'
import type { Documented } from '../http/documented.ts'
import { flag } from '../http/query.ts'
import { runPath } from '../paths.ts'
import type { AwaitedRun } from '../runs/ended.ts'
import { conditionHeaders, type SentConditions } from './conditions.ts'
import { deliveryHeaders } from './delivery.ts'
import type { Submitted, Undecided } from './submission.ts'

/** The parameters and answers of the routes that apply a document. */

export const applyQuery = z.strictObject({
  dry_run: flag(
    'Plan: does all of it and rolls it back. `logs` say what would happen, the run at `Content-Location` has each change in `changes`, and `ETag` is for `If-Match` of the apply.',
  ),
  replace_provider: flag(
    'A provider that an application had as its `provider`, and that no application has any more, is deleted in the same transaction. This needs the permission to delete it. Without it, `logs` name the provider.',
  ),
  reset: flag(
    'Fields that the document does not name go back to their defaults, where they keep their values else. Secrets, values that the service generates, names, members of groups, users, and what belongs to a user stay as they are.',
  ),
})

/** The conditions in the query. */
export const conditionsIn = ({ dry_run, replace_provider, reset }: z.infer<typeof applyQuery>): SentConditions => ({
  mode: dry_run ? 'plan' : 'apply',
  replaceProvider: replace_provider,
  reset,
})

export const applyAnswer = z
  .object({
    applied: z
      .boolean()
      .meta({ description: 'False: it was rolled back, for the reason in `logs`, or because it is a plan.' }),
    logs: z.array(z.string()).meta({
      description: 'A sentence for each thing that happened.',
      examples: [
        ['provider oauth2 "grafana" created (pk 12)', 'application "grafana" updated: meta_launch_url'],
        ['provider oauth2 "grafana" unchanged', 'application "grafana" unchanged'],
      ],
    }),
  })
  .meta({ id: 'ApplyResult' })

/** Headers and error codes of an apply. */
export const applyDocument = {
  note: `A 200 is the result. A 202 has \`run\` instead of \`applied\` and \`logs\`: it is recorded, and the result will stand in the run.
\`Prefer: respond-async\` asks for it, a large document gets it, and so does one whose outcome is not known in time. Generated clients
tell the two by the status, so call the form of the method that has it. Where a method returns the body alone, the \`applied\` of a
202 is missing, null or undefined, and some clients raise an error.`,
  codes: [
    'accepted',
    'outcome_unknown',
    'conflict',
    'precondition_failed',
    'idempotency_key_reused',
    'cancelled',
    'cancelled_by_user',
  ],
  headers: conditionHeaders.extend(deliveryHeaders.shape),
  answerHeaders: ['Content-Location', 'PlanTag'],
} satisfies Documented

/** @throws {Problem} for an outcome that the document did not cause: unknown, an outage, another client was first */
export function answerApply(reply: FastifyReply, { id, run }: Submitted): z.infer<typeof applyAnswer> {
  if (typeof run === 'string') {
    const code = run === 'accepted' ? 'accepted' : 'outcome_unknown'
    throw new Problem(code, undecided[run](runPath(id)), { run: runPath(id), retryAfterS: 1 })
  }
  reply.header('Content-Location', runPath(id))
  throwIfNotOk(run)
  if (run.planTag !== null) reply.header('ETag', `"${run.planTag}"`)
  if (run.reason !== null) reply.request.failure = { code: run.reason, sentence: '' }
  return { applied: run.applied === true, logs: [...run.logs] }
}

const undecided: Readonly<Record<Undecided, (path: string) => string>> = {
  accepted: (path) => `Recorded. Its outcome will stand at ${path}.`,
  waiting: (path) => `Recorded, and no worker has taken it yet. Its outcome will stand at ${path}.`,
  locked: (path) => `A worker has it, but did not finish in time. Its outcome will stand at ${path}.`,
  unknown: (path) =>
    `The database went away, or accepted no more changes, before the outcome was known. Once it is back, the outcome stands at ${path}; if nothing is there, nothing was applied.`,
}

/** Throws for an error that the submitter cannot fix in the document: it is no 200. @throws {Problem} */
export function throwIfNotOk({ reason, logs, errors, cancelledBy }: AwaitedRun): void {
  const detail = logs.join(' ')
  switch (reason) {
    // Another client created it after the check. The answer is the same as that of the check.
    case 'precondition_failed':
      throw new Problem('precondition_failed', detail, errors == null ? {} : { errors: errors.map(sentAt) })
    // Its submitter or an operator cancelled it: all other cancelled runs are answered before.
    case 'cancelled':
      throw new Problem('cancelled_by_user', `The run was cancelled by ${cancelledBy}: nothing was changed.`)
    // Every worker that took it died.
    case 'unavailable':
      throw new Problem('unavailable', detail, { retryAfterS: 1 })
    case 'server_error':
      throw new Problem('server_error', detail)
  }
}

/** The error of an entry of the run, which its route finds in what was sent. */
function sentAt({ code, message, pointer = '' }: NonNullable<AwaitedRun['errors']>[number]): FieldError {
  const [, ...parts] = pointer.split('/')
  return { code, message, path: parts.map((part) => (/^\d+$/.test(part) ? Number(part) : part)) }
}
