import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { inTime } from '../../db/in-time.ts'
import { catalogue, Problem } from '../../errors.ts'
import { noteFailure } from '../../http/access-log.ts'
import type { Api } from '../../http/api.ts'
import { headerOf } from '../../http/headers.ts'
import type { ApplyQueue } from '../../queue/backend.ts'
import { progressOf } from '../../queue/enqueue.ts'
import { longestMessage, messageOf, whyNoMessage } from '../../runs/message.ts'
import { formerOfRun } from '../../runs/options.ts'
import { throwIfNotOk } from '../../submissions/answer.ts'
import { formerRunFor, submitFormer } from '../../submissions/former.ts'
import type { Submitter } from '../../submissions/submission.ts'
import { readRun } from '../../views/one-run.ts'
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

type Sources = { readonly submitter: Submitter; readonly queue: ApplyQueue }
type Asking = FastifyRequest & { readonly params: { readonly id: string } }

export function rollBackPages(app: Api, { submitter, queue }: Sources): void {
  const { db, engine } = submitter
  const { registry } = engine
  const nameOf = (model: string) => registry.byName(model)?.displayName ?? model

  app.get(rollBackPath(':id'), pageRoute({ params, querystring: planQuery }), async (request, reply) => {
    const { plan, start } = request.query
    if (plan !== undefined) return show(request, reply, await readPlanned(request, plan, start))
    await formerRunFor(submitter, request.params.id, request.actor)
    if (!isAskedByPerson(request)) return show(request, reply, { is: 'none' })
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
      const reviewed = await readPlanned(request, plan, 0)
      if (reviewed.is !== 'plan') return show(request, reply, reviewed)
      if (wrong !== null) return show(request, reply.code(400), reviewed, { message, wrong })
      try {
        const { id: run, run: end } = await submitFormer(submitter, request, reply, {
          id,
          query: { dry_run: false, replace_provider: false, reset: false },
          headers: headersOf(plan, reviewed.tag, message),
        })
        if (end === 'unknown') return sendPage(reply.code(202), notKnownYet(run, request))
        if (typeof end === 'object') throwIfNotOk(end)
        return reply.redirect(runPagePath(run), 303)
      } catch (error) {
        const problem = refused(request, reply, error)
        if (problem.code !== 'precondition_failed') return show(request, reply, reviewed, { message, problem })
        const anew = await submitPlan(request, reply)
        const now = typeof anew === 'string' ? await readPlanned(request, anew, 0) : anew
        return show(request, reply.code(catalogue.precondition_failed), now, { message, changed: problem.message })
      }
    },
  )

  /** @returns the id of the plan's run, or why there is none */
  async function submitPlan(request: Asking, reply: FastifyReply): Promise<string | Planned> {
    const query = { dry_run: true, replace_provider: false, reset: false }
    try {
      return (await submitFormer(submitter, request, reply, { id: request.params.id, query, headers: {} })).id
    } catch (error) {
      return { is: 'refused', problem: refused(request, reply, error) }
    }
  }

  /** A reload of the page shows the same plan: it makes no other one. */
  const planned = (request: Asking, reply: FastifyReply, made: string | Planned) =>
    typeof made === 'string'
      ? reply.redirect(`${rollBackPath(request.params.id)}?plan=${made}`, 303)
      : show(request, reply, made)

  /** @throws {Problem} `not_found` when it is no plan of this caller for this run */
  async function readPlanned({ actor, params: { id } }: Asking, plan: string, start: number): Promise<Planned> {
    await formerRunFor(submitter, id, actor)
    const progress = (of: { readonly id: string }, attempt: number) => progressOf(queue, of, attempt)
    const run = await inTime(readRun(db, engine, { id: plan, withBlueprint: false }, actor, progress))
    const row = await inTime(db.run.findUnique({ where: { id: plan }, select: { planTag: true, options: true } }))
    const isOf = run?.mode === 'plan' && row !== null && formerOfRun(row) === id
    if (!isOf || run.submitter !== actor.pk)
      throw new Problem('not_found', 'There is no such plan of this run any more, or it is not yours: plan it again.')
    if (run.finished_at === null) return { is: 'open', run }
    const { planTag: tag } = row
    return tag === null ? { is: 'not planned', run } : { is: 'plan', run, tag, start }
  }

  async function show(request: Asking, reply: FastifyReply, plan: Planned, said: Said = {}) {
    const { actor, params } = request
    const former = await inTime(readRun(db, engine, { id: params.id, withBlueprint: false }, actor, async () => null))
    if (former === null) throw new Problem('not_found', 'There is no such run.')
    return sendPage(reply, rollBackPage({ former, plan, said, nameOf }, actor))
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
const headersOf = (plan: string, tag: string, message: string | null) => ({
  'if-match': `"${tag}"`,
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
