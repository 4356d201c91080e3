import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { inTime } from '../../db/in-time.ts'
import { catalogue, Problem } from '../../errors.ts'
import { noteFailure } from '../../http/access-log.ts'
import type { Api } from '../../http/api.ts'
import { headerOf } from '../../http/headers.ts'
import type { Actor } from '../../permissions.ts'
import { longestMessage, messageOf, whyNoMessage } from '../../runs/message.ts'
import { optionsOf } from '../../runs/options.ts'
import { throwIfNotOk } from '../../submissions/answer.ts'
import { formerRunFor, submitFormer } from '../../submissions/former.ts'
import type { Submitter } from '../../submissions/submission.ts'
import { readRun } from '../../views/one-run.ts'
import type { Run } from '../../views/run.ts'
import { rollBackPath, runPagePath } from '../addresses.ts'
import { messagePage, pageRoute, sendPage } from '../frame.ts'
import { startOfPart } from './changes.ts'
import { type Planned, rollBackPage, type Said } from './roll-back-page.ts'

/**
 * /admin/runs/{id}/roll-back/: the effect that the document of a former run would have today, and the button that applies it.
 * Both are submissions of the session's user, as `POST /blueprints/runs/{id}/apply/` makes them
 * (docs/adr/0071-a-page-makes-a-plan.md).
 */

const params = z.object({ id: z.guid() })
const planQuery = z.strictObject({ plan: z.guid().optional(), start: startOfPart })

/** The form accepts a longer text than a message may have, so that a page can show its error. */
const sentForm = z.object({
  plan: z.guid().optional(),
  message: z
    .string()
    .max(10 * longestMessage)
    .default(''),
})

type Asking = FastifyRequest & { readonly params: { readonly id: string } }

export function rollBackPages(app: Api, submitter: Submitter): void {
  const { db, engine } = submitter
  const { registry } = engine

  app.get(rollBackPath(':id'), pageRoute({ params, querystring: planQuery }), async (request, reply) => {
    const { plan, start } = request.query
    if (plan !== undefined) return show(request, reply, await readPlan(request, plan), { start })
    await formerRunFor(submitter, request.params.id, request.actor)
    if (!isAskedByPerson(request)) return show(request, reply, null)
    return planned(request, reply, await submitPlan(request, reply))
  })

  app.post(
    rollBackPath(':id'),
    { ...pageRoute({ params }), config: { permission: 'anyone', takes: 'run' } },
    async (request, reply) => {
      const { id } = request.params
      await formerRunFor(submitter, id, request.actor)
      const form = sentForm.safeParse(request.body ?? {})
      if (!form.success) throw new Problem('invalid', 'The form is not as this page has it.')
      const { plan } = form.data
      if (plan === undefined) return planned(request, reply, await submitPlan(request, reply))
      const message = messageOf(form.data.message)
      const wrong = message === null ? null : whyNoMessage(message)
      const reviewed = await readPlan(request, plan)
      if (reviewed.etag === null) return show(request, reply, reviewed)
      if (wrong !== null) return show(request, reply.code(400), reviewed, { message, wrong })
      try {
        const { id: run, run: end } = await submitFormer(submitter, request, reply, {
          id,
          query: { dry_run: false, replace_provider: false, reset: false },
          headers: headersOf(plan, reviewed.etag, message),
        })
        if (end === 'unknown') return sendPage(reply.code(202), notKnownYet(run, request))
        if (typeof end === 'object') throwIfNotOk(end)
        return reply.redirect(runPagePath(run), 303)
      } catch (error) {
        const problem = refused(request, reply, error)
        if (problem.code !== 'precondition_failed') return show(request, reply, reviewed, { message, problem })
        const anew = await submitPlan(request, reply)
        const now = typeof anew === 'string' ? await readPlan(request, anew) : anew
        return show(request, reply.code(catalogue.precondition_failed), now, { message, changed: problem.message })
      }
    },
  )

  /** @returns the id of the plan's run, or why there is none */
  async function submitPlan(request: Asking, reply: FastifyReply): Promise<string | Problem> {
    const query = { dry_run: true, replace_provider: false, reset: false }
    try {
      return (await submitFormer(submitter, request, reply, { id: request.params.id, query, headers: {} })).id
    } catch (error) {
      return refused(request, reply, error)
    }
  }

  /** A reload of the page shows the same plan: it makes no other one. */
  const planned = (request: Asking, reply: FastifyReply, made: string | Problem) =>
    typeof made === 'string'
      ? reply.redirect(`${rollBackPath(request.params.id)}?plan=${made}`, 303)
      : show(request, reply, made)

  /** @throws {Problem} `not_found` when it is no plan of this caller for this run */
  async function readPlan({ actor, params: { id } }: Asking, plan: string): Promise<Run> {
    await formerRunFor(submitter, id, actor)
    const run = await readOne(plan, actor)
    const row = await inTime(db.run.findUnique({ where: { id: plan }, select: { options: true } }))
    if (run?.mode !== 'plan' || run.submitter !== actor.pk || row === null || optionsOf(row)?.former !== id)
      throw new Problem('not_found', 'There is no such plan of this run any more, or it is not yours: plan it again.')
    return run
  }

  const readOne = (id: string, actor: Actor) => inTime(readRun(db, engine, { id, withBlueprint: false }, actor))

  async function show(
    request: Asking,
    reply: FastifyReply,
    plan: Planned,
    { start = 0, ...said }: Said & { readonly start?: number } = {},
  ) {
    const former = await readOne(request.params.id, request.actor)
    if (former === null) throw new Problem('not_found', 'There is no such run.')
    return sendPage(reply, rollBackPage({ former, plan, start, said, registry }, request.actor))
  }
}

/**
 * Whether a person requests the page, who follows a link of this host or types the address. A plan is a run of its own, so it is
 * made for no browser that loads ahead, no page of another host, and no client that does not report where it comes from.
 */
function isAskedByPerson({ method, headers }: FastifyRequest): boolean {
  if (method !== 'GET' || headers['sec-purpose'] !== undefined || headers.purpose !== undefined) return false
  return ['same-origin', 'none'].includes(String(headers['sec-fetch-site']))
}

/** Headers of the form: one that is sent twice is applied once. */
const headersOf = (plan: string, etag: string, message: string | null) => ({
  'if-match': etag,
  'idempotency-key': `roll-back-${plan}-${hash('sha256', message ?? '', 'base64url')}`,
  ...(message !== null && { 'gatewright-message': headerOf(message) }),
})

/** @throws an error that is no refusal */
function refused(request: FastifyRequest, reply: FastifyReply, error: unknown): Problem {
  if (!(error instanceof Problem)) throw error
  const status = catalogue[error.code]
  noteFailure(request, error, status)
  reply.code(status)
  if (error.retryAfterS !== undefined) reply.header('Retry-After', error.retryAfterS)
  return error
}

const notKnownYet = (run: string, { actor }: FastifyRequest) =>
  messagePage(
    'It is not known yet',
    `The database went away before the outcome was known. Once it is back, the outcome stands at ${runPagePath(run)}; if nothing is there, nothing was applied.`,
    actor,
  )
