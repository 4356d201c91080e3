import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { inTime } from '../../db/in-time.ts'
import { catalogue, detailOf, Problem } from '../../errors.ts'
import { refuse } from '../../http/access-log.ts'
import type { Api } from '../../http/api.ts'
import { type Headers, headerOf } from '../../http/headers.ts'
import { type Html, html } from '../../http/html.ts'
import type { Registry } from '../../models/registry.ts'
import type { Actor } from '../../permissions.ts'
import { longestMessage, messageOf, whyNoMessage } from '../../runs/message.ts'
import { optionsOf } from '../../runs/options.ts'
import { cutTo } from '../../sides.ts'
import { throwIfNotOk } from '../../submissions/answer.ts'
import { formerRunFor, submitFormer } from '../../submissions/former.ts'
import { readRun } from '../../views/one-run.ts'
import type { Run } from '../../views/run.ts'
import { rollBackPath, runPagePath, runsPath } from '../addresses.ts'
import { whyField } from '../filter-fields.ts'
import { messagePage, pageRoute, type Shell, sendPage } from '../frame.ts'
import type { Sources } from '../sources.ts'
import { looks, mark, nameText, time } from '../words.ts'
import { areUnchanged, changeCounts, changesPart, lineList, startOfPart } from './changes.ts'

/**
 * /admin/runs/{id}/roll-back/: the effect that the document of a former run would have today, and the button that applies it.
 * Both are submissions of the session's user, as `POST /blueprints/runs/{id}/apply/` makes them
 * (docs/adr/0071-a-page-makes-a-plan.md).
 */

/**
 * The run of the plan, which has an ETag when it was made; why there is no run, when it was refused before; null: none was asked
 * for.
 */
type Planned = Run | Problem | null

/**
 * The answer of the page to a form that was sent.
 *
 * @property wrong the error of the message @property problem why nothing was applied @property changed what changed since the plan:
 * this is another one
 */
type Said = {
  readonly message?: string | null
  readonly wrong?: string
  readonly problem?: Problem
  readonly changed?: string
}

type Shown = {
  readonly former: Run
  readonly plan: Planned
  readonly start: number
  readonly said: Said
  readonly registry: Pick<Registry, 'byName'>
}

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

export function rollBackPages(app: Api, { db, engine, registry, submitter }: Sources): void {
  app.get(rollBackPath(':id'), pageRoute({ params, querystring: planQuery }), async (request, reply) => {
    const { plan, start } = request.query
    await formerRunFor(submitter, request.params.id, request.actor)
    if (plan !== undefined) return show(request, reply, await readPlan(request, plan), { start })
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
        const headers = headersOf(plan, reviewed.etag, message)
        const { id: run, run: end } = await submitted(request, reply, false, headers)
        if (end === 'unknown') {
          const text = `The database went away before the outcome was known. Once it is back, the outcome stands at ${runPagePath(run)}; if nothing is there, nothing was applied.`
          return sendPage(reply.code(202), messagePage('It is not known yet', text))
        }
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

  const submitted = (request: Asking, reply: FastifyReply, dry_run: boolean, headers: Headers) =>
    submitFormer(submitter, request, reply, {
      id: request.params.id,
      query: { dry_run, replace_provider: false, reset: false },
      headers,
    })

  /** @returns the id of the plan's run, or why there is none */
  async function submitPlan(request: Asking, reply: FastifyReply): Promise<string | Problem> {
    try {
      return (await submitted(request, reply, true, {})).id
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
    const run = await readOne(plan, actor)
    const row = await inTime(db.run.findUnique({ where: { id: plan }, select: { options: true } }))
    if (run.mode !== 'plan' || run.submitter !== actor.pk || row === null || optionsOf(row)?.former !== id)
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
    return sendPage(reply, rollBackPage({ former, plan, start, said, registry }))
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
  refuse(error, request, reply)
  return error
}

function rollBackPage(shown: Shown): Shell {
  const { former, plan, said } = shown
  const title = former.applied === true ? 'Plan again or roll back' : 'Plan again'
  return {
    title: `${title}: ${former.title}`,
    within: runsPath,
    isLive: plan !== null && !(plan instanceof Problem) && plan.finished_at === null,
    content: html`<p>The document of <a href="${runPagePath(former.id)}">this run</a> of ${time(new Date(former.created_at))}${former.submitter_name !== null && `, by ${nameText(former.submitter_name)}`}, against today.</p>
${
  said.changed !== undefined &&
  html`<div class="alert" role="alert"><p>Something changed after the plan: nothing was applied. Below is the new plan.</p>
<p>The answer was: ${cutTo(mostOfAnswer, said.changed)}</p></div>`
}
${said.problem !== undefined && html`<div class="alert" role="alert"><p>Nothing was applied.</p>${sentences(said.problem)}</div>`}
${contentOf(shown)}`,
  }
}

function contentOf({ former: { id }, plan, start, said, registry }: Shown): Html {
  if (plan === null)
    return html`<section><h2>There is no plan yet</h2><p>A plan says what the document would change today, and changes nothing.</p>
<form method="post" action="${rollBackPath(id)}"><div class="choice">${cancel(id)}<button type="submit">Show the plan</button></div></form></section>`
  if (plan instanceof Problem) return notPlanned(id, 'There is no plan, and nothing was changed.', sentences(plan))
  const { changes, logs, finished_at, etag, not_put_back: left } = plan
  if (finished_at === null)
    return html`<div class="summary"><p>${mark(looks.running, 'planning')} <span class="says">The plan is not there yet. Without a script, load this page again.</span></p></div>
<p class="choice">${cancel(id)}</p>`
  if (etag === null)
    return notPlanned(
      id,
      'The document would not be applied today. Nothing was changed.',
      html`${lineList(logs)}
<p><a href="${runPagePath(plan.id)}">The run of this plan</a></p>`,
    )
  const changesNothing = areUnchanged(changes)
  return html`<div class="summary"><p>${mark(looks.planned, 'planned')} <span class="says">${
    changesNothing
      ? 'It would change nothing: all is as the document says.'
      : `It would do this: ${changeCounts(changes)}.`
  }</span></p><p>As of ${time(new Date(finished_at))}. Nothing was changed so far.</p></div>
<section><h2>What it would do: ${changeCounts(changes)}</h2>
${changesPart(changes, `${rollBackPath(id)}?plan=${plan.id}`, { start, registry })}
${
  logs.length > 0 && html`<details id="says"><summary>What the plan says</summary>${lineList(logs)}</details>`
}</section>
${left.length > 0 && notPutBack(left)}
${changesNothing ? html`<p class="choice">${cancel(id, 'Back to the run')}</p>` : form(id, plan.id, said)}`
}

/** A plan that a worker refused, or that was refused before there was a run. */
const notPlanned = (id: string, what: string, why: Html): Html =>
  html`<div class="summary warn"><p>${mark(looks.refused, 'not planned')} <span class="says">${what}</span></p></div>
<section><h2>Why</h2>${why}</section><p class="choice">${cancel(id, 'Back to the run')}<a class="button" href="${rollBackPath(id)}">Plan it again</a></p>`

/** Fields that are not as they were, and that the roll back does not put back. */
const notPutBack = (left: readonly string[]): Html => html`<section><h2>Will not be put back</h2>
<p>They are not as they were: secrets, generated values, references by the names of that time, and fields that the stack does not manage.</p>
<ul>${left.map((line) => html`<li>${cutTo(1_000, line)}</li>`)}</ul></section>`

const form = (id: string, plan: string, { message: value, wrong }: Said): Html => html`<section><h2>Apply it</h2>
<ul><li>All of it is applied in one transaction, as you and with the rights that both you and its submitter have, or nothing.</li>
<li>Fields that the document does not name go back to what they were, as far as the history has them. What was made since stays, but for what the plan deletes.</li>
<li>If anything that the plan names changes before that, nothing is applied, and you see the new plan.</li></ul>
<form method="post" action="${rollBackPath(id)}"><input type="hidden" name="plan" value="${plan}">
${whyField('message', longestMessage, whoReads, { value, wrong })}
<div class="choice">${cancel(id)}<button type="submit">Apply this plan</button></div>
</form></section>`

const whoReads = `One line of at most ${longestMessage} characters. It is kept with the run, and all who may see the run can read it: write no secret.`

const cancel = (id: string, text = 'Cancel'): Html => html`<a class="button" href="${runPagePath(id)}">${text}</a>`

/** Each error with its place in the document, or else the message. */
function sentences({ message, errors = [] }: Problem): Html {
  if (errors.length === 0) return html`<p>${cutTo(mostOfAnswer, message)}</p>`
  return lineList(
    errors.map((error) => {
      const { pointer, message } = detailOf(error)
      return pointer === undefined || pointer === ''
        ? message
        : html`<code>${cutTo(500, pointer)}</code>: ${cutTo(1_000, message)}`
    }),
  )
}

const mostOfAnswer = 4_000
