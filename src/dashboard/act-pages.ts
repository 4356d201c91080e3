import { type Html, html } from '../http/html.ts'
import type { Actor } from '../permissions.ts'
import type { Pause } from '../queue/pause.ts'
import { type Act, longestReason } from './acts.ts'
import { actPath, nowPath } from './addresses.ts'
import { page } from './frame.ts'
import { pauseSentence } from './words.ts'

/**
 * The pages that confirm acts. Each names the effect, and Cancel comes first. It has the focus, so that Enter that is pressed
 * twice does nothing.
 */

const labels: Readonly<Record<Act, string>> = { pause: 'Pause the queue', resume: 'Resume the queue' }

const follows: Readonly<Record<Act, readonly (string | Html)[]>> = {
  pause: [
    'No worker takes a job until the queue is resumed. Runs that are at work end.',
    'Submissions that wait for their end are answered with 503, and are not applied.',
    html`Submissions with <code>Prefer: respond-async</code> are recorded, and applied when the queue is resumed.`,
    'The probe of what is applied is 503, and names you, the time and the reason.',
  ],
  resume: [
    'Workers take jobs again at once. Runs that still wait are applied.',
    'Runs that were cancelled meanwhile are not applied.',
  ],
}

/** Whether an act would change something. */
export const isDue = (name: Act, pause: Pause | null): boolean => (name === 'pause') === (pause === null)

/** @param wrong the error of the reason that was sent */
export function actPage(name: Act, pause: Pause | null, actor: Actor, wrong: string | null = null): string {
  const title = labels[name]
  const due = isDue(name, pause)
  const state = pause === null ? 'The queue is not paused.' : pauseSentence(pause)
  const content = due
    ? html`<ul id="follows">${pause !== null && html`<li>${state}</li>`}${follows[name].map((each) => html`<li>${each}</li>`)}</ul>
<form method="post" action="${actPath(name)}">
${name === 'pause' && reasonField(wrong)}
<div class="choice"><a class="button" href="${nowPath}" aria-describedby="follows"${wrong === null && html` autofocus`}>Cancel</a><button type="submit">${title}</button></div>
</form>`
    : html`<p>${state}</p>
<p><a class="button" href="${nowPath}">Back to the first page</a></p>`
  return page({ title, heading: due ? `${title}?` : title, actor, width: 'narrow', content })
}

const reasonField = (wrong: string | null): Html => html`<label for="reason">Why? (optional)</label>
${wrong !== null && html`<p class="alert" role="alert" id="wrong">${wrong}</p>`}
<input id="reason" name="reason" maxlength="${longestReason}" autocomplete="off"${wrong !== null && html` aria-invalid="true" autofocus`} aria-describedby="${wrong !== null && 'wrong '}why">
<p class="quiet" id="why">At most ${longestReason} characters. All who ask that probe, and all whose submissions are refused, can read it: write no secret.</p>`
