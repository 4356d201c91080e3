import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import type { Run } from '../blueprint/run/record.ts'
import type { Unknown } from '../blueprint/run/submit.ts'
import { Faults, Problem } from '../errors.ts'
import type { Documented } from './openapi/operation.ts'
import { runPath } from './paths.ts'

/** What the routes that apply something have in common: their conditions and their answers. */

/** Known by name, so that it is refused by name (and a mistyped one too) until it is honoured. */
export const applyQuery = z.strictObject({ dry_run: z.unknown().optional() })

export const applyAnswer = z.object({
  applied: z.boolean().meta({ description: 'False: it was rolled back, for the reason in `logs`.' }),
  logs: z.array(z.string()).meta({
    description: 'A sentence for each thing that happened.',
    examples: [
      ['provider oauth2 "grafana" created (pk 12)', 'application "grafana" updated: meta_launch_url'],
      ['provider oauth2 "grafana" unchanged', 'application "grafana" unchanged'],
    ],
  }),
})

/** What an apply heeds and answers beside its body. */
export const applyDocument = {
  codes: ['outcome_unknown', 'precondition_failed', 'not_applied'],
  headers: z.object({
    'If-None-Match': z.literal('*').optional().meta({ description: 'Create only: what exists already is a 412.' }),
  }),
  answerHeaders: ['Content-Location'],
} satisfies Documented

/** @throws {Problem} for an outcome that is not the document's: unknown, an outage, somebody else was first */
export function answerApply(reply: FastifyReply, id: string, run: Run | Unknown): z.infer<typeof applyAnswer> {
  if (typeof run === 'string') {
    reply.header('Location', runPath(id))
    throw new Problem('outcome_unknown', unknown[run](runPath(id)))
  }
  reply.header('Content-Location', runPath(id))
  refuseUnanswerable(run)
  return { applied: run.applied === true, logs: [...run.logs] }
}

const unknown: Readonly<Record<Unknown, (path: string) => string>> = {
  unfinished: (path) => `A worker has it, but did not finish in time. Its outcome will stand at ${path}.`,
  away: (path) =>
    `The database went away before the outcome was known. Once it is back, the outcome stands at ${path}; if nothing is there, nothing was applied.`,
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

export function isCreateOnly(headers: Headers): boolean {
  const value = headers['if-none-match']
  if (value === undefined) return false
  if (value === '*') return true
  const faults = new Faults()
  faults.add(['If-None-Match'], 'Only * is taken: create, and refuse what is there already.')
  faults.throwIfAny()
  return false
}

/** What a later version will honour must not be ignored until then: a dry run that deploys is the worst answer. */
export function refuseUnbuilt(headers: Headers, { dry_run }: z.infer<typeof applyQuery>): void {
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
