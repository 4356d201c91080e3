import type { Change } from '../apply/changes.ts'
import { type Html, type HtmlValue, html } from '../http/html.ts'
import type { Actor } from '../permissions.ts'
import { page } from './frame.ts'
import { changesPart, fieldList } from './runs/changes.ts'
import { mark, number, titleText } from './words.ts'

/** The difference of two documents, or of two states of an application. */

export type Compared = {
  readonly from: Html
  readonly to: Html
  readonly changes: readonly Change[]
  /** The settings of a document beside its entries. */
  readonly settings?: Change['fields']
  /** The number of changes between them whose fields are not kept. */
  readonly unknown?: number
}

type Shown = {
  readonly title: string
  /** The page in the navigation. */
  readonly within: string
  readonly back: Html
  /** A text: the reason why they cannot be compared. */
  readonly compared: Compared | string
  /** The address of its first part. */
  readonly address: string
  /** The index of the first change that is shown. */
  readonly start: number
  readonly nameOf: (model: string) => string
}

export const comparisonPage = ({ title, within, back, compared, ...of }: Shown, actor: Actor): string =>
  page({
    title,
    actor,
    within,
    content: html`<h1>${titleText(title)}</h1>
<p>${back}</p>
${typeof compared === 'string' ? html`<p>${compared}</p>` : contentOf(compared, of)}`,
  })

const called = { delete: 'Removed', update: 'Changed', create: 'Added', unchanged: 'Unchanged' } as const
const mostOfSettings = 5_000

function contentOf(compared: Compared, { address, start, nameOf }: Pick<Shown, 'address' | 'start' | 'nameOf'>): Html {
  const { from, to, changes, settings = {}, unknown = 0 } = compared
  const hasSettings = Object.keys(settings).length > 0
  const counts = (['create', 'update', 'delete'] as const).flatMap((action): HtmlValue[] => {
    const of = changes.filter((each) => each.action === action).length
    return of === 0 ? [] : [`${number(of)} ${called[action].toLowerCase()}`]
  })
  return html`<section><dl class="facts"><dt>From</dt><dd>${from}</dd><dt>To</dt><dd>${to}</dd></dl></section>
${unknown > 0 && html`<p class="quiet">Of ${number(unknown)} changes between them, the fields are not kept: there may be more.</p>`}
${
  counts.length === 0 && !hasSettings
    ? html`<div class="summary good"><p>${mark('same', 'the same')} <span class="says">Nothing is different.</span></p></div>`
    : html`<section><h2>What is different${counts.length > 0 && `: ${counts.join(', ')}`}</h2>
${hasSettings && html`<h3>Of the whole document</h3>${fieldList(settings, false, mostOfSettings)}`}
${changesPart({ changes: changes.slice(start), start, total: changes.length }, address, nameOf, called)}</section>`
}`
}
