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

type Question = {
  readonly title: string
  /** The label of the button. */
  readonly does: string
  /** The reason why there is nothing to do; null when there is something. */
  readonly nothing: (pause: Pause | null) => string | Html | null
  readonly follows: (pause: Pause | null) => readonly (string | Html)[]
  readonly asksWhy?: true
}

const questions: Readonly<Record<Act, Question>> = {
  pause: {
    title: 'Pause the queue?',
    does: 'Pause the queue',
    nothing: (pause) => (pause === null ? null : pauseSentence(pause)),
    follows: () => [
      'No worker takes a job until the queue is resumed. Runs that are at work end.',
      'Submissions that wait for their end are answered with 503, and are not applied.',
      html`Submissions with <code>Prefer: respond-async</code> are recorded, and applied when the queue is resumed.`,
      'The probe of what is applied is 503, and names you, the time and the reason.',
    ],
    asksWhy: true,
  },
  resume: {
    title: 'Resume the queue?',
    does: 'Resume the queue',
    nothing: (pause) => (pause === null ? 'The queue is not paused.' : null),
    follows: (pause) => [
      ...(pause === null ? [] : [pauseSentence(pause)]),
      'Workers take jobs again at once. Runs that still wait are applied.',
      'Runs that were cancelled meanwhile are not applied.',
    ],
  },
}

/** The reason why an act has nothing to do; null when it has something. */
export const nothingToDo = (name: Act, pause: Pause | null): string | Html | null => questions[name].nothing(pause)

/** @param wrong the error of the reason that was sent */
export function actPage(name: Act, pause: Pause | null, actor: Actor, wrong: string | null = null): string {
  const { title, does, nothing, follows, asksWhy } = questions[name]
  const why = nothing(pause)
  const content =
    why !== null
      ? html`<p>${why}</p>
<p><a class="button" href="${nowPath}">Back to the first page</a></p>`
      : html`<ul id="follows">${follows(pause).map((each) => html`<li>${each}</li>`)}</ul>
<form method="post" action="${actPath(name)}">
${asksWhy === true && reasonField(wrong)}
<div class="choice"><a class="button" href="${nowPath}" aria-describedby="follows"${wrong === null && html` autofocus`}>Cancel</a><button type="submit">${does}</button></div>
</form>`
  const statement = title.replace('?', '')
  return page({ title: statement, heading: why === null ? title : statement, actor, width: 'narrow', content })
}

const reasonField = (wrong: string | null): Html => html`<label for="reason">Why? (optional)</label>
${wrong !== null && html`<p class="alert" role="alert" id="wrong">${wrong}</p>`}
<input id="reason" name="reason" maxlength="${longestReason}" autocomplete="off"${wrong !== null && html` aria-invalid="true" autofocus`} aria-describedby="${wrong !== null && 'wrong '}why">
<p class="quiet" id="why">At most ${longestReason} characters. All who ask that probe, and all whose submissions are refused, can read it: write no secret.</p>`
