import { type Html, html } from '../../http/html.ts'
import type { RunRow } from '../../lists/run-rows.ts'
import { mostCounted, outcomesAsked, type Span } from '../../lists/runs-of-operators.ts'
import { type Actor, allows } from '../../permissions.ts'
import { runsPath, withQuery } from '../addresses.ts'
import { choiceField, textField } from '../filter-fields.ts'
import { page } from '../frame.ts'
import { moves } from '../table.ts'
import { count, notKnown, number } from '../words.ts'
import type { RunGroup } from './groups.ts'
import { type Asked, type Field, type Place, placeText } from './question.ts'
import { groupTable, runTable } from './tables.ts'

/** /admin/runs/: the runs of a period, one by one or by cause. */

/** The most runs that are grouped by cause: a failed one of them is compared with later ones. */
export const mostGrouped = 500

export type Runs =
  /** @property count all that match, on all pages @property next the last run of the page, if there are more */
  | { readonly rows: readonly RunRow[]; readonly count: number; readonly next: Place | null }
  /** @property isAll false: there are more, of which these are the newest */
  | { readonly groups: readonly RunGroup[]; readonly isAll: boolean }

/** @param found null: they could not be read in time */
export function runsPage(asked: Asked, found: Runs | null, actor: Actor): string {
  const { sent, before, isGrouped, wrong } = asked
  const isWrong = Object.keys(wrong).length > 0
  return page({
    title: 'Runs',
    asOf: new Date(),
    actor,
    within: runsPath,
    isLive: !isWrong && before === null,
    content: html`${!allows(actor, 'view_run') && html`<p class="quiet">You see your own runs only: you lack the permission view_run.</p>`}
${form(asked)}
${
  isWrong
    ? html`<p class="alert" role="alert">Nothing is shown: ${Object.entries(wrong).map(([name, why]) => `${labels[name as Field] ?? name}: ${why} `)}</p>`
    : html`<nav class="tabs" aria-label="Show"><ul>
<li><a href="${withQuery(runsPath, { ...sent, group: undefined, before: undefined })}"${!isGrouped && html` aria-current="true"`}>One by one</a></li>
<li><a href="${withQuery(runsPath, { ...sent, group: 'cause', before: undefined })}"${isGrouped && html` aria-current="true"`}>By cause</a></li>
</ul></nav>
<section>${found === null ? notKnown('This takes too long: choose a shorter period, or say more.') : results(asked, found)}</section>`
}`,
  })
}

const periodWords: Readonly<Record<Span, string>> = {
  hour: 'the last hour',
  day: 'the last day',
  week: 'the last 7 days',
  month: 'the last 30 days',
  all: 'all time',
}

function results({ sent, span, before }: Asked, found: Runs): Html {
  const of = `of ${periodWords[span]}`
  if ('groups' in found) {
    const { groups, isAll } = found
    return html`<h2>${count(groups.length, 'group')} ${of}</h2>
${groups.length > 0 && groupTable('Runs by cause', groups, mostOfGroups)}
${!isAll && html`<p class="quiet">Of the newest ${number(mostGrouped)} runs: there are more.</p>`}`
  }
  const { rows, count: matching, next } = found
  return html`<h2>${matching > mostCounted ? `${number(mostCounted)}+ runs` : count(matching, 'run')} ${of}</h2>
${rows.length > 0 && runTable('Runs', rows, new Date())}
${moves({
  'The newest': before !== null && withQuery(runsPath, { ...sent, before: undefined }),
  Older: next !== null && withQuery(runsPath, { ...sent, before: placeText(next) }),
})}`
}

/** The most groups that are shown. */
const mostOfGroups = 100

const labels: Readonly<Record<Field, string>> = {
  period: 'Period',
  outcome: 'Outcome',
  object: 'Object',
  who: 'Who',
  owner: 'Owner',
  kind: 'Kind',
  request: 'Request',
  text: 'Words of the title',
  group: 'Group',
}

const form = ({
  sent,
  span,
  outcome,
  isGrouped,
  wrong,
}: Asked): Html => html`<form class="filters" method="get" action="${runsPath}">
${choiceField('period', labels.period, span, Object.entries(periodWords))}
${choiceField('outcome', labels.outcome, outcome === 'any' ? '' : outcome, [['', 'any'], ...outcomesAsked.map((each) => [each, outcomeWords[each] ?? each] as const)])}
${(['object', 'who', 'owner', 'kind', 'request', 'text'] as const).map((name) =>
  textField(name, labels[name], {
    value: sent[name],
    hint: hints[name],
    isWrong: wrong[name] !== undefined,
    mostLetters: 400,
  }),
)}${isGrouped && html`<input type="hidden" name="group" value="cause">`}
<div class="choice"><button type="submit">Show</button><a class="button" href="${runsPath}">Clear</a></div>
</form>`

const outcomeWords: Readonly<Partial<Record<(typeof outcomesAsked)[number], string>>> = {
  unknown: 'unknown yet',
  attention: 'failed or not taken',
}

const hints: Readonly<Partial<Record<Field, string>>> = { object: 'application:shop' }
