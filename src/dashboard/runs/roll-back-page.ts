import { detailOf, type Problem } from '../../errors.ts'
import { cutTo, type Html, html } from '../../http/html.ts'
import type { Actor } from '../../permissions.ts'
import { longestMessage } from '../../runs/message.ts'
import type { Run } from '../../views/run.ts'
import { rollBackPath, runPagePath, runsPath } from '../addresses.ts'
import { page } from '../frame.ts'
import { mark, nameText, time } from '../words.ts'
import { areUnchanged, changeCounts, changesPart, lineList } from './changes.ts'

/** The effect that the document of a former run would have today, and the form that applies it. Cancel comes first. */

export type Planned =
  | { readonly is: 'none' }
  /** It waits for a worker, or is at work. */
  | { readonly is: 'open'; readonly run: Run }
  /** @property start index of the first change that is shown */
  | { readonly is: 'plan'; readonly run: Run; readonly tag: string; readonly start: number }
  /** A worker refused it, or it failed. */
  | { readonly is: 'not planned'; readonly run: Run }
  /** It was refused before there was a run. */
  | { readonly is: 'refused'; readonly problem: Problem }

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
  readonly said: Said
  readonly nameOf: (model: string) => string
}

export function rollBackPage({ former, plan, said, nameOf }: Shown, actor: Actor): string {
  const title = former.applied === true ? 'Plan again or roll back' : 'Plan again'
  return page({
    title: `${title}: ${former.title}`,
    actor,
    within: runsPath,
    isLive: plan.is === 'open',
    content: html`<p>The document of <a href="${runPagePath(former.id)}">this run</a> of ${time(new Date(former.created_at))}${former.submitter_name !== null && `, by ${nameText(former.submitter_name)}`}, against today.</p>
${
  said.changed !== undefined &&
  html`<div class="alert" role="alert"><p>Something changed after the plan: nothing was applied. Below is the new plan.</p>
<p>The answer was: ${cutTo(mostOfAnswer, said.changed)}</p></div>`
}
${said.problem !== undefined && html`<div class="alert" role="alert"><p>Nothing was applied.</p>${sentences(said.problem)}</div>`}
${contentOf(former.id, plan, said, nameOf)}`,
  })
}

function contentOf(id: string, plan: Planned, said: Said, nameOf: Shown['nameOf']): Html {
  switch (plan.is) {
    case 'none':
      return html`<section><h2>There is no plan yet</h2><p>A plan says what the document would change today, and changes nothing.</p>
<form method="post" action="${rollBackPath(id)}"><div class="choice">${cancel(id)}<button type="submit">Show the plan</button></div></form></section>`
    case 'open':
      return html`<div class="summary good"><p>${mark('open', 'planning')} <span class="says">The plan is not there yet. Without a script, load this page again.</span></p></div>
<p class="choice">${cancel(id)}</p>`
    case 'refused':
      return html`<div class="summary bad"><p>${mark('warn', 'not planned')} <span class="says">There is no plan, and nothing was changed.</span></p></div>
<section><h2>Why</h2>${sentences(plan.problem)}</section>${again(id)}`
    case 'not planned':
      return html`<div class="summary bad"><p>${mark('warn', 'not planned')} <span class="says">The document would not be applied today. Nothing was changed.</span></p></div>
<section><h2>Why</h2>${lineList(plan.run.logs)}
<p><a href="${runPagePath(plan.run.id)}">The run of this plan</a></p></section>${again(id)}`
    case 'plan':
      return planOf(id, plan, said, nameOf)
    default:
      return plan satisfies never
  }
}

function planOf(id: string, plan: Planned & { readonly is: 'plan' }, said: Said, nameOf: Shown['nameOf']): Html {
  const { run, start } = plan
  const { changes, logs } = run
  const changesNothing = areUnchanged(changes)
  const address = `${rollBackPath(id)}?plan=${run.id}`
  return html`<div class="summary good"><p>${mark('same', 'planned')} <span class="says">${
    changesNothing
      ? 'It would change nothing: all is as the document says.'
      : `It would do this: ${changeCounts(changes)}.`
  }</span></p><p>As of ${time(new Date(run.finished_at ?? run.created_at))}. Nothing was changed so far.</p></div>
<section><h2>What it would do: ${changeCounts(changes)}</h2>
${changesPart(changes, address, { start, nameOf })}
${
  logs.length > 0 && html`<details id="says"><summary>What the plan says</summary>${lineList(logs)}</details>`
}</section>
${changesNothing ? html`<p class="choice">${cancel(id, 'Back to the run')}</p>` : form(id, run.id, said)}`
}

const form = (id: string, plan: string, { message, wrong }: Said): Html => html`<section><h2>Apply it</h2>
<ul><li>All of it is applied in one transaction, as you and with the rights that both you and its submitter have, or nothing.</li>
<li>What the document leaves out, and what was made since, stays as it is.</li>
<li>If anything that the plan names changes before that, nothing is applied, and you see the new plan.</li></ul>
<form method="post" action="${rollBackPath(id)}"><input type="hidden" name="plan" value="${plan}">
<label for="message">Why? (optional)</label>
${wrong !== undefined && html`<p class="alert" role="alert" id="wrong">${wrong}</p>`}
<input id="message" name="message" maxlength="${String(longestMessage)}" value="${message}" autocomplete="off"${wrong !== undefined && html` aria-invalid="true"`} aria-describedby="${wrong !== undefined && 'wrong '}limits">
<p class="quiet" id="limits">One line of at most ${String(longestMessage)} characters. It is kept with the run, and all who may see the run can read it: write no secret.</p>
<div class="choice">${cancel(id)}<button type="submit">Apply this plan</button></div>
</form></section>`

const cancel = (id: string, text = 'Cancel'): Html => html`<a class="button" href="${runPagePath(id)}">${text}</a>`

const again = (id: string): Html =>
  html`<p class="choice">${cancel(id, 'Back to the run')}<a class="button" href="${rollBackPath(id)}">Plan it again</a></p>`

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
