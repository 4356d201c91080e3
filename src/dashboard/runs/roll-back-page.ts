import { detailOf, Problem } from '../../errors.ts'
import { cutTo, type Html, html } from '../../http/html.ts'
import type { Registry } from '../../models/registry.ts'
import type { Actor } from '../../permissions.ts'
import { longestMessage } from '../../runs/message.ts'
import type { Run } from '../../views/run.ts'
import { rollBackPath, runPagePath, runsPath } from '../addresses.ts'
import { page } from '../frame.ts'
import { looks, mark, nameText, time } from '../words.ts'
import { areUnchanged, changeCounts, changesPart, lineList } from './changes.ts'

/** The effect that the document of a former run would have today, and the form that applies it. Cancel comes first. */

/**
 * The run of the plan, which has an ETag when it was made; why there is no run, when it was refused before; null: none was asked
 * for.
 */
export type Planned = Run | Problem | null

/** The answer of the page to a form that was sent. */
export type Said = {
  readonly message?: string | null
  /** The error of the message. */
  readonly wrong?: string
  /** The reason why nothing was applied. */
  readonly problem?: Problem
  /** The changes since the plan: this is another plan. */
  readonly changed?: string
}

type Shown = {
  readonly former: Run
  readonly plan: Planned
  /** The index of the first change that is shown. */
  readonly start: number
  readonly said: Said
  readonly registry: Pick<Registry, 'byName'>
}

export function rollBackPage(shown: Shown, actor: Actor): string {
  const { former, plan, said } = shown
  const title = former.applied === true ? 'Plan again or roll back' : 'Plan again'
  return page({
    title: `${title}: ${former.title}`,
    actor,
    within: runsPath,
    isLive: isOpen(plan),
    content: html`<p>The document of <a href="${runPagePath(former.id)}">this run</a> of ${time(new Date(former.created_at))}${former.submitter_name !== null && `, by ${nameText(former.submitter_name)}`}, against today.</p>
${
  said.changed !== undefined &&
  html`<div class="alert" role="alert"><p>Something changed after the plan: nothing was applied. Below is the new plan.</p>
<p>The answer was: ${cutTo(mostOfAnswer, said.changed)}</p></div>`
}
${said.problem !== undefined && html`<div class="alert" role="alert"><p>Nothing was applied.</p>${sentences(said.problem)}</div>`}
${contentOf(shown)}`,
  })
}

/** Whether it waits for a worker, or is at work. */
const isOpen = (plan: Planned): boolean => plan !== null && !(plan instanceof Problem) && plan.finished_at === null

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

/** Fields that were changed since the run, and that no document can put back. */
const notPutBack = (left: readonly string[]): Html => html`<section><h2>Will not be put back</h2>
<p>They were changed since, and the history does not have what they were: secrets, and references by the names of that time.</p>
<ul>${left.map((line) => html`<li>${cutTo(1_000, line)}</li>`)}</ul></section>`

const form = (id: string, plan: string, { message, wrong }: Said): Html => html`<section><h2>Apply it</h2>
<ul><li>All of it is applied in one transaction, as you and with the rights that both you and its submitter have, or nothing.</li>
<li>Fields that the document does not name go back to what they were, as far as the history has them. What was made since stays.</li>
<li>If anything that the plan names changes before that, nothing is applied, and you see the new plan.</li></ul>
<form method="post" action="${rollBackPath(id)}"><input type="hidden" name="plan" value="${plan}">
<label for="message">Why? (optional)</label>
${wrong !== undefined && html`<p class="alert" role="alert" id="wrong">${wrong}</p>`}
<input id="message" name="message" maxlength="${String(longestMessage)}" value="${message}" autocomplete="off"${wrong !== undefined && html` aria-invalid="true"`} aria-describedby="${wrong !== undefined && 'wrong '}limits">
<p class="quiet" id="limits">One line of at most ${String(longestMessage)} characters. It is kept with the run, and all who may see the run can read it: write no secret.</p>
<div class="choice">${cancel(id)}<button type="submit">Apply this plan</button></div>
</form></section>`

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

/** The most bytes of the answer. */
const mostOfAnswer = 4_000
