import { type Html, html } from '../../http/html.ts'
import { type Actor, allows } from '../../permissions.ts'
import {
  isCounted,
  type Refusals,
  type Refused,
  refusalsKept,
  refusalsOfSecond,
  seesAllRefusals,
} from '../../views/refusal.ts'
import { refusalsPath } from '../addresses.ts'
import { page } from '../frame.ts'
import { moves, type Row, table } from '../table.ts'
import { count, mark, nameText, notKnown, number, sentenceText, shortTime, time, titleText } from '../words.ts'

/** /admin/refusals/: submissions that were refused before they were recorded as runs. */

/** The most rows of a page. */
const mostRows = 100

/** @param found null: they could not be read in time @param before the page has those with a smaller key; null: the newest */
export const refusalsPage = (found: Refusals | null, before: bigint | null, actor: Actor): string =>
  page({
    title: 'Refusals',
    asOf: new Date(),
    actor,
    within: refusalsPath,
    isLive: before === null,
    content: html`<p>Submissions that were refused before they became runs: they stand in no list of runs. The last ${number(refusalsKept)} are kept, without what was sent.</p>
${!seesAllRefusals(actor) && html`<p class="quiet">You see your own only: ${why(actor)}.</p>`}
${found === null ? notKnown() : contentOf(found, before)}`,
  })

const why = (actor: Actor): string =>
  allows(actor, 'view_run') ? 'your rights are bound to owners' : 'you lack the permission view_run'

function contentOf(found: Refusals, before: bigint | null): Html {
  const { rows, keptFrom, isFlood } = found
  const now = new Date()
  const shown = rows.slice(0, mostRows).map((each) => rowOf(each, now))
  const next = shown.length < rows.length ? rows[shown.length - 1]?.pk : undefined
  if (rows.length === 0 && before === null && isCounted(found)) return html`<p>${mark('good', 'None.')}</p>`
  return html`${before === null && rows.length > 0 && byReason(found, now)}
<section><h2>${before !== null ? 'Older refusals' : isCounted(found) ? count(rows.length, 'refusal') : `${number(rows.length)}+ refusals`}</h2>
${keptFrom !== null && html`<p class="quiet">Those before ${time(keptFrom)} are no longer kept.</p>`}
${isFlood && html`<p class="quiet">More came than are kept: at most ${number(refusalsOfSecond)} a second of each server. The metric gatewright_submissions_refused_total counts all of them.</p>`}
${
  shown.length === 0
    ? html`<p>There is none.</p>`
    : table(
        'Refusals, the newest first',
        {
          Answered: 'plain',
          Status: 'number',
          Reason: 'plain',
          Who: 'plain',
          Submission: 'text',
          Why: 'text',
          Request: 'text',
        },
        shown,
      )
}
${moves({ 'The newest': before !== null && refusalsPath, Older: next !== undefined && `${refusalsPath}?before=${next}` })}</section>`
}

const rowOf = (each: Refused, now: Date): Row => ({
  id: `refusal-${each.pk}`,
  cells: [
    shortTime(each.at, now),
    String(each.status),
    each.code,
    nameOf(each),
    titleText(each.title ?? each.route),
    sentenceText(each.sentence),
    html`<code>${nameText(each.requestId)}</code>`,
  ],
})

/** Reasons and users, the most frequent first. */
const mostGroups = 20

function byReason(found: Refusals, now: Date): Html {
  const groups = [...Map.groupBy(found.rows, (each) => `${each.status} ${each.code} ${nameOf(each)}`).values()]
    .toSorted((one, other) => other.length - one.length)
    .flatMap((all) => (all[0] === undefined ? [] : [{ number: all.length, last: all[0] }]))
  const left = groups.length - mostGroups
  return html`<section><h2>By reason and who</h2>${table(
    'Refusals by reason and who',
    {
      Reason: 'plain',
      Status: 'number',
      Who: 'plain',
      [isCounted(found) ? 'Refusals' : 'At least']: 'number',
      Last: 'plain',
    },
    groups.slice(0, mostGroups).map(({ number: times, last }) => ({
      cells: [last.code, String(last.status), nameOf(last), number(times), shortTime(last.at, now)],
    })),
  )}${left > 0 && html`<p class="quiet">And ${count(left, 'other')}.</p>`}</section>`
}

const nameOf = ({ username }: Refused): string => nameText(username ?? 'not authenticated')
