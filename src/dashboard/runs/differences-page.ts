import { type Html, type HtmlValue, html } from '../../http/html.ts'
import type { Actor } from '../../permissions.ts'
import type { DocumentDifference } from '../../views/run-differences.ts'
import { differencesPath, runPagePath, runsPath } from '../addresses.ts'
import { page } from '../frame.ts'
import { mark, number, time, titleText } from '../words.ts'
import { changesPart, fieldList } from './changes.ts'
import type { Earlier } from './same-objects.ts'

/** /admin/runs/{id}/differences/: the difference between the documents of a run and of the applied run before it. */

export type Compared = DocumentDifference & { readonly earlier: Earlier }

type Shown = {
  /** A text: the reason why they cannot be compared. */
  readonly compared: Compared | string
  /** The index of the first change that is shown. */
  readonly start: number
  readonly nameOf: (model: string) => string
}

export const differencesPage = (id: string, title: string, { compared, ...of }: Shown, actor: Actor): string =>
  page({
    title: `Differences of ${title}`,
    actor,
    within: runsPath,
    content: html`<p><a href="${runPagePath(id)}">Back to the run</a></p>
${typeof compared === 'string' ? html`<p>${compared}</p>` : contentOf(id, compared, of)}`,
  })

const called = { delete: 'Removed', update: 'Changed', create: 'Added', unchanged: 'Unchanged' } as const

function contentOf(
  id: string,
  { earlier, changes, settings }: Compared,
  { start, nameOf }: Pick<Shown, 'start' | 'nameOf'>,
): Html {
  const hasSettings = Object.keys(settings).length > 0
  const counts = (['create', 'update', 'delete'] as const).flatMap((action): HtmlValue[] => {
    const of = changes.filter((each) => each.action === action).length
    return of === 0 ? [] : [`${number(of)} ${called[action].toLowerCase()}`]
  })
  return html`<section><dl class="facts"><dt>From</dt><dd><a href="${runPagePath(earlier.id)}">${titleText(earlier.title)}</a> of ${time(earlier.createdAt)}, the applied run before it</dd><dt>To</dt><dd>this run</dd></dl></section>
${
  counts.length === 0 && !hasSettings
    ? html`<div class="summary good"><p>${mark('same', 'the same')} <span class="says">Nothing is different.</span></p></div>`
    : html`<section><h2>What is different${counts.length > 0 && `: ${counts.join(', ')}`}</h2>
${hasSettings && html`<h3>Of the whole document</h3>${fieldList(settings, false)}`}
${changesPart(changes, differencesPath(id), { start, nameOf, called })}</section>`
}`
}
