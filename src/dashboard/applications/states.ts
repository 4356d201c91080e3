import { type Html, html } from '../../http/html.ts'
import type { ApplicationState, State } from '../../lists/application-states.ts'
import { mostRuns, type OwnerStates } from '../../lists/owner-states.ts'
import { type Actor, seesAllRuns } from '../../permissions.ts'
import { applicationsPath, runPagePath, runsPath, withQuery } from '../addresses.ts'
import { type Row, table } from '../table.ts'
import { type Look, looks, mark, nameText, number, sentenceText, shortTime } from '../words.ts'

/** The states of applications, and of the teams that own them. */

export const stateWords: Readonly<Record<State, string>> = {
  applied: 'applied',
  failing: 'failing',
  waiting: 'waiting',
  changed_outside: 'changed outside',
}

const looksOf: Readonly<Record<State, Look>> = {
  applied: 'good',
  failing: 'bad',
  waiting: 'open',
  changed_outside: 'warn',
}

/** The run is a link for those who see all runs: `failing since 12:10 (cancelled)`, `changed outside (group)` */
export function stateText(of: ApplicationState | undefined, actor: Actor): Html {
  if (of === undefined) return mark('open', 'not known')
  const { state, failing_since: since, failing_run: run, reason, outside } = of
  const word = mark(looksOf[state], stateWords[state])
  if (state === 'changed_outside') return html`${word} (${sentenceText(outside.join(', '))})`
  if (state !== 'failing' || since === null) return word
  const cause = reason ?? 'its run is no longer kept'
  const seesRun = reason !== null && seesAllRuns(actor)
  return html`${word} since ${shortTime(since)} (${run !== null && seesRun ? html`<a href="${runPagePath(run)}">${cause}</a>` : cause})`
}

/** Owners with the number of their applications in each state, each with a link to these. @param most the most rows */
export const teamTable = (teams: readonly OwnerStates[], most = teams.length): Html =>
  html`${table(
    'Teams',
    {
      Owner: 'name',
      Applied: 'number',
      Failing: 'number',
      Waiting: 'number',
      'Changed outside': 'number',
      'Last deployment': 'text',
    },
    teams.map(teamRow),
    most,
  )}
<p class="quiet">The last deployment is looked for among the newest ${number(mostRuns)} runs.</p>`

function teamRow({ owner, last, ...of }: OwnerStates): Row {
  const linked = (state: State) =>
    of[state] === 0
      ? '0'
      : html`<a href="${withQuery(applicationsPath, { owner, state })}">${state === 'applied' ? number(of[state]) : mark(looksOf[state], number(of[state]))}</a>`
  return {
    id: `team-${owner ?? ''}`,
    cells: [
      owner === null ? 'none' : html`<a href="${withQuery(applicationsPath, { owner })}">${nameText(owner)}</a>`,
      linked('applied'),
      linked('failing'),
      linked('waiting'),
      linked('changed_outside'),
      last !== undefined &&
        html`${mark(looks[last.outcome], last.outcome === 'unknown' ? 'waiting' : last.outcome)} <a href="${runPagePath(last.id)}">${shortTime(last.at)}</a> <a class="quiet" href="${withQuery(runsPath, { owner, period: 'week' })}">all runs</a>`,
    ],
  }
}
