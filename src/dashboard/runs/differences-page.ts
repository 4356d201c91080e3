import { type Html, html } from '../../http/html.ts'
import type { Earlier } from '../../lists/earlier-run.ts'
import type { Actor } from '../../permissions.ts'
import type { DocumentDifference } from '../../views/run-differences.ts'
import type { RunPart } from '../../views/run-parts.ts'
import { differencesPath, runPagePath, runsPath } from '../addresses.ts'
import { page } from '../frame.ts'
import { mark, number, sentenceText, time, titleText } from '../words.ts'
import { changesPart, fieldList } from './changes.ts'

/** /admin/runs/{id}/differences/: the difference between the document of a run and that of the applied run before it. */

type Shown = {
  readonly run: Pick<RunPart, 'id' | 'title' | 'slug'>
  /** Undefined: there is none; null: it could not be found in time. */
  readonly earlier: Earlier | null | undefined
  /** A text: the reason why they cannot be compared; null: not in time. */
  readonly found: DocumentDifference | string | null
  /** The index of the first entry that is shown. */
  readonly from: number
  readonly nameOf: (model: string) => string
}

export const differencesPage = ({ run, earlier, found, from, nameOf }: Shown, actor: Actor): string =>
  page({
    title: `Differences of ${run.title}`,
    actor,
    within: runsPath,
    content: html`<h1>Differences of ${titleText(run.title)}</h1>
<p><a href="${runPagePath(run.id)}">Back to the run</a></p>
${
  earlier === undefined
    ? html`<p>There is no applied run before it ${run.slug === null ? 'with the same title or objects' : 'of the same application'}, as far as you may see.</p>`
    : earlier === null
      ? html`<p class="quiet">The run before it could not be found in time.</p>`
      : html`<p>Compared with <a href="${runPagePath(earlier.id)}">${titleText(earlier.title)}</a> of ${time(earlier.createdAt)}, the applied run before it. Secrets are masked.</p>
${contentOf(run.id, found, from, nameOf)}`
}`,
  })

const called = { delete: 'Removed', update: 'Changed', create: 'Added', unchanged: 'Unchanged' } as const
const mostOfSettings = 5_000

function contentOf(id: string, found: Shown['found'], from: number, nameOf: Shown['nameOf']): Html {
  if (found === null) return html`<p class="quiet">The documents are too long to be compared in time.</p>`
  if (typeof found === 'string')
    return html`<p>They cannot be compared: one of the documents is not there. ${sentenceText(found)}</p>`
  const { changes, settings } = found
  const isSame = changes.length === 0 && Object.keys(settings).length === 0
  if (isSame)
    return html`<div class="summary good"><p>${mark('same', 'the same')} <span class="says">Both have the same document.</span></p></div>`
  const entries = (['create', 'update', 'delete'] as const).flatMap((action) => {
    const of = changes.filter((each) => each.action === action).length
    return of === 0 ? [] : [`${number(of)} ${called[action].toLowerCase()}`]
  })
  return html`<section><h2>${entries.length === 0 ? 'No entry is different' : `Entries: ${entries.join(', ')}`}</h2>
${Object.keys(settings).length > 0 && html`<h3>Of the whole document</h3>${fieldList(settings, false, mostOfSettings)}`}
${changesPart({ changes: changes.slice(from), from, total: changes.length }, differencesPath(id), nameOf, called)}</section>`
}
