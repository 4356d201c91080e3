import { z } from 'zod'
import { type Html, html } from '../../http/html.ts'
import { type Actor, allows, seesAllRuns } from '../../permissions.ts'
import {
  isCounted,
  type Refusals,
  type Refused,
  refusalKinds,
  refusalsKept,
  refusalsOfSecond,
} from '../../views/refusal.ts'
import { refusalsPath, withQuery } from '../addresses.ts'
import { choiceField, sentKey, sentText, textField } from '../filter-fields.ts'
import { page } from '../frame.ts'
import { moves, type Row, table } from '../table.ts'
import { count, mark, nameText, notKnown, number, sentenceText, shortTime, time, titleText } from '../words.ts'

/** /admin/refusals/: refused access, refused submissions, and failed logins. */

export const refusalsQuery = z.strictObject({
  kind: sentText.pipe(z.enum(refusalKinds).nullable()),
  who: sentText,
  id: sentText,
  before: sentKey,
})
type Question = z.output<typeof refusalsQuery>

/** The most rows of a page. */
const mostRows = 100

/** @param found null: they could not be read in time */
export const refusalsPage = (question: Question, found: Refusals | null, actor: Actor): string =>
  page({
    title: 'Refused access and submissions',
    asOf: new Date(),
    actor,
    within: refusalsPath,
    isLive: question.before === null,
    content: html`<p>Writes that were refused, and reads of the audit, of others' runs and of token keys; failed logins; and submissions that did not become runs. The last ${number(refusalsKept)} of users are kept, and as many without a valid token, without what was sent.</p>
${!seesAllRuns(actor) && html`<p class="quiet">You see your own only: ${why(actor)}.</p>`}
${form(question)}
${found === null ? notKnown() : contentOf(question, found)}`,
  })

const form = ({ kind, who, id }: Question): Html => html`<form class="filters" method="get" action="${refusalsPath}">
${choiceField('kind', 'Kind', kind ?? '', [['', 'any'], ...refusalKinds.map((each) => [each, each] as const)])}
${textField('who', 'Who', { value: who })}
${textField('id', 'Request', { value: id })}
<div class="choice"><button type="submit">Show</button><a class="button" href="${refusalsPath}">Clear</a></div>
</form>`

const why = (actor: Actor): string =>
  allows(actor, 'view_run') ? 'your rights are bound to owners' : 'you lack the permission view_run'

function contentOf(question: Question, found: Refusals): Html {
  const { before } = question
  const { rows, keptFrom, isFlood } = found
  const now = new Date()
  const shown = rows.slice(0, mostRows).map((each) => rowOf(each, now))
  const next = shown.length < rows.length ? rows[shown.length - 1]?.pk : undefined
  if (rows.length === 0 && before === null && isCounted(found)) return html`<p>${mark('good', 'None.')}</p>`
  return html`${before === null && rows.length > 0 && byReason(found, now)}
<section><h2>${before !== null ? 'Older refusals' : isCounted(found) ? count(rows.length, 'refusal') : `${number(rows.length)}+ refusals`}</h2>
${keptFrom !== null && html`<p class="quiet">Those before ${time(keptFrom)} are no longer kept.</p>`}
${isFlood && html`<p class="quiet">More came than are kept: at most ${number(refusalsOfSecond)} a second of each server. The metric gatewright_http_requests_total counts all answers.</p>`}
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
          What: 'text',
          Why: 'text',
          Request: 'text',
        },
        shown,
      )
}
${moves({ 'The newest': before !== null && withQuery(refusalsPath, { ...question, before: null }), Older: next !== undefined && withQuery(refusalsPath, { ...question, before: String(next) }) })}</section>`
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
