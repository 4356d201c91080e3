import type { z } from 'zod'
import { type Html, html } from '../../http/html.ts'
import type { ApplicationState, State } from '../../lists/application-states.ts'
import { applicationList } from '../../lists/applications.ts'
import { findPage, type Request } from '../../lists/list.ts'
import { mostRuns, type OwnerStates } from '../../lists/owner-states.ts'
import type { Actor } from '../../permissions.ts'
import { applicationView } from '../../views/application.ts'
import { readUidOf } from '../../views/uid.ts'
import { applicationsPath, runPagePath, runsPath, withQuery } from '../addresses.ts'
import type { Sources } from '../sources.ts'
import { table } from '../table.ts'
import { looks, mark, nameText, number, sentenceText, shortTime, type Tone, wordsOf } from '../words.ts'

/** Applications as their list and their own pages have them: their states, and the teams that own them. */

/** The pages count no further. */
export const mostCounted = 5_000

export type ApplicationRow = z.output<ReturnType<typeof applicationView>['schema']>

/** @returns a function that reads applications; `isCut`: there are more than are counted */
export function openApplications({ db, registry }: Sources) {
  const list = applicationList(registry)
  const view = applicationView(registry.kinds)
  return async (actor: Actor, request: Request) => {
    const { keys, count, isExact } = await findPage(db, list, actor, { mostCounted, ...request })
    const reading = { uidOf: await readUidOf(db), related: true, actor }
    const rows = keys.length === 0 ? [] : (await Array.fromAsync(view.read(db, keys.map(String), reading))).flat()
    return { count, rows, isCut: !isExact }
  }
}

const looksOf: Readonly<Record<State, Tone>> = {
  applied: 'good',
  failing: 'bad',
  waiting: 'open',
  changed_outside: 'warn',
}

/** `failing since 12:10 (the queue is paused)`, with a link to the run; `changed outside (group)` */
export function stateText(of: ApplicationState | undefined): Html {
  if (of === undefined) return mark('open', 'not known')
  const { state, failing_since: since, failing_run: run, reason, outside } = of
  const word = mark(looksOf[state], wordsOf(state))
  if (state === 'changed_outside') return html`${word} (${sentenceText(outside.join(', '))})`
  if (state !== 'failing' || since === null) return word
  const cause = sentenceText(reason ?? 'its run is no longer kept')
  return html`${word} since ${shortTime(since)} (${run === null ? cause : html`<a href="${runPagePath(run)}">${cause}</a>`})`
}

/** Owners with the number of their applications in each state, each with a link to these. @param most the most rows */
export const teamTable = (teams: readonly OwnerStates[], most = teams.length): Html =>
  html`${table(
    'Teams',
    teams,
    {
      Owner: ['name', ({ owner }) => (owner === null ? 'none' : ownerLink(owner))],
      'Last deployment': ['plain', lastDeployment],
      Applied: ['number', (team) => linked(team, 'applied')],
      Failing: ['number', (team) => linked(team, 'failing')],
      Waiting: ['number', (team) => linked(team, 'waiting')],
      'Changed outside': ['number', (team) => linked(team, 'changed_outside')],
    },
    { idOf: ({ owner }) => `team-${owner ?? ''}`, most },
  )}
<p class="quiet">The last deployment is looked for among the newest ${number(mostRuns)} runs.</p>`

const lastDeployment = ({ owner, last }: OwnerStates): Html | false =>
  last !== undefined &&
  html`${mark(looks[last.outcome], last.outcome === 'unknown' ? 'waiting' : last.outcome)} <a href="${runPagePath(last.id)}">${shortTime(last.at)}</a>${owner !== null && html` <a class="quiet" href="${withQuery(runsPath, { owner, period: 'week' })}">all runs</a>`}`

const linked = (team: OwnerStates, state: State): Html | string =>
  team[state] === 0
    ? '0'
    : html`<a href="${withQuery(applicationsPath, { owner: team.owner, state })}">${state === 'applied' ? number(team[state]) : mark(looksOf[state], number(team[state]))}</a>`

export const ownerLink = (owner: string): Html =>
  html`<a href="${withQuery(applicationsPath, { owner })}" title="${owner}">${nameText(owner)}</a>`

/** A provider of an owner that the caller may not see is shown by its key. */
export const providerText = ({ provider, provider_obj: shown }: ApplicationRow): string =>
  provider === null
    ? 'none'
    : shown === null
      ? `key ${provider}, not shown`
      : `${nameText(shown.name)}, ${shown.verbose_name}`
