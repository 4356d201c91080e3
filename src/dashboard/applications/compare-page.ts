import { type Html, html } from '../../http/html.ts'
import type { Actor } from '../../permissions.ts'
import type { HistoryEntry } from '../../views/history.ts'
import type { Difference } from '../../views/history-difference.ts'
import { applicationPath, applicationsPath, comparePath, runPagePath } from '../addresses.ts'
import { page } from '../frame.ts'
import { changeTables } from '../runs/changes.ts'
import { mark, nameText, number, shortId, time } from '../words.ts'

/** /admin/applications/{slug}/compare/: the difference of two states of an application and its providers. */

/** The state after a change: the first one of those that were written together. */
export type State = { readonly state: string; readonly entry: HistoryEntry }

export type Compared =
  | { readonly is: 'compared'; readonly from: State; readonly to: State; readonly difference: Difference }
  /** There are fewer than two states. */
  | { readonly is: 'alone' }
  /** More changes lie between the states than are read. */
  | { readonly is: 'too far'; readonly most: number }

export const comparePage = (
  slug: string,
  compared: Compared,
  nameOf: (model: string) => string,
  actor: Actor,
): string =>
  page({
    title: `Two states of ${slug}`,
    actor,
    within: applicationsPath,
    content: html`<h1>Two states of ${slug}</h1>
<p><a href="${applicationPath(slug)}${compared.is === 'compared' && `?from=${compared.from.state}&to=${compared.to.state}`}">Back to the application</a></p>
${contentOf(slug, compared, nameOf)}`,
  })

function contentOf(slug: string, compared: Compared, nameOf: (model: string) => string): Html {
  if (compared.is === 'alone') return html`<p>There is nothing to compare: its history has one state only.</p>`
  if (compared.is === 'too far')
    return html`<p class="alert">More than ${number(compared.most)} changes lie between them: choose two that are nearer.</p>`
  const { from, to, difference } = compared
  const { changes, unknown } = difference
  const { shown, size } = changeTables(changes, nameOf)
  return html`<dl class="facts"><dt>From</dt><dd>${stateOf(from)}</dd><dt>To</dt><dd>${stateOf(to)}</dd></dl>
<p><a href="${comparePath(slug)}?from=${to.state}&amp;to=${from.state}">The other way round</a></p>
${unknown > 0 && html`<p class="quiet">Of ${number(unknown)} changes between them, the fields are not kept: there may be more.</p>`}
${
  changes.length === 0
    ? html`<div class="summary good"><p>${mark('same', 'the same')} <span class="says">No field is different, as far as is known.</span></p></div>`
    : html`<section><h2>What is different</h2>${shown}${size < changes.length && html`<p class="quiet">${number(changes.length - size)} more objects differ: choose two states that are nearer.</p>`}</section>`
}`
}

const stateOf = ({ entry: { at, user, run } }: State): Html =>
  html`after ${time(new Date(at))}${user !== null && `, ${nameText(user.username)}`}${run !== null && html`, run <a href="${runPagePath(run)}">${shortId(run)}</a>`}`
