import { type Html, html } from '../../http/html.ts'
import { type Actor, allows } from '../../permissions.ts'
import { type Refused, refusalsKept, seesAllRefusals } from '../../views/refusal.ts'
import { refusalsPath } from '../addresses.ts'
import { page } from '../frame.ts'
import { table } from '../table.ts'
import { count, mark, notKnown, number, shortTime, time } from '../words.ts'

/** /admin/refusals/: submissions that were refused before they were recorded as runs. */

/** The whole of them would be a page of half a megabyte. */
const mostShown = 100

/** @param found null: they could not be read in time */
export const refusalsPage = (found: readonly Refused[] | null, actor: Actor): string =>
  page({
    title: 'Refusals',
    actor,
    within: refusalsPath,
    isLive: true,
    content: html`<div class="head"><h1>Refusals</h1><p class="quiet">As of ${time(new Date())}.</p></div>
<p>Submissions that were refused before they became runs: they stand in no list of runs. The last ${number(refusalsKept)} are kept, without what was sent.</p>
${!seesAllRefusals(actor) && html`<p class="quiet">You see your own only: ${why(actor)}.</p>`}
${found === null ? notKnown() : found.length === 0 ? html`<p>${mark('good', 'None.')}</p>` : tables(found)}`,
  })

const why = (actor: Actor): string =>
  allows(actor, 'view_run') ? 'your rights are bound to owners' : 'you lack the permission view_run'

function tables(found: readonly Refused[]): Html {
  const now = new Date()
  return html`<section><h2>By reason and who</h2>${byReason(found, now)}</section>
<section><h2>${found.length > mostShown ? `The last ${number(mostShown)}` : count(found.length, 'refusal')}</h2>
${table(
  'Refusals, the newest first',
  [
    { head: 'Answered' },
    { head: 'Status', of: 'number' },
    { head: 'Reason' },
    { head: 'Who' },
    { head: 'Submission', of: 'text' },
    { head: 'Why', of: 'text' },
    { head: 'Request', of: 'text' },
  ],
  found.slice(0, mostShown).map((each) => ({
    id: `refusal-${each.pk}`,
    cells: [
      shortTime(each.at, now),
      String(each.status),
      each.code,
      nameOf(each),
      each.title ?? each.route,
      each.sentence,
      html`<code>${each.requestId}</code>`,
    ],
  })),
)}</section>`
}

/** Reasons and users, the most frequent first. */
const mostGroups = 20

function byReason(found: readonly Refused[], now: Date): Html {
  const groups = [...Map.groupBy(found, (each) => `${each.status} ${each.code} ${nameOf(each)}`).values()]
    .toSorted((one, other) => other.length - one.length)
    .flatMap((all) => (all[0] === undefined ? [] : [{ number: all.length, last: all[0] }]))
  const left = groups.length - mostGroups
  return html`${table(
    'Refusals by reason and who',
    [
      { head: 'Reason' },
      { head: 'Status', of: 'number' },
      { head: 'Who' },
      { head: 'Refusals', of: 'number' },
      { head: 'Last' },
    ],
    groups.slice(0, mostGroups).map(({ number: times, last }) => ({
      cells: [last.code, String(last.status), nameOf(last), number(times), shortTime(last.at, now)],
    })),
  )}${left > 0 && html`<p class="quiet">And ${count(left, 'other')}.</p>`}`
}

const nameOf = ({ username }: Refused): string => username ?? 'not authenticated'
